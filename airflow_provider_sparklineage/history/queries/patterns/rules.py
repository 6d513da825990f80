"""Rules from a point of one axis to points of another: what is found, given a partition.

A rule answers both ways: :meth:`Rule.of` which points follow from a given one, and
:meth:`Rule.inverse` from which ones a point follows. Each gives a ``range``, or the few there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.units import (
    TEXT,
    first_in,
    last_in,
    months_later,
    start_of,
)
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from airflow_provider_sparklineage.history.queries.patterns.axes import Point

_FARTHEST = 4_000_000_000
"""Of any number of a time: more minutes than there are in 9999 years, and then some."""


class Rule(Frozen, frozen=True):
    """A rule between two axes.

    :param given: unit of the axis that is known
    :param found: unit of the axis that follows
    """

    given: str
    found: str

    kind = ""
    order = 0
    """Simpler rules have a lower one, and win if others explain no more."""

    def of(self, point: Point) -> Collection[Point]:
        """Give the points that follow from one."""
        raise NotImplementedError

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give the points from which one follows; None if from any."""
        raise NotImplementedError

    def described(self, label: str) -> str:
        """Say the rule, for people; the label is the given dimension's."""
        raise NotImplementedError


class Equal(Rule, frozen=True):
    """The same text."""

    kind = "same"

    def of(self, point: Point) -> Collection[Point]:
        """Give the point itself."""
        return (point,)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give the point itself."""
        return (point,)

    def described(self, label: str) -> str:
        """Say it."""
        return label


class Bound(Frozen, frozen=True):
    """The first or last point of a span.

    :param anchor: unit of the period whose first (last) point it is; empty if it is always the
        same point
    :param shift: how many such periods away from the given point's own; or the point itself
    """

    anchor: str
    shift: int


class Span(Rule, frozen=True):
    """All points between two bounds, which move with the given point.

    Of equal units and bounds of that unit it is the same value, a value n away or a window of n.
    ``month`` of a day and the days of a month are spans from 0 to 0.
    """

    first: Bound
    last: Bound

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The kind of the rule, by its bounds."""
        shifts = (self.first.shift, self.last.shift)
        if not self.is_plain:
            return "span"
        if self.given != self.found:
            return "period" if self._is_coarser else "parts"
        if shifts == (0, 0):
            return "same"
        return "offset" if shifts[0] == shifts[1] else "window"

    @property
    def order(self) -> int:  # type: ignore[override]
        """How simple it is."""
        return {"same": 0, "offset": 1, "window": 2, "period": 4, "parts": 4, "span": 6}[self.kind]

    @property
    def is_plain(self) -> bool:
        """Whether both bounds are of the coarser of the two units: no calendar is in it."""
        return self.first.anchor == self.last.anchor and self.first.anchor in (
            self.given,
            self.found,
        )

    @property
    def _is_coarser(self) -> bool:
        return self.first.anchor == self.found

    def of(self, point: Point) -> range:
        """Give the points between the bounds; none if they are outside of the years there are."""
        try:
            return range(self._first(int(point)), self._last(int(point)) + 1)
        except (ValueError, OverflowError):
            return range(0)

    def inverse(self, point: Point) -> range:
        """Give the points whose span has it: both bounds only ever move forward."""
        at = int(point)
        return range(_least(lambda n: self._last(n) >= at), _least(lambda n: self._first(n) > at))

    def _first(self, point: int) -> int:
        bound = self.first
        if not bound.anchor:
            return bound.shift
        period = first_in(self.given, point, bound.anchor) + bound.shift
        return first_in(bound.anchor, period, self.found)

    def _last(self, point: int) -> int:
        bound = self.last
        period = last_in(self.given, point, bound.anchor) + bound.shift
        return last_in(bound.anchor, period, self.found)

    def described(self, label: str) -> str:
        """Say it: ``dt - 1 day``, ``dt - 6 days to dt``, ``month of dt``, ``days of month``."""
        first, last = self.first, self.last
        if self.kind in ("same", "offset"):
            return f"{label}{_shifted(first)}"
        if self.kind == "window":
            return f"{label}{_shifted(first)} to {label}{_shifted(last)}"
        if self.is_plain and first == last:
            named = f"{self.found} of {label}" if self._is_coarser else f"{self.found}s of {label}"
            return f"{named}{_shifted(first)}"
        return f"{self._bound('first', first, label)} to {self._bound('last', last, label)}"

    def _bound(self, which: str, bound: Bound, label: str) -> str:
        if not bound.anchor:
            return _point(self.found, bound.shift)
        if bound.anchor in (self.given, self.found):
            return f"{label}{_shifted(bound)}"
        return f"{which} {self.found} of the {bound.anchor} of {label}{_shifted(bound)}"


class Offsets(Rule, frozen=True):
    """Some points around the given one, with gaps between: a day, and the same of last week."""

    offsets: tuple[int, ...]

    kind = "offsets"
    order = 3

    def of(self, point: Point) -> Collection[Point]:
        """Give the points."""
        return tuple(int(point) + offset for offset in self.offsets)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give the points around which it is."""
        return tuple(int(point) - offset for offset in reversed(self.offsets))

    def described(self, label: str) -> str:
        """Say it: ``dt - 7 days, dt``."""
        return ", ".join(f"{label}{_shifted(Bound(self.found, one))}" for one in self.offsets)


class Months(Rule, frozen=True):
    """The same day so many months later, or that month's last: as SQL's ``add_months``."""

    months: int

    kind = "months"
    order = 5

    def of(self, point: Point) -> Collection[Point]:
        """Give the point."""
        try:
            return (months_later(self.found, int(point), self.months),)
        except (ValueError, OverflowError):
            return ()

    def inverse(self, point: Point) -> range:
        """Give the points: the last days of a longer month all lead to one."""
        at = int(point)
        later = self.months
        return range(
            _least(lambda n: months_later(self.found, n, later) >= at),
            _least(lambda n: months_later(self.found, n, later) > at),
        )

    def described(self, label: str) -> str:
        """Say it: ``dt - 1 month``."""
        return f"{label}{_shifted(Bound('month', self.months))}"


class Constant(Rule, frozen=True):
    """Always the same points."""

    points: tuple[Point, ...]

    kind = "constant"
    order = 7

    def of(self, point: Point) -> Collection[Point]:
        """Give them, whatever is given."""
        return self.points

    def inverse(self, point: Point) -> Collection[Point] | None:
        """From any, if it is one of them."""
        return None if point in self.points else ()

    def described(self, label: str) -> str:
        """Say it."""
        return f"always {', '.join(_point(self.found, one) for one in self.points[:5])}"


class Every(Rule, frozen=True):
    """All points that there are: the dimension says nothing."""

    kind = "every"
    order = 8

    def of(self, point: Point) -> Collection[Point]:
        """Give none: only the data knows them."""
        return ()

    def inverse(self, point: Point) -> Collection[Point] | None:
        """From any."""
        return None

    def described(self, label: str) -> str:
        """Say it."""
        return "every value"


def _least(holds: Callable[[int], bool]) -> int:
    """Find the least number from which on a condition holds, which it does somewhere."""
    low, high = -_FARTHEST, _FARTHEST
    while low < high:
        middle = (low + high) // 2
        try:
            is_enough = holds(middle)
        except (ValueError, OverflowError):  # outside of the years 1 to 9999
            is_enough = middle > 0
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


def _shifted(bound: Bound) -> str:
    if not bound.shift:
        return ""
    unit = "" if bound.anchor == "number" else f" {bound.anchor}{'s' * (abs(bound.shift) != 1)}"
    return f" {'-' if bound.shift < 0 else '+'} {abs(bound.shift)}{unit}"


def _point(unit: str, point: Point) -> str:
    if unit in (TEXT, "number"):
        return str(point)
    at = start_of(unit, int(point)).isoformat()
    return at[: {"year": 4, "month": 7, "day": 10, "week": 10, "hour": 13}.get(unit, 16)]
