"""Learning: finds the rule that pairs of partitions of past runs follow.

Each run has *given* partitions, e.g. those that it wrote, and *found* partitions, e.g. those that
it read. A rule tells which found partitions are expected for the given ones. Candidate rules are
derived from the runs, and each rule is tried on a sample of the runs.

A run *follows* a rule if it found all expected partitions that existed when the run began, and
found no others. A partition that was not written by then is not missing, so the first days of a
window of several days follow the rule too. Such runs count a little less, because a wider window
would explain them as well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import islice, product
from math import prod, sqrt
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries.patterns.axes import (
    NUMBER,
    TEXT,
    UNITS,
    Axes,
    Refined,
    axes_of,
    counted,
    first_in,
    last_in,
    months_later,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    NONE,
    WHOLE,
    Bound,
    Constant,
    Every,
    Link,
    Months,
    Offsets,
    Points,
    Relation,
    Rule,
    Span,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis, Point


PointsOfRun = tuple["Collection[Point]", "Collection[Point]"]
"""The distinct given points and the distinct found points of one run; neither is empty."""

_MOST_BOUNDS = 6  # the most frequent bounds of each end; more are noise, and each costs a trial
_FEW_POINTS = 64  # most points of an irregular set; users would not write a larger one as a rule
_MOST_CONSTANT = 1_000


def candidates(given: Axis, found: Axis, runs: Sequence[PointsOfRun]) -> list[Rule]:
    """List rules that could lead from points on the axis ``given`` to points on ``found``.

    :param runs: the given points and the found points of each run
    :return: of each kind of rule, the likeliest comes first
    """
    rules: list[Rule] = []
    if given.unit == found.unit == TEXT:
        rules.append(Rule(TEXT, TEXT))
    elif TEXT not in (given.unit, found.unit) and (given.unit in UNITS) == (found.unit in UNITS):
        rules += _spans(given.unit, found.unit, runs)
        if given.unit == found.unit:
            rules += _offsets(given.unit, runs)
            rules += _months(given.unit, runs)
    sets = Counter(frozenset(others) for _, others in runs if len(others) <= _MOST_CONSTANT)
    for points, _ in sets.most_common(1):
        rules.append(Constant(given.unit, found.unit, tuple(sorted(points))))
    return rules


def _spans(given: str, found: str, runs: Sequence[PointsOfRun]) -> Iterable[Rule]:
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
    # No run finds the last day of a month that is not over, so the plain bound is always tried.
    plain = Bound(anchors[0], 0)
    # The first bound that is farthest away, because early runs of a window find only a part.
    widest = sorted((b for b in firsts if b.anchor == anchors[0]), key=lambda b: b.shift)[:1]
    begins = [plain, *_top(firsts), *widest, *_top(fixed)[:1]]
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
    """Give the bounds of a span that leads from a run's given points to its found points.

    The bounds count periods of unit ``anchor``. There is a first (last) bound only if the first
    (last) found point of the run is the first (last) point of such a period.

    :param given: unit of the axis of the given points
    :param found: unit of the axis of the found points
    :param ends: the first and last given points, then the first and last found points
    :return: the first and the last bound, each as a list that is empty if there is no such bound
    """
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
    return [bound for bound, _ in bounds.most_common(_MOST_BOUNDS)]


def _offsets(unit: str, runs: Sequence[PointsOfRun]) -> Iterable[Rule]:
    sets = Counter(
        tuple(sorted(int(other) - int(next(iter(points))) for other in others))
        for points, others in runs
        if len(points) == 1 and 1 < len(others) <= _FEW_POINTS
    )
    for offsets, _ in sets.most_common(2):
        if offsets[-1] - offsets[0] >= len(offsets):
            yield Offsets(unit, unit, offsets)


def _months(unit: str, runs: Sequence[PointsOfRun]) -> Iterable[Rule]:
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


SHOWN = 20
"""Greatest number of partitions shown for a run that breaks a rule: enough to see the cause."""

_PARTIAL = 0.9  # score of a run that found less than expected, because the rest did not exist yet
_FEW_BOXES = 8  # most boxes that are looked at one by one
_MOST_POINTS = 1_000_000  # most points of a run's boxes; a run with more does not follow

Box = Sequence["Collection[Point]"]
"""A set of points for each axis; all combinations of these points are expected."""


class Pair(Frozen, frozen=True):
    """The partitions of a run from which a rule is learned: the given ones and the found ones.

    :param given: canonical texts of the given partitions, e.g. those that the run wrote
    :param found: canonical texts of the found partitions, e.g. those that the run read; None for
        the whole dataset
    :param at: a time at which the found partitions existed, e.g. that of the read; None if the time
        does not matter
    """

    run_id: str
    given: Collection[str]
    found: Collection[str] | None
    at: datetime | None = None


class Observed(NamedTuple):
    """The given (e.g. written) and the found (e.g. read) partitions of a run, as points on axes."""

    pair: Pair
    given: list[Points]
    found: set[Points]


class KnownPoints:
    """All partitions that a run could find; they are looked up by their points on some axes.

    :param since: for each partition, as points on all axes, the time from which on it exists; None
        if it has always existed
    :param kept: indexes of the axes by whose points partitions are looked up, see
        :attr:`.Relation.kept`
    """

    def __init__(self, since: Mapping[Points, datetime | None], kept: Sequence[int]) -> None:
        self._all: dict[Points, list[tuple[Points, datetime | None]]] = defaultdict(list)
        for points, at in since.items():
            self._all[tuple(points[n] for n in kept)].append((points, at))

    def inside(self, boxes: Sequence[Box]) -> Iterator[Points]:
        """Yield the points that are in any of the boxes, on the axes ``kept`` of this object.

        If the first side of a box is a range, only the points of this range are looked at: there
        are tens of thousands of hours, and rules of a year are tried on hundreds of runs.
        """
        if len(boxes) > _FEW_BOXES:
            yield from filter(_inside(boxes), self._sorted)
            return
        for box in boxes:
            side = box[0] if box else None
            begin, end = 0, len(self._sorted)
            if isinstance(side, range):
                begin = bisect_left(self._sorted, (side.start,))
                end = bisect_left(self._sorted, (side.stop,))
            yield from (self._sorted[n] for n in range(begin, end) if _has(box, self._sorted[n]))

    @cached_property
    def _sorted(self) -> list[Points]:
        return sorted(self._all)

    def there(self, kept: Points, at: datetime | None) -> Iterator[Points]:
        """Yield the known partitions, as points, that existed at a time.

        :param kept: their points on the axes ``kept`` of this object
        :param at: None for any time
        """
        for points, since in self._all.get(kept, ()):
            if at is None or since is None or since <= at:
                yield points


def judged(relation: Relation, run: Observed, known: KnownPoints) -> float:
    """Give a run's score: 1 if it follows the relation, 0.9 if it does so partly, else 0.

    The relation gives the partitions that are expected for the run's *given* ones; the run's
    *found* partitions are compared with them. The module's docstring explains these words, and
    how a run follows. It follows partly if some expected partitions were not there at the time of
    the run, so that it could not find them. Partitions are compared by their points on the axes
    whose rule is not :class:`Every` (:attr:`.Relation.kept`).

    :param run: the given and the found partitions of the run
    :param known: all partitions that a run could find
    """
    bounds.check()  # a rule is tried on each run, and there may be thousands of both
    boxes = relation.boxes(run.given)
    kept = set(relation.on_kept(run.found))
    if not all(map(_inside(boxes), kept)) or any(True for _ in _missing(run, known, boxes)):
        return 0
    return 1 if _has_all(kept, boxes) else _PARTIAL


def _has_all(kept: Collection[Points], boxes: Iterable[Box]) -> bool:
    # The size is compared first, because a box may stand for too many points to look at.
    return all(
        _size_of(box) <= len(kept) and all(points in kept for points in product(*box))
        for box in boxes
    )


def _size_of(box: Box) -> int:
    return prod(map(len, box))


def _inside(boxes: Sequence[Box]) -> Callable[[Points], bool]:
    """Give a function that tells whether a point is in any of the boxes.

    The function is fast even for many boxes. A box is explained at :data:`Box`.
    """
    if len(boxes) <= _FEW_BOXES:
        return lambda points: any(_has(box, points) for box in boxes)
    all_of_them = (points for box in boxes for points in product(*box))
    return set(islice(all_of_them, _MOST_POINTS)).__contains__


def _has(box: Box, points: Points) -> bool:
    return all(point in side for point, side in zip(points, box, strict=True))


def _missing(run: Observed, known: KnownPoints, boxes: Sequence[Box]) -> Iterator[Points]:
    """Yield the expected points that existed at the time of the run, but that the run did not find.

    Each is given once. The expected points are all points in the boxes, which may overlap.

    :param known: all partitions that a run could find
    """
    expected: Iterable[Points]
    yielded: set[Points] = set()
    if sum(map(_size_of, boxes)) <= 20 * len(run.found) + 1_000:
        expected = (points for box in boxes for points in product(*box))
    else:
        expected = known.inside(boxes)
    for kept in expected:
        for points in known.there(kept, run.pair.at):
            if points not in run.found and points not in yielded:
                yielded.add(points)
                yield points


def deviation(
    relation: Relation, run: Observed | None, pair: Pair, known: KnownPoints
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the missing and the unexpected partitions of a run that does not follow a relation.

    :param run: the points of ``pair``; None if the axes can parse no partition of the run
    :param known: all partitions that a run could find
    :return: canonical texts of both, at most :data:`SHOWN` of each
    """
    if run is None:
        return (), tuple(islice(pair.found or (), SHOWN))
    boxes = relation.boxes(run.given)
    missing = _missing(run, known, boxes)
    is_inside = _inside(boxes)
    found = sorted(run.found)
    kept = relation.on_kept(found)
    unexpected = (p for p, on_kept in zip(found, kept, strict=True) if not is_inside(on_kept))
    write = relation.found.write
    return (
        tuple(write(points) for points in islice(missing, SHOWN)),
        tuple(write(points) for points in islice(unexpected, SHOWN)),
    )


Deviations = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Canonical texts of each run's missing and unexpected partitions, by run_id.

The text ``*`` is the whole dataset.
"""


class Learned(NamedTuple):
    """A relation that was learned from runs, and the number of runs that follow it.

    :param support: number of runs that follow the relation
    :param seen: number of all runs
    :param exceptions: the missing and the unexpected partitions of each run that does not follow
        the relation, by run_id
    """

    relation: Relation
    support: int
    seen: int
    exceptions: Deviations

    @property
    def confidence(self) -> float:
        """The lower end of Wilson's 95 % interval for the share of runs that follow a relation."""
        return least_share(self.support, self.seen)


def least_share(good: int, of: int) -> float:
    """Give the lower end of Wilson's interval for a share; 0 if there are no cases.

    :param good: number of good cases
    :param of: number of all cases
    """
    if not of:
        return 0.0
    z = 1.96  # quantile of the normal distribution for 95 %
    share = good / of
    middle = share + z * z / (2 * of)
    spread = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return round(max(0.0, (middle - spread) / (1 + z * z / of)), 3)


_TRIED = 50_000  # points in the sample of runs on which candidates are tried
_RUNS = (10, 300)  # fewest and most runs of the sample


def learn(pairs: Sequence[Pair], known: Mapping[str, datetime] | None = None) -> Learned:
    """Find the relation that the partitions of most runs follow.

    :param pairs: the given and the found partitions of each run
    :param known: canonical texts of known partitions that a run could find, with the time from
        which on each exists; a partition in ``found`` of a pair exists from the pair's time on, or
        longer
    """
    parts = [pair for pair in pairs if pair.found is not None]
    given = axes_of(dict.fromkeys(cell for pair in pairs for cell in pair.given))
    if len(parts) * 2 < len(pairs):
        return _whole(given, pairs)
    found = axes_of(dict.fromkeys(cell for pair in parts for cell in pair.found or ()))
    best = _learned(given, found, parts, known or {})
    for variant in _variants(best, parts):
        other = _learned(*variant, parts, known or {})
        best = max(best, other, key=lambda one: (_explained(one), one.support))
    whole: Deviations = {pair.run_id: ((), ("*",)) for pair in pairs if pair.found is None}
    return Learned(best.relation, best.support, len(pairs), best.exceptions | whole)


def _whole(given: Axes, pairs: Sequence[Pair]) -> Learned:
    relation = Relation(given, Axes(frozenset(), ()), special=WHOLE)
    others: Deviations = {
        p.run_id: ((), tuple(islice(p.found, SHOWN))) for p in pairs if p.found is not None
    }
    return Learned(relation, len(pairs) - len(others), len(pairs), others)


def _explained(learned: Learned) -> int:
    """Count the dimensions of the found partitions whose values depend on given partitions.

    The module's docstring explains *found* and *given*. A relation has a rule for each axis of the
    found partitions; the rules of kind ``every`` and ``constant`` need no given partition.
    """
    relation = learned.relation
    return sum(len(relation.found.axes[n].labels) for n in relation.dependent)


def _variants(learned: Learned, pairs: Sequence[Pair]) -> Iterator[tuple[Axes, Axes]]:
    """Yield the axes of a learned relation with a change.

    The changes are: an axis counts periods since 1970; an axis of a day and its hour becomes two.
    There are no variants if :func:`_explained` counts all dimensions of the found partitions.

    :param pairs: the given and the found partitions of each run
    :return: pairs of the axes of the given and of the found partitions
    """
    given, found = learned.relation.given, learned.relation.found
    if _explained(learned) == len(found.labels):
        return
    for other in _counted(found, (cell for p in pairs for cell in p.found or ())):
        yield given, other
    for other in _counted(given, (cell for p in pairs for cell in p.given)):
        yield other, found
    cells = dict.fromkeys(cell for p in pairs for cell in p.given)
    apart = axes_of(dict.fromkeys(cell for p in pairs for cell in p.found or ()), is_refined=False)
    givens, founds = dict.fromkeys((given, axes_of(cells, is_refined=False))), (found, apart)
    for variant in product(givens, dict.fromkeys(founds)):
        if variant != (given, found):
            yield variant


def _counted(axes: Axes, cells: Iterable[str]) -> Iterator[Axes]:
    points = [at for cell in islice(cells, 1_000) if (at := axes.read(cell)) is not None]
    for n, axis in enumerate(axes.axes):
        if axis.unit == NUMBER:
            for other in counted(axis, [int(point[n]) for point in points]):
                yield Axes(axes.labels, (*axes.axes[:n], other, *axes.axes[n + 1 :]))


def _learned(
    given: Axes, found: Axes, pairs: Sequence[Pair], known: Mapping[str, datetime]
) -> Learned:
    runs = _runs(given, found, pairs)
    since = _since(found, runs, known)
    sample = _sample(runs)
    links = tuple(_best(n, given, found, sample, since) for n in range(len(found.axes)))
    relation = Relation(given, found, links)
    there = KnownPoints(since, relation.kept)
    follow = {run.pair.run_id for run in runs if judged(relation, run, there)}
    if len(follow) * 2 <= len(pairs):
        return Learned(Relation(given, found, special=NONE), 0, len(pairs), {})
    read = {run.pair.run_id: run for run in runs}
    exceptions = {
        pair.run_id: deviation(relation, read.get(pair.run_id), pair, there)
        for pair in pairs
        if pair.run_id not in follow
    }
    return Learned(relation, len(follow), len(pairs), exceptions)


def _runs(given: Axes, found: Axes, pairs: Iterable[Pair]) -> list[Observed]:
    """Convert the given (e.g. written) and the found (e.g. read) partitions of each run to points.

    A run is left out if none of its given partitions, or none of its found ones, is on the axes.

    :param given: the axes of the given partitions
    :param found: the axes of the found partitions
    """
    points: dict[tuple[bool, str], Points | None] = {}

    def read(axes: Axes, cells: Iterable[str]) -> Iterator[Points]:
        for cell in cells:
            key = (axes is given, cell)
            if key not in points:
                points[key] = axes.read(cell)
            if (one := points[key]) is not None:
                yield one

    each = (
        Observed(pair, list(read(given, pair.given)), set(read(found, pair.found or ())))
        for pair in pairs
    )
    return [run for run in each if run.given and run.found]


def _since(
    found: Axes, runs: Iterable[Observed], known: Mapping[str, datetime]
) -> dict[Points, datetime | None]:
    since: dict[Points, datetime | None] = {}
    for cell, at in known.items():
        points = found.read(cell)
        if points is not None:
            since[points] = at
    for run in runs:
        for points in run.found:
            before = since.get(points, run.pair.at)
            since[points] = min(before, run.pair.at) if before and run.pair.at else None
    return since


def _sample(runs: list[Observed]) -> list[Observed]:
    """Take runs at regular distances: at most 300, and fewer if the runs have many points."""
    size = sum(len(run.found) + len(run.given) for run in runs) / max(1, len(runs))
    count = min(_RUNS[1], max(_RUNS[0], int(_TRIED / max(1, size))))
    step = max(1, -(-len(runs) // count))
    return runs[::step]


def _best(
    n: int,
    given: Axes,
    found: Axes,
    runs: Sequence[Observed],
    since: Mapping[Points, datetime | None],
) -> Link:
    """Choose the rule for an axis of the found (e.g. read) partitions: that of the highest score.

    The score is the sum of :func:`judged` over the runs; if scores are equal, the simplest rule is
    chosen. The rule is :class:`Every` if no rule holds for more than half of the runs.

    :param n: index of the axis among those of ``found``
    :param given: the axes of the given (e.g. written) partitions
    :param since: for each found partition, the time from which on it exists; None if it has always
        existed
    """
    one = Axes(frozenset(), (found.axes[n],))
    alone = [run._replace(found={(points[n],) for points in run.found}) for run in runs]
    there = KnownPoints(_earliest(n, since), (0,))
    best: tuple[tuple[float, ...], Link] | None = None
    for axis, other in enumerate(given.axes):
        points = [({p[axis] for p in run.given}, {p[0] for p in run.found}) for run in alone]
        for rule in candidates(other, found.axes[n], points):
            link = Link(axis, rule)
            marks = _marks(Relation(given, one, (link,)), alone, there, -best[0][0] if best else 0)
            if marks is None or (
                _is_of_whole_days(found.axes[n], other) and marks.count(1) * 2 <= len(marks)
            ):
                continue
            key = (
                -sum(marks),
                rule.order,
                other.labels != one.axes[0].labels,
                *_width_and_distance(rule),
            )
            best = min(best or (key, link), (key, link), key=lambda pair: pair[0])
    return best[1] if best else Link(0, Every(TEXT, found.axes[n].unit))


def _marks(
    relation: Relation, runs: Sequence[Observed], known: KnownPoints, best: float
) -> list[float] | None:
    """Give the score of each run (:func:`judged`).

    :param best: the sum of the scores of the best relation so far
    :return: None, as soon as it is seen, if no more than half of the runs follow the relation, or
        if the sum of the scores is less than the best one
    """
    marks: list[float] = []
    total, failed = 0.0, 0
    for number, run in enumerate(runs, 1):
        marks.append(mark := judged(relation, run, known))
        total += mark
        failed += not mark
        if failed * 2 >= len(runs) or total + len(runs) - number < best - _ROUNDED:
            return None
    return marks


_ROUNDED = 1e-6  # sums of 0.9 in another order may differ


def _is_of_whole_days(found: Axis, given: Axis) -> bool:
    """Whether a rule would lead from a day to all of its hours, or from a month to its days.

    Such a rule says nothing unless runs find all of them: a task may write only hours 0 and 12.
    """
    units = (found.unit, given.unit)
    return isinstance(found, Refined) and units[1] in UNITS[UNITS.index(units[0]) + 1 :]


def _earliest(n: int, since: Mapping[Points, datetime | None]) -> dict[Points, datetime | None]:
    first: dict[Points, datetime | None] = {}
    for points, at in since.items():
        key = (points[n],)
        before = first.get(key, at)
        first[key] = min(before, at) if before and at else None
    return first


def _width_and_distance(rule: Rule) -> tuple[int, int]:
    """Give the width and the distance of a span; (0, 0) for another rule.

    Of equally good rules, the one with the least width and distance is chosen.
    """
    if not isinstance(rule, Span):
        return 0, 0
    return rule.last.shift - rule.first.shift, abs(rule.last.shift)
