"""The time that is left for lineage, which long work checks while it runs.

A task waits for its lineage, so work that takes too long is cut short, and a degradation in the
event reports the cut.
This module reads no clock: the caller passes a function that gives the seconds that are left.
"""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_UNITS = 500
"""Units of work between two checks of the time: about a millisecond."""

MORE_TIME = (
    "raise [sparklineage] collect_timeout, or see the whole with `sparklineage show` on the "
    "capture bundle"
)
"""The remedy for a person, as a part of a sentence."""


TOO_LONG = "merging took too long"


def because(reason: object) -> str:
    """Write "because …", the end of a sentence about a part that was left out.

    The text has the reason and, if there is one, the remedy.

    :param reason: the reason of a :class:`SpentError`, or the error itself
    """
    fix = f"; {MORE_TIME}" if str(reason) == TOO_LONG else ""
    return f"because {reason}{fix}."


class SpentError(Exception):
    """Raised when no time or memory is left; the message is the reason in a few words."""


class Budget:
    """The time for a part of the work.

    :param left: a function that gives the seconds that are left; by default the time is unlimited
    """

    def __init__(self, left: Callable[[], float] = lambda: math.inf) -> None:
        self._left = left
        self._units = 0

    @property
    def left(self) -> float:
        """Seconds that are left: zero or negative if the budget is spent, infinite if unlimited."""
        return self._left()

    def is_spent(self) -> bool:
        """Whether no time is left."""
        return self._left() <= 0

    def work(self, units: int = 1) -> None:
        """Count small units of work, and check the time after every :data:`_UNITS` units.

        :raise SpentError: if no time is left
        """
        self._units += units
        if self._units >= _UNITS:
            self._units = 0
            self.check()

    def check(self) -> None:
        """Check that some time is left.

        :raise SpentError: if no time is left
        """
        if self.is_spent():
            raise SpentError(TOO_LONG)

    def part(self, share: float) -> Budget:
        """Give a budget of a share of the time that is left now, and reserve the rest for later.

        :param share: a fraction from 0 to 1
        """
        now = self._left()
        if math.isinf(now):
            return self
        reserved = now * (1 - share)
        return Budget(lambda: self._left() - reserved)


UNLIMITED = Budget()


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
