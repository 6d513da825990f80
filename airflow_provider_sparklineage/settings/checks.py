"""The result of one check of a set-up, for commands and for a connection's test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    :param message: one sentence; without secrets
    :param fix: what to do, one sentence; empty if all is well
    """

    name: str
    status: Status
    message: str
    fix: str = ""
