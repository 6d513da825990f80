"""The result of one check of a set-up, for commands and for a connection's test."""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import force_setattr

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.terms import Frozen


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    """Lineage arrives, but not as it could."""
    FAILED = "failed"


class Check(Frozen, frozen=True):
    """What was checked, what was found, and what to do about it.

    :param name: of what was checked, in a few words
    :param message: one sentence
    :param fix: what to do, one sentence; empty if all is well

    Neither shows credentials, whatever they quote.
    """

    name: str
    status: Status
    message: str
    fix: str = ""

    def __post_init__(self) -> None:
        """Take the credentials out of what is for people."""
        force_setattr(self, "message", scrub(self.message))
        force_setattr(self, "fix", scrub(self.fix))
