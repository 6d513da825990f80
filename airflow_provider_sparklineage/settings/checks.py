"""The result of one check of a set-up, for commands and for a connection's test.

A message about the URL of a backend names the field that has to be corrected, which the user may
not know: the URL may be in a connection's host, port and schema, in its host alone, or in a
transport of a connection, of Airflow's configuration or of OpenLineage's configuration. So each URL
has a :class:`UrlPlace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import force_setattr

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.model.terms import Frozen


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    """Lineage arrives, but it has a flaw that the user can fix."""
    FAILED = "failed"


class Check(Frozen, frozen=True):
    """One check of the set-up, with its result and the fix.

    :param name: the checked part of the set-up, in a few words
    :param message: the result, one sentence
    :param fix: the remedy, one sentence; empty if the status is ``ok``

    Message and fix are scrubbed, so that they show no credentials of the texts that they quote.
    """

    name: str
    status: Status
    message: str
    fix: str = ""

    def __post_init__(self) -> None:
        """Remove the credentials from message and fix."""
        force_setattr(self, "message", scrub(self.message))
        force_setattr(self, "fix", scrub(self.fix))


def passed(name: str, message: str) -> Check:
    """Make a :class:`Check` whose status is ok."""
    return Check(name, Status.OK, message)


def warning(name: str, message: str, fix: str) -> Check:
    """Make a :class:`Check` whose status is a warning."""
    return Check(name, Status.WARNING, message, fix)


def failed(name: str, problem: Exception | str, fix: str = "") -> Check:
    """Make a failed :class:`Check` from a text or an error.

    :param fix: not used for an error of this package, because it has a fix of its own
    """
    if isinstance(problem, SparkLineageError):
        return Check(name, Status.FAILED, problem.problem, problem.fix)
    return Check(name, Status.FAILED, str(problem), fix)


_URL_PARTS = ("host", "port", "schema")


@dataclass(frozen=True)
class UrlPlace:
    """The names of the fields that have a URL and its API key, for messages.

    :param url: the field that has the whole URL; empty if host, port and schema are three fields
    :param key: the field that has the API key
    """

    url: str = ""
    key: str = "the connection's password"

    def name(self, *parts: str) -> str:
        """Name the field or fields that have these parts of the URL.

        :param parts: one or more of ``host``, ``port`` and ``schema``
        """
        if self.url:
            return self.url
        *first, last = [part for part in _URL_PARTS if part in parts]
        named = f"{', '.join(first)} and {last}" if first else last
        return f"the connection's {named}"


FIELDS = UrlPlace()
"""The fields of a connection whose host, port and schema are the parts of the URL."""
