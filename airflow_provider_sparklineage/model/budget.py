"""The time to wait for a store or a server.

This module reads no clock: the caller passes a function that gives the seconds that are left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Budget:
    """The time that may be spent on waiting.

    :param left: a function that gives the seconds that are left; by default the time is unlimited
    """

    def __init__(self, left: Callable[[], float] = lambda: math.inf) -> None:
        self._left = left

    @property
    def left(self) -> float:
        """Seconds that are left: zero or negative if the budget is spent, infinite if unlimited."""
        return self._left()

    def is_spent(self) -> bool:
        """Whether no time is left."""
        return self._left() <= 0

    def part(self, share: float) -> Budget:
        """Give a budget for a share of the time that is left now; later work has the rest.

        :param share: the new budget's share of the time that is left now, from 0 to 1
        """
        now = self._left()
        if math.isinf(now):
            return self
        reserved = now * (1 - share)
        return Budget(lambda: self._left() - reserved)


UNLIMITED = Budget()
