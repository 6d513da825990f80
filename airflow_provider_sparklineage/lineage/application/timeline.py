"""What was observed, found again by the time of an action, at the cost of what is found."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

# Spark measures durations in ns and timestamps in ms, and at slightly different places.
SLACK = timedelta(milliseconds=20)


Span = tuple[datetime, datetime]


def overlap(one: Span, other: Span) -> bool:
    """Whether two things ran at the same time, and not one right after the other."""
    latest, earliest = max(one[0], other[0]), min(one[1], other[1])
    has_no_length = one[0] == one[1] or other[0] == other[1]
    return latest < earliest or (has_no_length and latest == earliest)


class Timeline(Generic[T]):
    """Things that have a time each, in the order in which they began.

    :param things: (started, ended, thing)
    """

    def __init__(self, things: Iterable[tuple[datetime, datetime, T]]) -> None:
        self._things = sorted(things, key=lambda thing: thing[0])
        self._started = [started for started, _, _ in self._things]
        self._all_ended = list(accumulate((ended for _, ended, _ in self._things), max))
        """Of each, when it and all before it had ended."""

    def during(self, started: datetime, ended: datetime | None) -> list[T]:
        """Choose those whose time overlaps that of an action, which may not have ended."""
        at = len(self._things) if ended is None else bisect_right(self._started, ended + SLACK)
        found = []
        while at and self._all_ended[at - 1] + SLACK >= started:
            at -= 1
            _, until, thing = self._things[at]
            if until + SLACK >= started:
                found.append(thing)
        return found[::-1]
