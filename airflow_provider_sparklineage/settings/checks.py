"""The result of one check of a set-up, for commands and for a connection's test.

A message about the URL of a backend names the field that has to be corrected. The URL may be in a
connection's host, port and schema, in a host alone, or in a transport: that of a connection, of
Airflow's configuration, or of OpenLineage's. A person who reads the message knows neither which of
these was used nor its name, so each URL has a :class:`UrlPlace`.
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
    """Lineage arrives, but with a flaw that can be fixed."""
    FAILED = "failed"


class Check(Frozen, frozen=True):
    """One check of the set-up, with its result and the fix.

    :param name: the checked part of the set-up, in a few words
    :param message: the result, one sentence
    :param fix: the remedy, one sentence; empty if all is well

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


def failed(name: str, error: Exception) -> Check:
    """Make a failed check of an error, with the problem and the fix of this package's errors."""
    if isinstance(error, SparkLineageError):
        return Check(name, Status.FAILED, error.problem, error.fix)
    return Check(name, Status.FAILED, str(error))


_URL_PARTS = ("host", "port", "schema")


@dataclass(frozen=True)
class UrlPlace:
    """The names of the field of a URL, and of the field of its API key.

    :param url: the one field that has all of the URL; empty if its parts have fields of their own
    :param key: the field of the API key
    """

    url: str = ""
    key: str = "the connection's password"

    def of(self, *parts: str) -> str:
        """Name the field or fields of some parts of the URL.

        :param parts: of ``host``, ``port`` and ``schema``
        """
        if self.url:
            return self.url
        *first, last = [part for part in _URL_PARTS if part in parts]
        named = f"{', '.join(first)} and {last}" if first else last
        return f"the connection's {named}"


FIELDS = UrlPlace()
"""The connection's own fields, one for each part."""
