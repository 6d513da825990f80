"""The result of one check of a set-up, for commands and for a connection's test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_sparklineage.model.credentials import scrub


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    """Lineage arrives, but not as it could."""
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
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
        object.__setattr__(self, "message", scrub(self.message))
        object.__setattr__(self, "fix", scrub(self.fix))
