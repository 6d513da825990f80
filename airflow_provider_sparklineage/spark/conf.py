"""Injection: a spark-submit call to the same call with the listener in it.

A value of the user can stand in four places, and Spark merges none of them: a flag beats
``--conf``, which beats the properties file, which replaces ``spark-defaults.conf``
(``org.apache.spark.deploy.SparkSubmitArguments.mergeDefaultSparkProperties``). So whatever is
appended to is first looked up in all four, and the result is passed once.

Everything here is ``dict -> new dict``, and injecting twice changes nothing. The user's own keys
win, but for those without which nothing can be collected: the transport is extended to a composite
one, and the application's run id is ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_sparklineage.exceptions import ListenerError
from airflow_provider_sparklineage.spark.listener import JAR_NAME, LISTENER_CLASS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PREFIX = "spark.openlineage."
TRANSPORT = f"{PREFIX}transport."
OWN_TRANSPORT = "sparklineage"
"""Name of our file transport inside a composite one."""
USER_TRANSPORT = "user"
"""Name that the user's transport gets inside a composite one."""

# The listener's own default, and what tells overwrites of a table from those of partitions.
_CAPTURED = (
    *("spark.master", "spark.app.name"),  # the listener's own default
    "spark.sql.sources.partitionOverwriteMode",  # whether an overwrite replaces only partitions
    "spark.sql.extensions",  # whether Delta makes the listener leave out events
    "spark.sql.maxConcurrentOutputFileWriters",  # with these two, Spark writes partitions without
    "spark.sql.optimizer.plannedWrite.enabled",  # the sort that would tell of them
)

# With --jars the listener meets its classes through two loaders and logs a trace for every query.
# Java 8, on which Spark 3.5 runs too, does not know the option and would not start.
QUIET_JVM = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.security=ALL-UNNAMED",
)

OBSERVER = "spark.sparklineage."
"""Prefix of what the observer in the driver reads of its configuration."""
DELTA_TAG = "spark.databricks.delta.commitInfo.userMetadata"

_JAR_BASENAME = re.compile(r"[^/]*$")


@dataclass(frozen=True)
class Submission:
    """The arguments of a SparkSubmitOperator that injection reads and replaces.

    :param application: what is submitted; only a ``.py`` file has a Python driver to observe
    :param file_properties: what the properties file, or else ``spark-defaults.conf``, says
    :param extra_file_properties: what must be added to that file, because it may hold secrets and
        so must not become an argument
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    jars: str | None = None
    packages: str | None = None
    driver_class_path: str | None = None
    py_files: str | None = None
    application: str = ""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    file_properties: Mapping[str, str] = field(default_factory=dict)
    extra_file_properties: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> str | None:
        """Find the value of a property that Spark would take: ``--conf`` before the file."""
        in_file = self.extra_file_properties.get(key, self.file_properties.get(key))
        value = self.conf.get(key, in_file)
        return None if value is None else str(value)

    def keys(self) -> set[str]:
        """All properties that are set anywhere."""
        return {*map(str, self.conf), *self.file_properties, *self.extra_file_properties}


@dataclass(frozen=True)
class Observation:
    """What makes the driver observe the partitions that are read and written.

    :param zip: the observer (:mod:`.driver_zip`)
    :param path: file that it shall write
    :param tag: text that marks Delta commits as this application's
    """

    zip: Path
    path: Path
    tag: str


@dataclass(frozen=True)
class Injection:
    """What is to be injected.

    :param jar: listener jar to add; None where Spark has one among its own jars
    :param events_path: file that the listener shall write
    :param application_run_id: OpenLineage run id that the application shall have
    :param defaults: further ``spark.openlineage.*`` properties, each set only if the user set none
    :param submit_opts: ``SPARK_SUBMIT_OPTS`` of the environment; None if the JVM runs elsewhere
    :param observation: None leaves the driver unobserved
    """

    jar: Path | None
    events_path: Path
    application_run_id: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    submit_opts: str | None = None
    observation: Observation | None = None


def inject(submission: Submission, injection: Injection) -> Submission:
    """Add the listener and its configuration to a submission.

    :raise ListenerError: if the submission cannot carry the listener; the message says why
    """
    _refuse_connect(submission)
    submission = _with_listener(submission)
    submission = _with_jar(submission, injection.jar)
    submission = _with_transport(submission, str(injection.events_path))
    submission = _with_defaults(submission, injection)
    submission = _with_observer(submission, injection.observation)
    return _with_quiet_jvm(submission, injection.submit_opts)


def injected_names(before: Submission, after: Submission) -> tuple[str, ...]:
    """Names of what injection added or changed; never values."""
    names = {key for key, value in after.conf.items() if before.conf.get(key) != value}
    names |= after.extra_file_properties.keys() - before.extra_file_properties.keys()
    names |= {
        f"env:{key}" for key, value in after.env_vars.items() if before.env_vars.get(key) != value
    }
    if after.jars != before.jars:
        names.add("jars")
    if after.py_files != before.py_files:
        names.add("py_files")
    return tuple(sorted(names))


def _refuse_connect(submission: Submission) -> None:
    if submission.value("spark.remote") or submission.value("spark.api.mode") == "connect":
        msg = (
            "The job uses Spark Connect, where the listener belongs to the server; it runs "
            "without lineage. Set spark.api.mode=classic, or configure the listener on the "
            "Connect server."
        )
        raise ListenerError(msg)


def _listed(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _with_conf(submission: Submission, values: Mapping[str, str]) -> Submission:
    return replace(submission, conf={**submission.conf, **values})


def _with_listener(submission: Submission) -> Submission:
    key = "spark.extraListeners"
    listeners = _listed(submission.value(key))
    if LISTENER_CLASS in listeners:
        return submission
    return _with_conf(submission, {key: ",".join([*listeners, LISTENER_CLASS])})


def _with_jar(submission: Submission, jar: Path | None) -> Submission:
    """Append the jar to what Spark would take: the flag, else ``spark.jars``, which it replaces."""
    key = "spark.jars"
    if jar is None or has_own_listener(submission):
        return submission
    jars = ",".join([*_listed(submission.jars or submission.value(key)), str(jar)])
    if not submission.jars and key not in submission.conf and "@" in jars:
        # An address with credentials that the user kept in a file stays in a file.
        extra = {**submission.extra_file_properties, key: jars}
        return replace(submission, extra_file_properties=extra)
    conf = {k: value for k, value in submission.conf.items() if k != key}
    return replace(submission, jars=jars, conf=conf)


def has_own_listener(submission: Submission) -> bool:
    """Whether the submission has a listener jar: the user's, or ours from an injection before."""
    paths = _listed(submission.jars or submission.value("spark.jars"))
    class_path = submission.driver_class_path or submission.value("spark.driver.extraClassPath")
    paths += (class_path or "").split(":")
    packages = _listed(submission.packages or submission.value("spark.jars.packages"))
    return any(JAR_NAME.fullmatch(_basename(path)) for path in paths) or any(
        package.startswith("io.openlineage:openlineage-spark") for package in packages
    )


def can_observe(submission: Submission) -> bool:
    """Whether there is a Python driver; spark-submit refuses ``--py-files`` where there is none."""
    return submission.application.endswith(".py")


def _with_observer(submission: Submission, observation: Observation | None) -> Submission:
    """Append the observer to the py-files that Spark would take, and tell it where to write.

    It goes last, so that no module of the user's own files is hidden by it. The user's Delta
    metadata stays as it is; the commits are then not told from those of others.
    """
    if observation is None or not can_observe(submission):
        return submission
    key = "spark.submit.pyFiles"
    files = _listed(submission.py_files or submission.value(key))
    if str(observation.zip) not in files:
        files.append(str(observation.zip))
    conf = {k: v for k, v in submission.conf.items() if k != key}
    conf[f"{OBSERVER}observations"] = str(observation.path)
    if submission.value(DELTA_TAG) in (None, observation.tag):
        conf |= {DELTA_TAG: observation.tag, f"{OBSERVER}tag": observation.tag}
    return replace(submission, py_files=",".join(files), conf=conf)


def _basename(path: str) -> str:
    match = _JAR_BASENAME.search(path)
    return match.group() if match else path


def _with_transport(submission: Submission, location: str) -> Submission:
    """Have the events written to ``location``, beside the user's own transport if there is one.

    :raise ListenerError: if the user's transport would not work as a child of a composite one
    """
    ours = {"type": "file", "location": location}
    user = {key for key in submission.keys() if key.startswith(TRANSPORT)}  # noqa: SIM118  (method)
    kind = submission.value(f"{TRANSPORT}type")
    own_child = f"{TRANSPORT}transports.{OWN_TRANSPORT}."
    if kind is None or (kind == "file" and submission.value(f"{TRANSPORT}location") == location):
        return _with_conf(submission, {f"{TRANSPORT}{k}": v for k, v in ours.items()})
    children = {f"{own_child}{k}": v for k, v in ours.items()}
    if submission.value(f"{own_child}type") is not None:  # injected before
        return _with_conf(submission, children)
    suffixes = {key.removeprefix(TRANSPORT): str(submission.value(key)) for key in sorted(user)}
    if not _can_be_composed(kind, suffixes):
        msg = (
            f"The job's own OpenLineage transport ({kind}) cannot be combined with collecting its "
            "events, so it stays alone and nothing is collected. Leave out "
            "spark.openlineage.transport.*: the task's own event carries the lineage."
        )
        raise ListenerError(msg)
    if kind == "composite":
        return _with_conf(submission, children)
    conf = {key: value for key, value in submission.conf.items() if key not in user}
    in_file: dict[str, str] = {}
    for suffix, value in suffixes.items():
        # What the user kept in a file stays in a file: it may be a credential.
        target = conf if f"{TRANSPORT}{suffix}" in submission.conf else in_file
        target[f"{TRANSPORT}transports.{USER_TRANSPORT}.{suffix}"] = value
    conf |= {
        f"{TRANSPORT}type": "composite",
        f"{TRANSPORT}continueOnFailure": "true",
        **children,
    }
    extra = {**submission.extra_file_properties, **in_file}
    return replace(submission, conf=conf, extra_file_properties=extra)


# The keys that a transport takes as a child of a composite one. The listener
# (io.openlineage.spark.agent.ArgumentParser) rejects unknown ones there and, other than at the top
# level, makes a tree of dotted names under headers, urlParams and properties.
_CHILD_KEYS = {
    "http": re.compile(
        r"type|url|endpoint|timeoutInMillis|compression|auth\.\w+|(headers|urlParams)\.[^.]+"
    ),
    "console": re.compile(r"type"),
    "file": re.compile(r"type|location"),
    "composite": re.compile(r"type|continueOnFailure|withThreadPool|transports\.[^.]+\..+"),
}


def _can_be_composed(kind: str, keys: Mapping[str, str]) -> bool:
    known = _CHILD_KEYS.get(kind)
    if known is None or not all(known.fullmatch(key) for key in keys):
        return False
    # At the top level the listener takes an address apart (path to endpoint, query to parameters).
    url = urlsplit(keys.get("url", ""))
    return url.path in ("", "/") and not url.query


def _with_defaults(submission: Submission, injection: Injection) -> Submission:
    captured = _listed(submission.value(f"{PREFIX}capturedProperties")) or list(_CAPTURED[:2])
    defaults = {
        f"{PREFIX}columnLineage.datasetLineageEnabled": "true",
        f"{PREFIX}columnLineage.descriptionsEnabled": "true",
        **injection.defaults,
    }
    values = {key: value for key, value in defaults.items() if submission.value(key) is None}
    values[f"{PREFIX}applicationRunId"] = injection.application_run_id
    values[f"{PREFIX}capturedProperties"] = ",".join(dict.fromkeys([*captured, *_CAPTURED[2:]]))
    return _with_conf(submission, values)


def _with_quiet_jvm(submission: Submission, submit_opts: str | None) -> Submission:
    if submit_opts is None:
        return submission
    opts = submission.env_vars.get("SPARK_SUBMIT_OPTS", submit_opts).split()
    if QUIET_JVM[1] in opts:
        return submission
    env_vars = {**submission.env_vars, "SPARK_SUBMIT_OPTS": " ".join([*opts, *QUIET_JVM])}
    return replace(submission, env_vars=env_vars)
