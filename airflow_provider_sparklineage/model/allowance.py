"""The time and the memory that lineage may take, which its stages ask between two units of work.

A task waits for its lineage, so a stage that takes too long is cut short; and a task shares its
machine, so each kind of thing that is kept has a bound. A degradation in the event reports what is
left out. The bounds of memory are constants, so a replay gives the same as the task did; those of
time are the task's alone.
This module reads no clock: the caller passes a function that gives the seconds that are left.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import TOO_LONG, SpentError

if TYPE_CHECKING:
    from collections.abc import Callable

# --- time -----------------------------------------------------------------------------------------


class Stage(float, Enum):
    """The part of the time at which a stage is over; what a quick stage leaves, the next one has.

    Merging leaves a third, so that an event of the merged parts goes out; columns leave some of
    merging's time, because datasets and partitions must not wait for them.
    """

    READING = 1 / 3
    OBSERVATIONS = 1 / 2
    COLUMNS = 5 / 8
    MERGING = 2 / 3
    LITERALS = 7 / 10
    FACETS = 3 / 4
    EVENT_OF_BACKEND = 9 / 10
    EVENT = 1.0


class Allowance:
    """The time of all stages together.

    :param left: gives the seconds that are left, which may become fewer at once; None if the time
        is unlimited
    :param after: the stages up to this one are over already
    """

    def __init__(self, left: Callable[[], float] | None = None, after: Stage | None = None) -> None:
        self._left = left
        self._whole = left() / (1 - (after or 0)) if left else 0.0
        self._units = 0

    def is_over(self, stage: Stage) -> bool:
        """Whether no time is left for a stage."""
        return self._left is not None and self._left() <= self._whole * (1 - stage)

    def check(self, stage: Stage) -> None:
        """Check that some time is left for a stage.

        :raise SpentError: if a stage is over
        """
        if self.is_over(stage):
            raise SpentError(TOO_LONG)

    def work(self, stage: Stage, units: int = 1) -> None:
        """Count small units of work, and check the time after every :data:`_UNITS` units.

        :raise SpentError: if the stage is over
        """
        self._units += units
        if self._units >= _UNITS:
            self._units = 0
            self.check(stage)


_UNITS = 500
"""Units of work between two checks of the time: about a millisecond."""

UNLIMITED = Allowance()


# --- memory ---------------------------------------------------------------------------------------


MAX_FACETS_BYTES = 192 * 1024 * 1024
"""Size of all facets of an application, each distinct facet counted once."""
MAX_STATEMENTS_BYTES = 32 * 1024 * 1024
"""Size of the SQL of all actions, each distinct statement counted once."""
MAX_TRANSFORMATIONS = 1_000_000
"""A transformation takes about 400 bytes of memory. A task's event has room for a tenth of them."""
MAX_FORWARDED_BYTES = 64 * 1024 * 1024
"""JSON of all facets that an event repeats; as objects they take ten times as much memory."""


class Bound:
    """A bound of memory, which the object that keeps the things of one kind counts against.

    :param limit: the number of things, or their size in bytes
    :param reason: why things are left out once the limit is reached
    """

    def __init__(self, limit: int, reason: str = "") -> None:
        self.limit = limit
        self._reason = reason
        self._taken = 0

    def fits(self, amount: int) -> bool:
        """Whether so much more fits."""
        return self._taken + amount <= self.limit

    def require(self, amount: int) -> None:
        """Check that so much more fits.

        :raise SpentError: if it does not
        """
        if not self.fits(amount):
            raise SpentError(self._reason)

    def takes(self, amount: int = 1) -> bool:
        """Count so much more if it fits; False if it does not."""
        if not self.fits(amount):
            return False
        self._taken += amount
        return True
