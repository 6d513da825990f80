"""Where the listener sends its events: into the bundle, next to the user's own transport.

A backend's key that the user gave to Spark must not become an argument, which every user of the
machine can read: it travels in a properties file for this user only, and Spark has to redact
it.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

    from airflow_provider_sparklineage.spark.submit.submission import Submission

TRANSPORT = "spark.openlineage.transport."
OWN_TRANSPORT = "sparklineage"
"""Name of our file transport inside a composite one."""
USER_TRANSPORT = "user"
"""Name that the user's transport gets inside a composite one."""
REDACTION = "spark.redaction.regex"

REDACTED_BY_DEFAULT = "(?i)secret|password|token|access[.]?key"
"""Spark's own default, which a value of ours replaces (org.apache.spark.internal.config)."""

_REDACTED = (
    r"spark[.]openlineage[.]transport[.].*(auth|headers|urlParams|url|properties|sslContext)[.]?"
)


class ExistingTransport(StrEnum):
    """What becomes of a transport that the user configured for Spark."""

    KEEP = "keep"
    """Spark goes on sending to it."""
    COLLECT_ONLY = "collect_only"
    """It is left out: only the task's own event is sent."""


def to_file(location: str) -> dict[str, str]:
    """Give the properties of a transport that writes to a file."""
    return {"type": "file", "location": location}


def with_collecting(
    submission: Submission,
    ours: Mapping[str, str],
    existing: ExistingTransport = ExistingTransport.KEEP,
) -> Submission:
    """Have the events come to the worker, next to the user's own transport if there is one.

    :param ours: properties of the transport that they come by
    :raise ListenerError: if the user's transport would not work as a child of a composite one
    """
    user = {key for key in submission.keys() if key.startswith(TRANSPORT)}  # noqa: SIM118  (method)
    kind = submission.value(f"{TRANSPORT}type")
    own_child = f"{TRANSPORT}transports.{OWN_TRANSPORT}."
    if existing is ExistingTransport.COLLECT_ONLY:
        kind = None
    if kind is None:  # what is set for none would be ours
        submission = submission.without_conf(*user).with_file({}, user)
    alone = {f"{TRANSPORT}{k}": v for k, v in ours.items()}
    if kind is None or all(submission.value(key) == value for key, value in alone.items()):
        return without_secrets(submission.with_conf(alone))
    children = {f"{own_child}{k}": v for k, v in ours.items()}
    if submission.value(f"{own_child}type") is not None:  # injected before
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
    renamed = {f"{TRANSPORT}transports.{USER_TRANSPORT}.{k}": v for k, v in suffixes.items()}
    # What the user kept in a file stays in a file.
    argued = {
        new: value
        for new, value in renamed.items()
        if _original(new) in submission.conf and is_public(new, value)
    }
    filed = {new: value for new, value in renamed.items() if new not in argued}
    composite = {f"{TRANSPORT}type": "composite", f"{TRANSPORT}continueOnFailure": "true"}
    moved = submission.without_conf(*user)
    if filed:
        moved = moved.with_file(filed, user)
    return without_secrets(moved.with_conf(argued | composite | children))


def _original(key: str) -> str:
    return TRANSPORT + key.removeprefix(f"{TRANSPORT}transports.{USER_TRANSPORT}.")


def without_secrets(submission: Submission) -> Submission:
    """Move what may be a secret of a transport from the arguments to the file."""
    moved = {
        key: str(value)
        for key, value in submission.conf.items()
        if key.startswith(TRANSPORT) and not is_public(key, str(value))
    }
    if moved:
        submission = submission.without_conf(*moved).with_file(moved, set())
    return _redacting(submission)


def left_out(submission: Submission) -> Submission:
    """Leave the transport out of the arguments, if a secret is in it, so that nothing is sent.

    All of it: without a key the listener would send in vain, and without a URL throw each time.
    What the file has of a transport stays there, and a type among the arguments wins.
    """
    argued = {key: str(v) for key, v in submission.conf.items() if key.startswith(TRANSPORT)}
    if all(is_public(key, value) for key, value in argued.items()):
        return submission
    nowhere = {f"{TRANSPORT}type": "file", f"{TRANSPORT}location": os.devnull}
    return submission.without_conf(*argued).with_conf(nowhere)


_SHORTEST = 6
"""Characters of the shortest text that is hidden: `1` or `true` would be, all over a log."""
_SCHEME = re.compile(r"(?:Basic|Bearer|Token|ApiKey) +(\S+)", re.IGNORECASE)


def secrets(submission: Submission) -> tuple[str, ...]:
    """Values of the user's transport that may be secrets, wherever they stand.

    Of a URL the password counts as well, of an authorization what follows its scheme.
    """
    found: list[str] = []
    for key in _secret_keys(submission):
        value = submission.value(key) or ""
        url = _url(value) if "://" in value else None
        password = url.password if url else None
        scheme = _SCHEME.fullmatch(value)
        found += [value, password or "", scheme[1] if scheme else ""]
    return tuple(dict.fromkeys(text for text in found if len(text) >= _SHORTEST))


def _secret_keys(submission: Submission) -> list[str]:
    """Properties of transports that may be secrets."""
    return [
        key
        for key in sorted(submission.keys())
        if key.startswith(TRANSPORT) and not is_public(key, submission.value(key) or "")
    ]


_PUBLIC = re.compile(
    r"type|continueOnFailure|withThreadPool|timeoutInMillis|compression|location|topicName|"
    r"auth\.type|transports|headers\.(?i:Accept|Content-Type|User-Agent)"
)


def is_public(key: str, value: str) -> bool:
    """Whether a property of a transport is certainly no secret.

    :param key: the full name, of a transport alone or of a child of a composite one
    """
    suffix = re.sub(r"^transports\.[^.]+\.", "", key.removeprefix(TRANSPORT))
    if suffix in ("url", "endpoint"):
        url = _url(value)
        return url is not None and not url.query and scrub(value) == value
    return _PUBLIC.fullmatch(suffix) is not None


def _url(text: str) -> SplitResult | None:
    """Parse a URL; None if it is none."""
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _redacting(submission: Submission) -> Submission:
    """Make Spark redact secrets of a transport: its event log and its UI show all properties."""
    if not _secret_keys(submission):
        return submission
    regex = submission.value(REDACTION) or REDACTED_BY_DEFAULT
    if _REDACTED in regex:
        return submission
    return submission.with_conf({REDACTION: f"{regex}|{_REDACTED}"})


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
    # At the top level the listener takes a URL apart (path to endpoint, query to parameters).
    url = _url(keys.get("url", ""))
    return url is not None and url.path in ("", "/") and not url.query
