"""Rules that may hold between two axes: read off the runs, to be tried on all of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Bound,
    Constant,
    Equal,
    Months,
    Offsets,
    Rule,
    Span,
)
from airflow_provider_sparklineage.history.queries.patterns.units import (
    NUMBER,
    TEXT,
    UNITS,
    first_in,
    last_in,
    months_later,
    start_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis, Point

Points = tuple["Collection[Point]", "Collection[Point]"]
"""Of one run: distinct given points, and distinct found points; neither is empty."""

_BOUNDS = 6  # of each end: the most frequent; noise makes more, and each costs a trial
_FEW = 64  # points of an irregular set; more are no rule that anybody would write down
_CONSTANT = 1_000


def candidates(given: Axis, found: Axis, runs: Sequence[Points]) -> list[Rule]:
    """List rules between two axes, the most likely first of each kind."""
    rules: list[Rule] = []
    if given.unit == found.unit == TEXT:
        rules.append(Equal(TEXT, TEXT))
    elif TEXT not in (given.unit, found.unit) and _is_time(given) == _is_time(found):
        rules += _spans(given.unit, found.unit, runs)
        if given.unit == found.unit:
            rules += _offsets(given.unit, runs)
            rules += _months(given.unit, runs)
    return [*rules, *_constants(given.unit, found.unit, runs)]


def _is_time(axis: Axis) -> bool:
    return axis.unit in UNITS


def _spans(given: str, found: str, runs: Sequence[Points]) -> Iterable[Rule]:
    firsts: Counter[Bound] = Counter()
    lasts: Counter[Bound] = Counter()
    fixed: Counter[Bound] = Counter()
    anchors = _anchors(given, found)
    for points, others in runs:
        ends = (int(min(points)), int(max(points)), int(min(others)), int(max(others)))
        fixed[Bound("", ends[2])] += 1
        for anchor in anchors:
            starts, stops = _bounds(given, found, anchor, ends)
            firsts.update(starts)
            lasts.update(stops)
    # Of a month that is not over no run has found the last day.
    plain = Bound(anchors[0], 0)
    begins = [plain, *_top(firsts), *_widest(firsts, anchors[0]), *_top(fixed)[:1]]
    for first in dict.fromkeys(begins):
        for last in dict.fromkeys((plain, *_top(lasts))):
            if first.anchor != last.anchor or first.shift <= last.shift:
                yield Span(given, found, first, last)


def _anchors(given: str, found: str) -> Sequence[str]:
    if given == NUMBER:
        return (NUMBER,)
    return UNITS[max(UNITS.index(given), UNITS.index(found)) :]


def _bounds(
    given: str, found: str, anchor: str, ends: tuple[int, int, int, int]
) -> tuple[list[Bound], list[Bound]]:
    """Give the bounds that a run may have had, if it read from (to) an end of such a period."""
    low, high, first, last = ends
    try:
        begun = first_in(found, first, anchor)
        ended = last_in(found, last, anchor)
        starts = first_in(anchor, begun, found) == first
        stops = last_in(anchor, ended, found) == last
        shifts = (begun - first_in(given, low, anchor), ended - last_in(given, high, anchor))
    except (ValueError, OverflowError):
        return [], []
    return (
        [Bound(anchor, shifts[0])] if starts else [],
        [Bound(anchor, shifts[1])] if stops else [],
    )


def _top(bounds: Counter[Bound]) -> list[Bound]:
    return [bound for bound, _ in bounds.most_common(_BOUNDS)]


def _widest(firsts: Counter[Bound], anchor: str) -> list[Bound]:
    """Give the farthest: early runs of a window found less than all of it."""
    return sorted((b for b in firsts if b.anchor == anchor), key=lambda b: b.shift)[:1]


def _offsets(unit: str, runs: Sequence[Points]) -> Iterable[Rule]:
    sets = Counter(
        tuple(sorted(int(other) - int(next(iter(points))) for other in others))
        for points, others in runs
        if len(points) == 1 and 1 < len(others) <= _FEW
    )
    for offsets, _ in sets.most_common(2):
        if offsets[-1] - offsets[0] >= len(offsets):
            yield Offsets(unit, unit, offsets)


def _months(unit: str, runs: Sequence[Points]) -> Iterable[Rule]:
    if unit not in ("minute", "hour", "day"):
        return
    shifts: Counter[int] = Counter()
    for points, others in runs:
        if len(points) == len(others) == 1:
            shift = _months_between(unit, int(next(iter(points))), int(next(iter(others))))
            shifts.update(() if shift is None else (shift,))
    for shift, _ in shifts.most_common(2):
        yield Months(unit, unit, shift)


def _months_between(unit: str, point: int, other: int) -> int | None:
    try:
        at, to = start_of(unit, point), start_of(unit, other)
        months = (to.year - at.year) * 12 + to.month - at.month
        return months if months and months_later(unit, point, months) == other else None
    except (ValueError, OverflowError):
        return None


def _constants(given: str, found: str, runs: Sequence[Points]) -> Iterable[Rule]:
    sets = Counter(frozenset(others) for _, others in runs if len(others) <= _CONSTANT)
    for points, _ in sets.most_common(1):
        yield Constant(given, found, tuple(sorted(points)))
