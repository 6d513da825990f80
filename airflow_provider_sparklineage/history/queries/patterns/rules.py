"""Rules from the points of one axis to the points of another, and relations of several axes.

A relation has two sides. The *given* side has the partitions that a question starts from, e.g.
those that a run wrote; the *found* side has the partitions that follow from them, e.g. those that
the run read. A *given point* or *found point* is a point on an axis of that side.

A rule works both ways: :meth:`Rule.following` leads from a given point to the found points, and
:meth:`Rule.inverse` leads from a found point back to the given points. Each returns a ``range`` or
a short list.

A relation works both ways, too: :class:`Relation` leads from given to found partitions, and
:class:`InverseRelation` from a found partition to the given ones, e.g. to the partitions to write
after another run has written a partition that the task reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cache
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.queries.patterns.axes import (
    TEXT,
    Axes,
    Axis,
    Point,
    Step,
    first_in,
    last_in,
    months_later,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


_FARTHEST = 4_000_000_000
"""A limit for the numbers of all axes of times: 9999 years have fewer minutes."""


class Rule(Frozen, frozen=True):
    """A rule by which points on an axis follow from points on another axis.

    It leads from an axis of the given side to an axis of the found side; the module's docstring
    defines both sides. This base class of all rules is the rule for texts: the found text is the
    same as the given one.

    :param given: unit of the axis of the given partitions
    :param found: unit of the axis of the found partitions
    """

    given: str
    found: str

    kind = "same"
    order = 0
    """A simpler rule has a lower order; it is preferred to others that explain the same runs."""

    def following(self, point: Point) -> Collection[Point]:
        """Map a point of the given side (see the module) to the points that follow from it.

        These are points of the found side.
        """
        return (point,)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Map a point of the found side (see the module) to the points from which it follows.

        These are points of the given side.

        :return: None if it follows from every point
        """
        return (point,)

    def described(self, label: str) -> str:
        """Describe the rule in a short text.

        :param label: name of the axis from which the rule leads: ``dt``, or ``year/month`` if two
            dimensions form the axis
        """
        return label


class Bound(Frozen, frozen=True):
    """The first or last point of a span.

    :param anchor: unit of the period whose first (last) point this bound is; empty if the bound is
        always the same point
    :param shift: number of such periods from the period that contains the point of the given side;
        if the anchor is empty, the number of the bound's point
    """

    anchor: str
    shift: int


class Span(Rule, frozen=True):
    """A rule: all points between two bounds, which move with the point of the given side.

    If both units and both anchors are equal, the span is the same point, a point n units away, or a
    window of n points. The rules "month of a day" and "days of a month" are spans whose bounds both
    have shift 0.
    """

    first: Bound
    last: Bound

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The kind of the rule, which follows from the units of its axes and from its bounds.

        ========== ==============================================================================
        ``same``   the same point
        ``offset`` one point, some units away: ``dt - 1 day``
        ``window`` a fixed number of points: ``dt - 6 days to dt``
        ``period`` points of a coarser unit, such as the month of a day: ``month of dt``
        ``parts``  points of a finer unit, such as all days of a month: ``days of month``
        ``span``   any other: ``first day of the month of dt to dt``
        ========== ==============================================================================
        """
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
        """The rank of the rule among rules that explain the same runs; the lowest is preferred."""
        return {"same": 0, "offset": 1, "window": 2, "period": 4, "parts": 4, "span": 6}[self.kind]

    @property
    def is_plain(self) -> bool:
        """Whether both bounds have the same anchor: the coarser one of the two axes' units."""
        return self.first.anchor == self.last.anchor and self.first.anchor in (
            self.given,
            self.found,
        )

    @property
    def _is_coarser(self) -> bool:
        return self.first.anchor == self.found

    def following(self, point: Point) -> range:
        """Map a point of the given side (see the module) to the points between the bounds.

        These are points of the found side.

        :return: an empty range outside of the years 1 to 9999
        """
        try:
            return range(self._first(int(point)), self._last(int(point)) + 1)
        except (ValueError, OverflowError):
            return range(0)

    def inverse(self, point: Point) -> range:
        """Map a point of the found side (see the module) to the points whose span contains it.

        These are points of the given side. They are a range, which a bisection finds, because both
        bounds grow with the point of the given side.
        """
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
        """Describe the rule in a short text.

        E.g. ``dt - 1 day``, ``dt - 6 days to dt``, ``month of dt``, ``days of month``.

        :param label: name of the axis from which the rule leads: ``dt``, or ``month`` in the last
            example
        """
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
            return _point_text(self.found, bound.shift)
        if bound.anchor in (self.given, self.found):
            return f"{label}{_shifted(bound)}"
        return f"{which} {self.found} of the {bound.anchor} of {label}{_shifted(bound)}"


class Offsets(Rule, frozen=True):
    """A rule: a few points that are not all neighbours, such as a day and the day a week before.

    :param offsets: distances of these points of the found side from the point of the given side
        (see the module), in the unit of the axes
    """

    offsets: tuple[int, ...]

    kind = "offsets"
    order = 3

    def following(self, point: Point) -> Collection[Point]:
        """Give a point of the given side (see the module) plus each offset."""
        return tuple(int(point) + offset for offset in self.offsets)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give a point of the found side (see the module) minus each offset."""
        return tuple(int(point) - offset for offset in reversed(self.offsets))

    def described(self, label: str) -> str:
        """Describe the rule in a short text, ``dt - 7 days, dt`` if ``label`` is ``dt``."""
        return ", ".join(f"{label}{_shifted(Bound(self.found, one))}" for one in self.offsets)


class Months(Rule, frozen=True):
    """A rule: the same day some months later, or the last day of a shorter month.

    SQL's ``add_months`` does the same.

    :param months: number of months from the given point to the found point (see the module)
    """

    months: int

    kind = "months"
    order = 5

    def following(self, point: Point) -> Collection[Point]:
        """Give the point some months after a point of the given side (see the module).

        :return: () if outside of the years 1 to 9999
        """
        try:
            return (months_later(self.found, int(point), self.months),)
        except (ValueError, OverflowError):
            return ()

    def inverse(self, point: Point) -> range:
        """Give the points from which a point of the found side (see the module) follows.

        They can be several: if :attr:`months` is 1, then 28 February of a common year follows from
        28, 29, 30 and 31 January. They can also be none: 31 March follows from no day.
        """
        at = int(point)
        later = self.months
        return range(
            _least(lambda n: months_later(self.found, n, later) >= at),
            _least(lambda n: months_later(self.found, n, later) > at),
        )

    def described(self, label: str) -> str:
        """Describe the rule in a short text, ``dt - 1 month`` if ``label`` is ``dt``."""
        return f"{label}{_shifted(Bound('month', self.months))}"


class Constant(Rule, frozen=True):
    """A rule: the same points of the found side follow from each point of the given side.

    The module's docstring defines both sides.
    """

    points: tuple[Point, ...]

    kind = "constant"
    order = 7

    def following(self, point: Point) -> Collection[Point]:
        """Give the rule's own points, for any point of the given side (see the module)."""
        return self.points

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Tell whether a point of the found side (see the module) is one of the rule's own points.

        :return: None if it is, as it follows from every point of the given side; else ()
        """
        return None if point in self.points else ()

    def described(self, label: str) -> str:
        """Describe the rule by its first five points; ``label`` is not used."""
        return f"always {', '.join(_point_text(self.found, one) for one in self.points[:5])}"


class Every(Rule, frozen=True):
    """A rule for an axis of the found side: each point may follow from any given partition.

    The module's docstring defines both sides.
    """

    kind = "every"
    order = 8

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give None: the point may follow from every point of the given side (see the module)."""
        return None

    def described(self, label: str) -> str:
        """Describe the rule as ``every value``; ``label`` is not used."""
        return "every value"


def _least(holds: Callable[[int], bool]) -> int:
    """Find by bisection the least number for which a condition holds.

    The condition must be false for all smaller numbers, and true for all greater ones.
    """
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


def _point_text(unit: str, point: Point) -> str:
    if unit in (TEXT, "number"):
        return str(point)
    at = start_of(unit, int(point)).isoformat()
    return at[: {"year": 4, "month": 7, "day": 10, "week": 10, "hour": 13}.get(unit, 16)]


Points = tuple[Point, ...]

MOST_CELLS = 100_000
"""Greatest number of partitions in an answer: a wide rule could give too many to be of use."""

WHOLE, NONE = "whole", "none"


class Link(NamedTuple):
    """A rule of a relation, and the axis from which the rule leads."""

    axis: int
    """Index of the axis in :attr:`Relation.given`."""
    rule: Rule


class Relation(Frozen, frozen=True):
    """The relation between given and found partitions (see the module).

    It has a rule for each axis of the found side.

    :param given: axes of the given partitions, e.g. those that a run wrote
    :param found: axes of the found partitions, e.g. those that the run read
    :param links: a link for each axis of ``found``, in the order of the axes
    :param special: ``whole`` if the found side is the whole dataset, ``none`` if no rule is known;
        then there are no links
    """

    given: Axes
    found: Axes
    links: tuple[Link, ...] = ()
    special: str = ""

    @property
    def kind(self) -> str:
        """The kind of the relation: the kind of the rule of one axis.

        The first rule of times or numbers that is not ``same``, ``constant`` or ``every`` decides;
        else the first rule of times or numbers; else the first rule.
        """
        if self.special:
            return self.special
        timed = [link.rule for link in self.links if link.rule.found != TEXT]
        rules = [rule for rule in timed if rule.kind not in ("same", "constant", "every")]
        rules = rules or timed or [link.rule for link in self.links]
        return rules[0].kind if rules else WHOLE

    @property
    def kept(self) -> tuple[int, ...]:
        """The indexes of the axes of ``found`` whose rule is not :class:`Every`."""
        return tuple(n for n, link in enumerate(self.links) if not isinstance(link.rule, Every))

    @property
    def dependent(self) -> tuple[int, ...]:
        """The indexes of the axes of ``found`` whose points depend on the given partitions.

        Their rule is neither :class:`Constant` nor :class:`Every`.
        """
        return tuple(n for n in self.kept if not isinstance(self.links[n].rule, Constant))

    def described(self) -> str:
        """Describe the relation in a short text: ``dt = dt - 1 day, region = region``."""
        if self.special or not self.links:
            return {NONE: "no rule"}.get(self.special, "the whole dataset")
        each = zip(self.found.axes, self.links, strict=True)
        return ", ".join(
            f"{'/'.join(axis.labels)} = {link.rule.described(self.label(link))}"
            for axis, link in each
        )

    def label(self, link: Link) -> str:
        """Name the axis from which a link leads: ``dt``, ``year/month``; "" if there is no axis."""
        axes = self.given.axes
        return "/".join(axes[link.axis].labels) if axes else ""

    def boxes(self, given: Iterable[Points]) -> list[tuple[Collection[Point], ...]]:
        """Apply the rules to given points (see the module); return the found points as boxes.

        A box has a set of points for each axis of :attr:`kept`, and stands for all combinations of
        these points. Boxes with ranges that differ on one axis only are merged; others may overlap.
        """
        links = [self.links[n] for n in self.kept]
        axes = [link.axis for link in links]
        distinct = dict.fromkeys(tuple(points[n] for n in axes) for points in given)
        each = (
            tuple(link.rule.following(at) for link, at in zip(links, points, strict=True))
            for points in distinct
        )
        if len(axes) == 1:
            return [(merged,) for merged in _merged(box[0] for box in each)]
        boxes = [box for box in dict.fromkeys(each) if all(box)]
        for n, link in enumerate(links):
            # Only these ranges can overlap, and to merge others first could keep them apart.
            if isinstance(link.rule, Span) and any(len(box[n]) > 1 for box in boxes):
                boxes = _merged_along(n, boxes)
        return boxes

    def on_kept(self, found: Iterable[Points]) -> Iterable[Points]:
        """Reduce found points (see the module) to their coordinates on the axes of :attr:`kept`."""
        kept = self.kept
        if len(kept) == len(self.links):
            return found
        return (tuple(points[n] for n in kept) for points in found)


def product_of(boxes: Iterable[Sequence[Collection[Point]]]) -> Iterator[Points]:
    """Yield all combinations of one point from each set of a box, for each of the boxes.

    :return: at most :data:`MOST_CELLS` combinations
    """
    return islice((points for box in boxes for points in product(*box)), MOST_CELLS)


def written(axes: Axes, points: Iterable[Points]) -> list[str]:
    """Convert points on ``axes`` to canonical texts of partitions, at most :data:`MOST_CELLS`.

    Points with a time outside of the years 1 to 9999 are left out.
    """
    cells: dict[str, None] = {}
    for one in islice(points, MOST_CELLS):
        try:
            cells[axes.write(one)] = None
        except (ValueError, OverflowError):  # outside of the years 1 to 9999
            continue
    return list(cells)


def _merged(sets: Iterable[Collection[Point]]) -> list[Collection[Point]]:
    """Join ranges that overlap or touch, and join all other sets into one set."""
    ranges, points = [], set()
    for one in sets:
        if isinstance(one, range):
            ranges.append(one)
        else:
            points |= set(one)
    joined: list[Collection[Point]] = [points] if points else []
    for one in sorted((r for r in ranges if r), key=lambda r: r.start):
        last = joined[-1] if joined else None
        if isinstance(last, range) and one.start <= last.stop:
            joined[-1] = range(last.start, max(last.stop, one.stop))
        else:
            joined.append(one)
    return joined


def _merged_along(
    axis: int, boxes: Iterable[tuple[Collection[Point], ...]]
) -> list[tuple[Collection[Point], ...]]:
    """Join boxes that differ only on one axis, as far as their ranges on this axis can be joined.

    :param axis: index of this axis
    :param boxes: boxes as :meth:`Relation.boxes` gives them
    """
    ranges = defaultdict(list)
    for box in boxes:
        ranges[box[:axis], box[axis + 1 :]].append(box[axis])
    return [
        (*before, joined, *after)
        for (before, after), on_axis in ranges.items()
        for joined in _merged(on_axis)
    ]


class InverseRelation:
    """The inverse of a relation: which of some given partitions lead to a found (e.g. read) one.

    The module's docstring defines both sides. All that a found partition can follow from may be far
    more than there is to choose among: of a total since the first day, every later day. So only the
    given partitions in question are looked at, e.g. those that are due, by their points on the axis
    on which the fewest points lead to the found partition.

    :param among: the given partitions in question, each as its values by dimension. A partition may
        lack the dimensions of an axis, and stands for all of its points then
    :param known: canonical texts of known given partitions. If no rule uses an axis of the given
        partitions, the points on this axis are those of the known partitions. On the other axes,
        only points on the regular step of the known partitions lead to others, e.g. only Mondays
        for a weekly report
    """

    def __init__(
        self,
        relation: Relation,
        among: Sequence[Mapping[str, str]],
        known: Collection[str] = (),
    ) -> None:
        self._relation = relation
        self._axes = relation.given.axes
        read = map(relation.given.read, () if relation.special else known)
        self._known = [points for points in read if points is not None]
        columns = [[points[n] for points in self._known] for n in range(len(self._axes))]
        steps = zip(self._axes, columns, strict=True)
        self._steps = [Step.of(axis.unit, column) for axis, column in steps]
        # The values of axes that no rule uses are found only once, and not for each partition.
        self._others = cache(self._others_of)
        self._among = [
            _OnAxes(values, [_point(axis, values) for axis in self._axes])
            if values.keys() <= relation.given.labels
            else None
            for values in among
        ]
        self._numbers = [_Numbers(self._among, n) for n in range(len(self._axes))]

    def leading_to(self, cell: str) -> list[int]:
        """Give the numbers of those of the partitions in question that lead to a found partition.

        :param cell: canonical text of the found partition
        :return: places in ``among``, in their order; [] if :attr:`Relation.special` is not empty,
            or if the axes of the found side cannot read ``cell``
        """
        at = self._relation.found.read(cell)
        if self._relation.special or at is None:
            return []
        sides = [self._sides(n, at) for n in range(len(self._axes))]
        bound = [n for n, of_axis in enumerate(sides) if of_axis]
        free = tuple(n for n, of_axis in enumerate(sides) if not of_axis)
        numbers: Iterable[int] = range(len(self._among))
        if bound:
            fewest = min(bound, key=lambda n: min(map(len, sides[n])))
            numbers = sorted(self._numbers[fewest].inside(_smallest(sides[fewest])))
        return [
            number
            for number in numbers
            if (one := self._among[number]) is not None
            and all(self._is_inside(n, one, sides[n]) for n in bound)
            and self._is_known(one, free)
        ]

    def _sides(self, axis: int, at: Points) -> list[Collection[Point]]:
        """Give the given points on one axis that can lead to a found partition (see the module).

        :param axis: index of this axis in :attr:`Relation.given`
        :param at: the found partition: one point for each axis of :attr:`Relation.found`
        :return: collections that must have the point, all of them; [] if every point leads to it
        """
        return [
            side
            for link, point in zip(self._relation.links, at, strict=True)
            if link.axis == axis and (side := link.rule.inverse(point)) is not None
        ]

    def _is_inside(self, axis: int, one: _OnAxes, sides: Sequence[Collection[Point]]) -> bool:
        def leads(point: Point) -> bool:
            return self._steps[axis].has(point) and all(point in side for side in sides)

        point = one.points[axis]
        if point is not None:
            return leads(point)
        some = islice(_smallest(sides), MOST_CELLS)
        return any(leads(each) and one.agrees(self._axes[axis], each) for each in some)

    def _is_known(self, one: _OnAxes, free: tuple[int, ...]) -> bool:
        """Whether a known partition has the same values on the axes that no rule uses."""
        others = self._others(free)
        own = tuple(one.points[n] for n in free)
        if None not in own:
            return own in others
        axes = [self._axes[n] for n in free]
        return any(all(map(one.agrees, axes, each)) for each in others)

    def _others_of(self, free: tuple[int, ...]) -> Collection[Points]:
        return {tuple(points[n] for n in free) for points in self._known} if free else {()}


def _smallest(sides: Iterable[Collection[Point]]) -> Collection[Point]:
    return min(sides, key=lambda side: len(side))


class _OnAxes(NamedTuple):
    """A given partition by its points on the axes.

    :param values: its values by dimension
    :param points: its point on each axis; None for an axis of which it lacks a dimension
    """

    values: Mapping[str, str]
    points: Sequence[Point | None]

    def agrees(self, axis: Axis, point: Point) -> bool:
        """Whether the partition can have a point: of all dimensions of the axis that it has."""
        try:
            written = axis.write(point)
        except (ValueError, OverflowError):  # outside of the years 1 to 9999
            return False
        return all(self.values.get(label, value) == value for label, value in written.items())


def _point(axis: Axis, values: Mapping[str, str]) -> Point | None:
    return axis.read(values) if values.keys() >= set(axis.labels) else None


class _Numbers:
    """The numbers of given partitions by their point on one axis."""

    def __init__(self, among: Iterable[_OnAxes | None], axis: int) -> None:
        self._by_point: dict[Point | None, list[int]] = defaultdict(list)
        for number, one in enumerate(among):
            if one is not None:
                self._by_point[one.points[axis]].append(number)
        self._without = self._by_point.pop(None, [])
        self._ordered = sorted(point for point in self._by_point if isinstance(point, int))

    def inside(self, side: Collection[Point]) -> Iterator[int]:
        """Yield the numbers of the partitions with a point that a collection has.

        Those that lack the axis are yielded, too.
        """
        points: Iterable[Point | None] = side
        if isinstance(side, range):
            begin, end = (bisect_left(self._ordered, n) for n in (side.start, side.stop))
            points = self._ordered[begin:end]
        elif len(side) > len(self._by_point):
            points = [point for point in self._by_point if point in side]
        yield from self._without
        for point in points:
            yield from self._by_point.get(point, ())
