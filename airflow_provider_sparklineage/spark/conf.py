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
_CAPTURED = ("spark.master", "spark.app.name", "spark.sql.sources.partitionOverwriteMode")

# With --jars the listener meets its classes through two loaders and logs a trace for every query.
QUIET_JVM = "--add-opens=java.base/java.security=ALL-UNNAMED"

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
    py_files: str | None = None
    application: str = ""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    file_properties: Mapping[str, str] = field(default_factory=dict)
    extra_file_properties: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> str | None:
        """Find the value of a property that Spark would take: ``--conf`` before the file."""
        value = self.conf.get(key, self.file_properties.get(key))
        return None if value is None else str(value)

    def keys(self) -> set[str]:
        """All properties that are set anywhere."""
        return {*map(str, self.conf), *self.file_properties}


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
    if jar is None or has_own_listener(submission):
        return submission
    jars = [*_listed(submission.jars or submission.value("spark.jars")), str(jar)]
    conf = {key: value for key, value in submission.conf.items() if key != "spark.jars"}
    return replace(submission, jars=",".join(jars), conf=conf)


def has_own_listener(submission: Submission) -> bool:
    """Whether the submission has a listener jar already: the user's, or ours from before."""
    jars = _listed(submission.jars or submission.value("spark.jars"))
    packages = _listed(submission.packages or submission.value("spark.jars.packages"))
    return any(JAR_NAME.fullmatch(_basename(j)) for j in jars) or any(
        p.startswith("io.openlineage:openlineage-spark") for p in packages
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
    """Have the events written to ``location``, beside the user's own transport if there is one."""
    ours = {"type": "file", "location": location}
    user = {key for key in submission.keys() if key.startswith(TRANSPORT)}  # noqa: SIM118  (a method)
    kind = submission.value(f"{TRANSPORT}type")
    own_child = f"{TRANSPORT}transports.{OWN_TRANSPORT}."
    if kind is None or (kind == "file" and submission.value(f"{TRANSPORT}location") == location):
        return _with_conf(submission, {f"{TRANSPORT}{k}": v for k, v in ours.items()})
    children = {f"{own_child}{k}": v for k, v in ours.items()}
    if kind == "composite":
        return _with_conf(submission, children)
    conf = {key: value for key, value in submission.conf.items() if key not in user}
    in_file: dict[str, str] = {}
    for key in sorted(user):
        child = f"{TRANSPORT}transports.{USER_TRANSPORT}.{key.removeprefix(TRANSPORT)}"
        # What the user kept in a file stays in a file: it may be a credential.
        target = conf if key in submission.conf else in_file
        target[child] = str(submission.value(key))
    conf |= {f"{TRANSPORT}type": "composite", f"{TRANSPORT}continueOnFailure": "true", **children}
    return replace(submission, conf=conf, extra_file_properties=in_file)


def _with_defaults(submission: Submission, injection: Injection) -> Submission:
    captured = _listed(submission.value(f"{PREFIX}capturedProperties")) or list(_CAPTURED[:2])
    defaults = {
        f"{PREFIX}columnLineage.datasetLineageEnabled": "true",
        f"{PREFIX}columnLineage.descriptionsEnabled": "true",
        **injection.defaults,
    }
    values = {key: value for key, value in defaults.items() if submission.value(key) is None}
    values[f"{PREFIX}applicationRunId"] = injection.application_run_id
    values[f"{PREFIX}capturedProperties"] = ",".join(dict.fromkeys([*captured, _CAPTURED[2]]))
    return _with_conf(submission, values)


def _with_quiet_jvm(submission: Submission, submit_opts: str | None) -> Submission:
    if submit_opts is None:
        return submission
    opts = submission.env_vars.get("SPARK_SUBMIT_OPTS", submit_opts)
    if QUIET_JVM in opts.split():
        return submission
    env_vars = {**submission.env_vars, "SPARK_SUBMIT_OPTS": f"{opts} {QUIET_JVM}".strip()}
    return replace(submission, env_vars=env_vars)
