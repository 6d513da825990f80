"""Judging a relation by runs: which follow it, and what is missing from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.patterns.axes import Point
    from airflow_provider_sparklineage.history.queries.patterns.relation import Points, Relation

SHOWN = 20
"""Cells of one exception: enough to see what is wrong, of any number."""

_PARTIAL = 0.9  # of a run that found less than expected, since the rest was not there yet
_FEW = 8  # boxes that are looked at one by one
_MANY = 1_000_000  # points of boxes of one run; with more it does not follow

Box = Sequence["Collection[Point]"]
"""Points of each axis, of which all combinations are expected."""


class Pair(Frozen, frozen=True):
    """What one run had.

    :param given: cells that are known, e.g. those written
    :param found: cells that belong to them, e.g. those read; None for the whole dataset
    :param at: when it found them; None if that does not matter
    """

    run_id: str
    given: Collection[str]
    found: Collection[str] | None
    at: datetime | None = None


class Observed(NamedTuple):
    """A pair, with its cells as points."""

    pair: Pair
    given: list[Points]
    found: set[Points]


class Known:
    """Since when points are there, by the points on the axes that follow from anything.

    :param kept: which axes these are
    """

    def __init__(self, since: Mapping[Points, datetime | None], kept: Sequence[int]) -> None:
        self._all: dict[Points, list[tuple[Points, datetime | None]]] = defaultdict(list)
        for points, at in since.items():
            self._all[tuple(points[n] for n in kept)].append((points, at))

    def __iter__(self) -> Iterator[Points]:
        return iter(self._all)

    def there(self, kept: Points, at: datetime | None) -> Iterator[Points]:
        """Give the points that were there at a time."""
        for points, since in self._all.get(kept, ()):
            if at is None or since is None or since <= at:
                yield points


def judged(relation: Relation, run: Observed, known: Known) -> float:
    """Give 1 if a run follows, less if not all was there yet, 0 if it does not follow."""
    boxes = relation.boxes(run.given)
    kept = set(relation.on_kept(run.found))
    if not all(map(_inside(boxes), kept)) or _any(_missing(run, known, boxes)):
        return 0
    return 1 if _size(boxes) <= len(kept) else _PARTIAL


def _any(points: Iterator[Points]) -> bool:
    return next(points, None) is not None


def _size(boxes: Iterable[Box]) -> int:
    return sum(prod(map(len, box)) for box in boxes)


def _inside(boxes: Sequence[Box]) -> Callable[[Points], bool]:
    """Give what finds whether points are in a box; quickly, also where there are many."""
    if len(boxes) <= _FEW:
        return lambda points: any(_has(box, points) for box in boxes)
    all_of_them = (points for box in boxes for points in product(*box))
    return set(islice(all_of_them, _MANY)).__contains__


def _has(box: Box, points: Points) -> bool:
    return all(point in side for point, side in zip(points, box, strict=True))


def _missing(run: Observed, known: Known, boxes: Sequence[Box]) -> Iterator[Points]:
    """Find what is expected and was there, but not found."""
    expected: Iterable[Points]
    if _size(boxes) <= 20 * len(run.found) + 1_000:
        expected = (points for box in boxes for points in product(*box))
    else:
        expected = filter(_inside(boxes), known)
    for points in expected:
        yield from (p for p in known.there(points, run.pair.at) if p not in run.found)


def deviation(
    relation: Relation, run: Observed | None, pair: Pair, known: Known
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give what is missing from a run that does not follow, and what is unexpected in it.

    :param run: None if none of its cells are on the axes
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
