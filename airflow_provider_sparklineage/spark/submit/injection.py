"""Injection: add the listener and its transport to a spark-submit call.

Before a property is extended, its value is looked up in all places where the user can set it
(:mod:`.submission`); the extended value is then passed in one place. Every function here takes a
submission and returns a new one, and a second injection changes nothing. The user's own keys win,
with two exceptions, without which nothing could be collected: the transport is combined with ours
(:func:`with_collecting`), and the application's run id is replaced by ours.

The listener sends its events into the bundle, in addition to the user's own transport. A secret key
of a backend that the user gave to Spark must not become an argument, because every user of the
machine can read arguments. So the key is passed in a properties file that only this user can read,
and Spark is configured to redact the key.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from airflow_provider_sparklineage.spark.submit.submission import Submission, listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from urllib.parse import SplitResult

    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation


TRANSPORT = "spark.openlineage.transport."
TRANSPORT_VARIABLE = "OPENLINEAGE__TRANSPORT"
"""The beginning of the environment variables from which the listener also takes a transport."""
OWN_TRANSPORT = "sparklineage"
"""The name of our transport inside a composite transport."""
USER_TRANSPORT = "user"
"""The name that the user's transport gets inside a composite transport."""
REDACTION = "spark.redaction.regex"

REDACTED_BY_DEFAULT = "(?i)secret|password|token|access[.]?key"
"""Spark's own default (org.apache.spark.internal.config), which a value that we set would replace.
"""

_REDACTED = (
    r"spark[.]openlineage[.]transport[.].*(auth|headers|urlParams|url|properties|sslContext)[.]?"
)


class ExistingTransport(StrEnum):
    """The treatment of a transport that the user configured for Spark."""

    KEEP = "keep"
    """Spark goes on sending events to the user's transport."""
    COLLECT_ONLY = "collect_only"
    """The user's transport is removed, so that only the task's own event is sent to a backend."""


class CaptureOptions(Frozen, frozen=True):
    """The settings of a try that decide on the additions to its submission.

    Each field has the name of its option in ``[sparklineage]``.
    """

    capture_location: CaptureLocation
    capture_location_in_spark: str
    capture_location_shared: bool
    capture_endpoint: str
    observe: bool
    strict: bool
    listener_jar: Path | str | None
    listener_extensions: tuple[str, ...]
    fetch_listener: bool
    existing_transport: ExistingTransport
    spark_version: tuple[str, str] | None


def with_collecting(
    submission: Submission,
    ours: Mapping[str, str],
    existing: ExistingTransport = ExistingTransport.KEEP,
) -> Submission:
    """Let the listener send its events to the worker, and also to the user's own transport, if any.

    :param ours: the properties of the transport that sends to the worker, without the prefix
        ``spark.openlineage.transport.``
    :param existing: whether the user's own transport is kept or removed
    :raise ListenerError: if the user's transport would not work inside a composite transport
    """
    user = {key for key in submission.keys() if key.startswith(TRANSPORT)}  # noqa: SIM118  (method)
    kind = submission.value(f"{TRANSPORT}type")
    own_child = f"{TRANSPORT}transports.{OWN_TRANSPORT}."
    if existing is ExistingTransport.COLLECT_ONLY:
        kind = None
    if kind is None:  # keys of a transport without a type would become part of our transport
        submission = submission.without_conf(*user).with_file({}, user)
    alone = {f"{TRANSPORT}{k}": v for k, v in ours.items()}
    if kind is None or all(submission.value(key) == value for key, value in alone.items()):
        return without_secrets(submission.with_conf(alone))
    children = {f"{own_child}{k}": v for k, v in ours.items()}
    if submission.value(f"{own_child}type") is not None:  # our transport was injected before
        return without_secrets(submission.with_conf(children))
    suffixes = {key.removeprefix(TRANSPORT): str(submission.value(key)) for key in sorted(user)}
    if not _can_be_composed(kind, suffixes):
        problem = (
            f"The job's own OpenLineage transport ({kind}) cannot be combined with collecting its "
            "events, so it stays alone and nothing is collected."
        )
        fix = (
            "Leave out spark.openlineage.transport.*, or set [sparklineage] existing_transport = "
            "collect_only: the task's own event carries the lineage."
        )
        raise ListenerError(problem, fix)
    if kind == "composite":
        return without_secrets(submission.with_conf(children))
    argued: dict[str, str] = {}
    filed: dict[str, str] = {}
    for suffix, value in suffixes.items():
        child = f"{TRANSPORT}transports.{USER_TRANSPORT}.{suffix}"
        # Properties that the user had in a file are passed in a file.
        is_argued = f"{TRANSPORT}{suffix}" in submission.conf and is_public(child, value)
        (argued if is_argued else filed)[child] = value
    composite = {f"{TRANSPORT}type": "composite", f"{TRANSPORT}continueOnFailure": "true"}
    moved = submission.without_conf(*user)
    if filed:
        moved = moved.with_file(filed, user)
    return without_secrets(moved.with_conf(argued | composite | children))


def refuse_variables(submission: Submission, existing: ExistingTransport) -> None:
    """Refuse to collect from a driver to which the job gives a transport by environment variables.

    The listener merges the variables with the properties (``ArgumentParser.parse``): a transport of
    another type in the properties replaces that of the variables, and so do the children of a
    composite one. And a key in the variables may come from a secret, which nobody knows here.

    :param submission: the arguments, with the variables in ``env_vars``
    :param existing: whether the user's own transport is kept or removed
    :raise ListenerError: if the transport is to be kept; the error names the fix
    """
    given = sorted(name for name in submission.env_vars if name.startswith(TRANSPORT_VARIABLE))
    if given and existing is ExistingTransport.KEEP:
        problem = (
            f"The driver has an OpenLineage transport from {given[0]}, which cannot be combined "
            "with collecting its events, so it stays alone and nothing is collected."
        )
        fix = (
            f"Leave out the variables {TRANSPORT_VARIABLE}…, or set [sparklineage] "
            "existing_transport = collect_only: the task's own event carries the lineage."
        )
        raise ListenerError(problem, fix)


def without_secrets(submission: Submission) -> Submission:
    """Move transport properties that may be secrets from the arguments to the properties file.

    Spark is also configured to redact these properties in its event log and UI.
    """
    moved = {
        key: str(value)
        for key, value in submission.conf.items()
        if key.startswith(TRANSPORT) and not is_public(key, str(value))
    }
    if moved:
        submission = submission.without_conf(*moved).with_file(moved, set())
    return _redacting(submission)


def without_secret_transport(submission: Submission) -> Submission:
    """Replace a transport in the arguments by one that sends nothing, if it may have a secret.

    All properties of the transport are removed, and not only the secret ones: without its key the
    listener would send in vain, and without its URL the listener would throw for each event.
    Transport properties in the file are not removed, because the type in the arguments wins.
    """
    argued = {key: str(v) for key, v in submission.conf.items() if key.startswith(TRANSPORT)}
    if all(is_public(key, value) for key, value in argued.items()):
        return submission
    nowhere = {f"{TRANSPORT}type": "file", f"{TRANSPORT}location": os.devnull}
    return submission.without_conf(*argued).with_conf(nowhere)


def without_transport(submission: Submission) -> Submission:
    """Remove all properties of a transport from the arguments."""
    keys = [key for key in submission.conf if key.startswith(TRANSPORT)]
    return submission.without_conf(*keys) if keys else submission


_SHORTEST_SECRET = 6
"""The number of characters of the shortest secret that is hidden: to hide `1` or `true` everywhere
would spoil a whole log."""
_AUTHORIZATION = re.compile(r"(?:Basic|Bearer|Token|ApiKey) +(\S+)", re.IGNORECASE)


def transport_secrets(submission: Submission) -> tuple[str, ...]:
    """Give the values of transport properties that may be secrets.

    The properties are those of ``--conf`` and of the properties file. The result also has the
    password of a URL, and the part of an authorization after its scheme. Texts of less than six
    characters are left out.
    """
    texts: list[str] = []
    for key in _secret_keys(submission):
        value = submission.value(key) or ""
        if value.startswith(_REFERENCE):
            continue
        url = _url(value) if "://" in value else None
        password = url.password if url else None
        scheme = _AUTHORIZATION.fullmatch(value)
        texts += [value, password or "", scheme[1] if scheme else ""]
    return tuple(dict.fromkeys(text for text in texts if len(text) >= _SHORTEST_SECRET))


def _secret_keys(submission: Submission) -> list[str]:
    """List the keys of the transport properties whose values may be secrets in the driver."""
    return [
        key
        for key in sorted(submission.keys())
        if key.startswith(TRANSPORT) and not _is_harmless(key, submission.value(key) or "")
    ]


_PUBLIC = re.compile(
    r"type|continueOnFailure|withThreadPool|timeoutInMillis|compression|location|topicName|"
    r"auth\.type|transports|headers\.(?i:Accept|Content-Type|User-Agent)"
)

_REFERENCE = "EMR.secret@"
"""The prefix of a value that EMR Serverless replaces, in the driver, by a secret of the Secrets
Manager; the name or the ARN of the secret follows."""


def is_public(key: str, value: str) -> bool:
    """Whether all may see a property of a transport: it is no secret, or a reference to one.

    :param key: the full name of the property; the transport may be a child of a composite one
    :param value: the value of the property
    """
    return value.startswith(_REFERENCE) or _is_harmless(key, value)


def _is_harmless(key: str, value: str) -> bool:
    """Whether a property of a transport is certainly not a secret, nor will be one in the driver.

    So Spark has to redact a reference to a secret: in the driver, the secret is in its place.
    """
    suffix = re.sub(r"^transports\.[^.]+\.", "", key.removeprefix(TRANSPORT))
    if suffix in ("url", "endpoint"):
        url = _url(value)
        return url is not None and not url.query and scrub(value) == value
    return _PUBLIC.fullmatch(suffix) is not None


def _url(text: str) -> SplitResult | None:
    """Parse a URL; None if it cannot be parsed."""
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _redacting(submission: Submission) -> Submission:
    """Make Spark redact the secrets of a transport in its event log and UI."""
    if not _secret_keys(submission):
        return submission
    regex = submission.value(REDACTION) or REDACTED_BY_DEFAULT
    if _REDACTED in regex:
        return submission
    return submission.with_conf({REDACTION: f"{regex}|{_REDACTED}"})


# The keys that each kind of transport may have as a child of a composite transport. There, unlike
# at the top level, the listener (io.openlineage.spark.agent.ArgumentParser) rejects unknown keys,
# and makes a tree of dotted names under headers, urlParams and properties.
_CHILD_KEYS = {
    "http": re.compile(
        r"type|url|endpoint|timeoutInMillis|compression|auth\.\w+|(headers|urlParams)\.[^.]+"
    ),
    "console": re.compile(r"type"),
    "file": re.compile(r"type|location"),
    "composite": re.compile(r"type|continueOnFailure|withThreadPool|transports\.[^.]+\..+"),
}


def _can_be_composed(kind: str, keys: Mapping[str, str]) -> bool:
    allowed = _CHILD_KEYS.get(kind)
    if allowed is None or not all(allowed.fullmatch(key) for key in keys):
        return False
    # At the top level the listener takes a URL apart (path to endpoint, query to parameters).
    url = _url(keys.get("url", ""))
    return url is not None and url.path in ("", "/") and not url.query


PREFIX = "spark.openlineage."

_CAPTURED = (
    *("spark.master", "spark.app.name"),  # the listener's own default
    "spark.sql.sources.partitionOverwriteMode",  # whether an overwrite replaces only partitions
    "spark.sql.extensions",  # whether Delta makes the listener leave out events
    "spark.sql.maxConcurrentOutputFileWriters",  # with this and the next property, Spark can write
    "spark.sql.optimizer.plannedWrite.enabled",  # partitions without the sort that shows them
)

# A listener in --jars finds its classes through two class loaders, and logs a stack trace for every
# query; these options prevent the trace. Java 8, on which Spark 3.5 also runs, does not know
# --add-opens, and would not start without the first option.
QUIET_JVM = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.security=ALL-UNNAMED",
)

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SUBMIT_OPTS = "SPARK_SUBMIT_OPTS"
"""The environment variable with options for the JVM that ``spark-submit`` starts."""

OBSERVER = "spark.sparklineage."
"""The prefix of the properties that the observer in the driver reads."""
DELTA_TAG = "spark.databricks.delta.commitInfo.userMetadata"


class Observation(Frozen, frozen=True):
    """The settings for the observer, which records partitions in the driver.

    :param zip: the entry of the observer in ``--py-files`` (:mod:`.submitted_files`)
    :param path: the path, on the driver's host, of the file that the observer writes
    :param tag: the text that marks Delta commits as commits of this application
    :param deliver: the URL of the folder to which a driver in a cluster delivers its capture, in
        Spark's form; empty for a driver that runs on this worker
    """

    zip: str
    path: str
    tag: str
    deliver: str = ""


class Injection(Frozen, frozen=True):
    """The additions to a submission.

    :param jars: the entries of ``--jars`` to add: the listener's jar, unless the job has a
        listener, and jars that extend the listener
    :param events_path: the path, on the driver's host, of the file that the listener writes
    :param application_run_id: the OpenLineage run id of the application
    :param defaults: further ``spark.openlineage.*`` properties; a property that the user set is not
        changed
    :param existing_transport: whether the user's own transport is kept or removed
    :param submit_opts: ``SPARK_SUBMIT_OPTS`` of the environment; None if the variable would not
        reach the driver
    :param is_quiet: whether to add the JVM options of :data:`QUIET_JVM`; False if they would
        replace options of the user's that are not known, or if the JVM has been started already
    :param observation: the observer's settings; None if the driver is not observed
    :param sending: the properties of the transport by which the listener sends its events to the
        worker, as for :func:`with_collecting`; empty if the listener can write its events to
        ``events_path``
    """

    jars: tuple[str, ...]
    events_path: str
    application_run_id: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    existing_transport: ExistingTransport = ExistingTransport.KEEP
    submit_opts: str | None = None
    is_quiet: bool = True
    observation: Observation | None = None
    sending: Mapping[str, str] = field(default_factory=dict)


def inject(submission: Submission, injection: Injection) -> Submission:
    """Add the listener, the observer and their configuration to a submission.

    :raise ListenerError: if the listener cannot be added; the message has the reason
    """
    submission = _with_listener(submission)
    submission = _with_jars(submission, injection.jars)
    ours = injection.sending or {"type": "file", "location": injection.events_path}
    submission = with_collecting(submission, ours, injection.existing_transport)
    submission = _with_defaults(submission, injection)
    submission = _with_observer(submission, injection.observation)
    if not injection.is_quiet:
        return submission
    return _with_quiet_jvm(submission, injection.submit_opts)


def injected_names(before: Submission, after: Submission) -> tuple[str, ...]:
    """Give the names (never the values) of the properties that injection added or changed.

    The names also include changed environment variables (``env:…``), ``jars`` and ``py_files``.

    :param before: the submission before the injection
    :param after: the submission after the injection
    """
    changes = (
        ("", before.conf, after.conf),
        ("", before.in_file, after.in_file),
        ("env:", before.env_vars, after.env_vars),
    )
    names = {
        f"{prefix}{key}"
        for prefix, old, new in changes
        for key, value in new.items()
        if old.get(key) != value
    }
    names |= {f for f in ("jars", "py_files") if getattr(after, f) != getattr(before, f)}
    return tuple(sorted(names))


def _with_listener(submission: Submission) -> Submission:
    key = "spark.extraListeners"
    listeners = listed(submission.value(key))
    if LISTENER_CLASS in listeners:
        return submission
    return submission.with_conf({key: ",".join([*listeners, LISTENER_CLASS])})


def _with_jars(submission: Submission, jars: tuple[str, ...]) -> Submission:
    """Append jars to the list that Spark would use: ``--jars``, or else ``spark.jars``.

    :param jars: the entries to append; an entry that the list has already is not repeated
    """
    key = "spark.jars"
    jars_of_user = submission.listed_jars()
    missing = [jar for jar in jars if jar not in jars_of_user]
    if not missing:
        return submission
    text = ",".join([*_raw(submission.jars, jars_of_user), *missing])
    if not submission.jars and key not in submission.conf and scrub(text) != text:
        # A URL with credentials that the user had in a file is passed in a file.
        return submission.with_file({key: text}, set())
    return replace(submission.without_conf(key), jars=text)


def _raw(flag: str | None, entries: list[str]) -> list[str]:
    """Give the user's own entries of a list, to which this package appends its entries.

    The text of a flag is given unchanged, as one entry, because Spark keeps the spaces around the
    entries of a flag; it drops the spaces around the entries of a property.

    :param flag: the text of the flag, such as ``--jars``; None or empty if the user does not set it
    :param entries: the entries that Spark would use, of the flag or else of the property
    """
    return [flag] if flag and entries else entries


def can_observe(submission: Submission) -> bool:
    """Whether the job has a Python driver; for others, spark-submit refuses ``--py-files``."""
    return submission.application.endswith(".py")


def takes_tag(submission: Submission, tag: str) -> bool:
    """Whether Delta commits can get this application's tag: the user sets no other metadata.

    :param tag: the text that marks the commits of this application
    """
    return submission.value(DELTA_TAG) in (None, tag)


def _with_observer(submission: Submission, observation: Observation | None) -> Submission:
    """Append the observer to the list of py-files that Spark would use, and set its properties.

    The observer is the last entry, so that it hides no module of the user's own files. If the user
    sets Delta metadata, they are not replaced, and this application's commits cannot be
    distinguished from the commits of other applications.

    :param observation: the observer's settings; None if the driver is not observed
    """
    if observation is None or not can_observe(submission):
        return submission
    key = "spark.submit.pyFiles"
    files_of_user = listed(submission.py_files or submission.value(key))
    files = _raw(submission.py_files, files_of_user)
    if observation.zip not in files_of_user:
        files.append(observation.zip)
    conf = {f"{OBSERVER}observations": observation.path}
    if observation.deliver:
        conf |= {f"{OBSERVER}deliver": observation.deliver, f"{OBSERVER}run": observation.tag}
    if takes_tag(submission, observation.tag):
        conf |= {DELTA_TAG: observation.tag, f"{OBSERVER}tag": observation.tag}
    return replace(submission.without_conf(key).with_conf(conf), py_files=",".join(files))


def _with_defaults(submission: Submission, injection: Injection) -> Submission:
    captured = listed(submission.value(f"{PREFIX}capturedProperties")) or list(_CAPTURED[:2])
    defaults = {
        f"{PREFIX}columnLineage.datasetLineageEnabled": "true",
        **injection.defaults,
    }
    values = {key: value for key, value in defaults.items() if submission.value(key) is None}
    values[f"{PREFIX}applicationRunId"] = injection.application_run_id
    values[f"{PREFIX}capturedProperties"] = ",".join(dict.fromkeys([*captured, *_CAPTURED[2:]]))
    return submission.with_conf(values)


def _with_quiet_jvm(submission: Submission, submit_opts: str | None) -> Submission:
    """Add the JVM options of :data:`QUIET_JVM`, which prevent stack traces in the driver's log.

    A property that the user has set is not changed.

    :param submit_opts: ``SPARK_SUBMIT_OPTS`` of the environment, to which the options are added;
        None if the variable would not reach the driver: then they are added by ``--conf``
    """
    if submit_opts is None:
        if submission.value(_JAVA_OPTIONS) is not None:
            return submission
        return submission.with_conf({_JAVA_OPTIONS: " ".join(QUIET_JVM)})
    opts = submission.env_vars.get(SUBMIT_OPTS, submit_opts)
    if (quiet := with_quiet_jvm(opts)) == opts:
        return submission
    return replace(submission, env_vars={**submission.env_vars, SUBMIT_OPTS: quiet})


def with_quiet_jvm(opts: str) -> str:
    """Append the JVM options of :data:`QUIET_JVM` to ``SPARK_SUBMIT_OPTS``, unless it has them.

    :param opts: the value of the environment variable
    """
    if QUIET_JVM[1] in opts.split():
        return opts
    # The user's options are not split and joined again, because that would change spaces in quotes.
    return " ".join([opts, *QUIET_JVM]).strip()
