"""How a task's try ends."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How the task ended; the event type of the merged event."""

    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
