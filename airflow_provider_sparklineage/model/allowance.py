"""The time and the memory that lineage may take; each stage checks both while it works.

A task waits for its lineage, so a stage that takes too long is cut short. Tasks share a machine, so
the memory for datasets, partitions, facets and so on has limits. A degradation in the event reports
the parts that are left out. The limits of memory are constants, so a replay gives the same event as
the task did. The limit of time holds only in the task: a replay has all the time that it needs.
This module reads no clock: the caller passes a function that gives the seconds that are left.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from collections.abc import Iterator


# --- when time or memory is up --------------------------------------------------------------------


TOO_LONG = "merging took too long"
_FIX = (
    "raise [sparklineage] collect_timeout, or see the whole with `sparklineage show` on the "
    "capture bundle"
)


def cut_short(text: str, reason: object = None) -> Degradation:
    """Make the degradation for a part of the lineage that was left out.

    The message has a fix only if more time would help.

    :param text: a sentence without a full stop, to which reason and fix are appended
    :param reason: the reason of a :class:`SpentError`, or the error itself; None if the text says
        that something took too long
    """
    because = "" if reason is None else f", because {reason}"
    fix = f"; {_FIX}" if reason is None or str(reason) == TOO_LONG else ""
    return Degradation(DegradationCode.COLLECTION_CUT, f"{text}{because}{fix}.")


class SpentError(Exception):
    """Raised when no time or memory is left; the message is the reason in a few words."""


# --- time -----------------------------------------------------------------------------------------


class Stage(float, Enum):
    """The stages in their order, each with its end, as a fraction of the time of all stages.

    If a stage ends early, the next stage may use the time that is left over. Merging ends after two
    thirds, so that enough time is left to make and send an event of the merged parts. Columns end
    before merging, so that enough time is left for datasets and partitions.
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

    :param left: a function that gives the seconds that are left, which drop at once to a few if
        Airflow ends the task; None if the time is unlimited
    :param after: the last stage that is already over; None if no stage is over
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

        :raise SpentError: if the stage is over
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
Work = Callable[[int], None]
"""Counts units of work of one stage; raises :class:`SpentError` if the stage is over."""


# --- memory ---------------------------------------------------------------------------------------


class Limit:
    """The limits of memory: numbers or bytes of each kind of object in one application."""

    FACET_BYTES = 32 * 1024 * 1024
    """Size of one facet; column lineage of that size has 100,000 edges. A kept event has 64 MiB."""
    FACETS_BYTES = 192 * 1024 * 1024
    """Size of all facets of an application, each distinct facet counted once."""
    STATEMENTS_BYTES = 32 * 1024 * 1024
    """Size of the SQL of all actions, each distinct statement counted once."""
    DATASETS = 50_000
    """Datasets of all actions, counted once for each action; each takes 10 to 25 KB of memory."""
    PARTITIONS = 500_000
    """Partitions in all records; each takes up to 1 KB. A repeated list counts as one partition."""
    TRANSFORMATIONS = 1_000_000
    """Transformations of columns of all writes, as reported and composed; each takes about 400
    bytes. A kept event can have a third of them."""
    FORWARDED_BYTES = 64 * 1024 * 1024
    """JSON of the facets of Spark's events that a task's event repeats; as objects they take ten
    times as much memory."""


class Bound:
    """Counts the objects of one kind, or their bytes, up to a limit.

    :ivar left: the number of objects or bytes that still fit
    """

    def __init__(self, limit: int) -> None:
        self.left = limit

    def takes(self, amount: int = 1) -> bool:
        """Count ``amount`` more and return True; count none and return False if they do not fit."""
        if amount > self.left:
            return False
        self.left -= amount
        return True


# --- the garbage collector ------------------------------------------------------------------------


@contextmanager
def garbage_collector_paused() -> Iterator[None]:
    """Switch the garbage collector off for a while, and on again after it.

    The collector's passes over many new objects take longer than making the objects. The pause is
    for work whose memory stays bounded without the collector: of the objects that merging makes,
    hardly any is part of a cycle. A pause inside another pause does nothing. The collector is also
    switched on again if a timeout is raised within the pause.
    """
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            _take_as_old()
            gc.enable()


def _take_as_old() -> None:
    """Move all present objects to the oldest generation, which only a full collection visits.

    Otherwise the first quick collection would visit all objects that were made during the pause,
    and the next collections would visit these objects again.
    """
    # Freezing and unfreezing moves objects to that generation. It is not done if other code has
    # frozen objects, because these would be unfrozen, too.
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
