"""A rule the other way round: what is to be written when a partition that its task reads was."""

from __future__ import annotations

from functools import cache
from itertools import islice, product
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.relation import MOST_CELLS, written
from airflow_provider_sparklineage.history.queries.patterns.steps import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from airflow_provider_sparklineage.history.queries.patterns.axes import Point
    from airflow_provider_sparklineage.history.queries.patterns.relation import Points, Relation


class Following:
    """The given partitions of a relation from which a found one follows, for many found ones.

    :param known: cells of the given side: axes that no rule says anything of take their values
        from them, and others their step: a report by week is written on Mondays only
    """

    def __init__(self, relation: Relation, known: Collection[str] = ()) -> None:
        self._relation = relation
        self._axes = relation.given.axes
        read = map(relation.given.read, () if relation.special else known)
        self._seen = [points for points in read if points is not None]
        # Of all axes, and of each set of them, once for all partitions that are asked about.
        self._step = cache(self._step_of)
        self._others = cache(self._others_of)

    def of(self, cell: str) -> list[str]:
        """List the given cells from which a found one follows."""
        at = self._relation.found.read(cell)
        if self._relation.special or at is None:
            return []
        sides = [self._inverse(n, at) for n in range(len(self._axes))]
        free = tuple(n for n, side in enumerate(sides) if side is None)
        bound = [
            [p for p in islice(side, MOST_CELLS) if step.has(p)]
            for n, side in enumerate(sides)
            if side is not None and (step := self._step(n))
        ]
        return written(self._relation.given, self._joined(bound, free))

    def _step_of(self, axis: int) -> Step | None:
        return Step.of(self._axes[axis].unit, [points[axis] for points in self._seen])

    def _others_of(self, free: tuple[int, ...]) -> Collection[Points]:
        if not free:
            return [()]
        return list(dict.fromkeys(tuple(points[n] for n in free) for points in self._seen))

    def _joined(
        self, bound: Iterable[Collection[Point]], free: tuple[int, ...]
    ) -> Iterator[Points]:
        for points, rest in product(list(product(*bound)), self._others(free)):
            values, fills = iter(points), iter(rest)
            yield tuple(next(fills if n in free else values) for n in range(len(self._axes)))

    def _inverse(self, axis: int, at: Points) -> Collection[Point] | None:
        """Give the points of a given axis that all of its links allow; None if they say nothing."""
        sides = [
            side
            for link, point in zip(self._relation.links, at, strict=True)
            if link.axis == axis and (side := link.rule.inverse(point)) is not None
        ]
        first = min(sides, key=len, default=None)
        if first is None or len(sides) == 1:
            return first
        return [p for p in islice(first, MOST_CELLS) if all(p in side for side in sides)]
