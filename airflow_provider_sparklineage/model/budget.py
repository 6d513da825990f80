"""The time that is left for lineage, asked for wherever it is spent.

A task waits for its lineage, so what takes long is cut, and what is cut is declared. The clock is
not asked here: whoever has one gives the seconds that are left.
"""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_UNITS = 500
"""Units of work between two looks at the clock: about a millisecond."""

MORE_TIME = (
    "raise [sparklineage] collect_timeout, or see the whole with `sparklineage show` on the "
    "capture bundle"
)
"""What a person can do, as a part of a sentence."""


TOO_LONG = "merging took too long"


def because(reason: object) -> str:
    """Write the end of a sentence on what was left out, with what a person can do, if anything.

    :param reason: of a :class:`SpentError`, or the error itself
    """
    fix = f"; {MORE_TIME}" if str(reason) == TOO_LONG else ""
    return f"because {reason}{fix}."


class SpentError(Exception):
    """Raised where there is no time left, or no room; the message is the reason in a few words."""


class Budget:
    """The time for a part of the work.

    :param left: gives the seconds that are left of it
    """

    def __init__(self, left: Callable[[], float] = lambda: math.inf) -> None:
        self._left = left
        self._units = 0

    @property
    def left(self) -> float:
        """Seconds that are left, less than nothing if none are; infinitely many if all may be."""
        return self._left()

    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self._left() <= 0

    def work(self, units: int = 1) -> None:
        """Count small units of work, and look at the clock now and then.

        :raise SpentError: if nothing is left
        """
        self._units += units
        if self._units >= _UNITS:
            self._units = 0
            self.check()

    def check(self) -> None:
        """Look at the clock.

        :raise SpentError: if nothing is left
        """
        if self.is_spent():
            raise SpentError(TOO_LONG)

    def part(self, share: float) -> Budget:
        """Give a share of what is left now; the rest is kept for what comes after it."""
        now = self._left()
        if math.isinf(now):
            return self
        kept = now * (1 - share)
        return Budget(lambda: self._left() - kept)


UNLIMITED = Budget()


@contextmanager
def garbage_collector_paused() -> Iterator[None]:
    """Spare the passes over all that is made meanwhile, which take longer than to make it.

    For work whose memory is bounded without the collector: of what merging makes, hardly anything
    is part of a cycle. Inside of another pause it does nothing. A timeout that fires in here leaves
    the collector as it was.
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
    """Have what is there now looked at by the next full pass, and by none of the quick ones.

    The first of those would go through all that was made meanwhile, and the next ones again.
    """
    if not gc.get_freeze_count():  # what somebody else froze stays so
        gc.freeze()
        gc.unfreeze()
