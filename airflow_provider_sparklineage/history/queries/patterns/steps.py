"""The step between points of an axis: every day, Mondays only, the first of each month."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.units import (
    TEXT,
    UNITS,
    first_in,
)
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.history.queries.patterns.axes import Point

_MOST = 0.8  # of the points agree: one run by hand at an odd time changes no schedule
_CALENDAR = ("month", "year")  # of no fixed length in finer units
_LONGEST = 200_000  # points of one walk


class Step(Frozen, frozen=True):
    """Points at a regular distance.

    :param unit: of the axis
    :param calendar: ``month`` or ``year``, if all begin one; else the unit
    :param size: so many of them from one point to the next; 0 if there is no regular step
    :param origin: one of the points, numbered in that calendar unit
    """

    unit: str
    calendar: str
    size: int = 0
    origin: int = 0

    @classmethod
    def of(cls, unit: str, points: Iterable[Point]) -> Step:
        """Find the step of points: the most frequent distance, if most are so many apart."""
        if unit == TEXT:
            return cls(unit, unit)
        numbers = sorted({int(point) for point in points})
        for calendar in _coarser(unit):
            steps = [n for point in numbers if (n := _in(calendar, unit, point)) is not None]
            if len(steps) >= max(2, _MOST * len(numbers)) and (found := _regular(steps)):
                return cls(unit, calendar, *found)
        return cls(unit, unit)

    def has(self, point: Point) -> bool:
        """Whether a point is on the step; all are, if there is none."""
        if not self.size:
            return True
        number = _in(self.calendar, self.unit, int(point))
        return number is not None and (number - self.origin) % self.size == 0

    def between(self, first: int, last: int) -> Iterator[int]:
        """Walk from one point to another, both included; nowhere without a step."""
        begin = _in(self.calendar, self.unit, first)
        if not self.size or begin is None:
            return
        for number in range(begin, begin + _LONGEST * self.size, self.size):
            point = first_in(self.calendar, number, self.unit)
            if point > last:
                return
            yield point


def _coarser(unit: str) -> tuple[str, ...]:
    """List the calendars that points may begin, the coarsest first, and the unit itself."""
    if unit not in UNITS or unit in _CALENDAR:
        return (unit,)
    return ("month", unit)


def _in(calendar: str, unit: str, point: int) -> int | None:
    if calendar == unit:
        return point
    try:
        number = first_in(unit, point, calendar)
        return number if first_in(calendar, number, unit) == point else None
    except (ValueError, OverflowError):
        return None


def _regular(steps: list[int]) -> tuple[int, int] | None:
    """Give the distance and a point of it."""
    distances = Counter(after - before for before, after in pairwise(steps))
    if not distances:
        return None
    size = min(d for d, n in distances.items() if n == max(distances.values()))
    origin, count = Counter(step % size for step in steps).most_common(1)[0]
    return (size, origin) if count >= _MOST * len(steps) else None
