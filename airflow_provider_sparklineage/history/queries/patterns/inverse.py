"""The inverse of a relation: from a partition that runs read to those that are written from it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.queries.patterns.axes import Step
from airflow_provider_sparklineage.history.queries.patterns.rules import MOST_CELLS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis, Point
    from airflow_provider_sparklineage.history.queries.patterns.rules import Points, Relation


class InverseRelation:
    """The inverse of a relation: which of some given partitions lead to a found (e.g. read) one.

    The docstring of :mod:`.rules` defines both sides. All that a found partition can follow from
    may be far more than there is to choose among: of a total since the first day, every later day.
    So only the given partitions in question are looked at, e.g. those that are due, by their points
    on the axis on which the fewest points lead to the found partition.

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
        """Give the given points on one axis that can lead to a found partition (see :mod:`.rules`).

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
