"""The rule between two sets of partitions, and what follows from a partition on either side."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.queries.patterns.axes import Axes, Point
from airflow_provider_sparklineage.history.queries.patterns.rules import Every, Rule
from airflow_provider_sparklineage.history.queries.patterns.units import TEXT
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

Points = tuple[Point, ...]

MOST_CELLS = 100_000
"""That one question is answered with; more have no use, and a wide rule over wide axes has any."""

WHOLE, NONE = "whole", "none"


class Link(NamedTuple):
    """What one axis of the partitions that are found follows from."""

    axis: int
    """Which of the given axes."""
    rule: Rule


class Relation(Frozen, frozen=True):
    """How found partitions follow from given ones, axis by axis.

    :param given: axes of what is known, e.g. the partitions that were written
    :param found: axes of what follows, e.g. the partitions that were read
    :param links: one of each found axis, in their order
    :param special: ``whole`` if the whole dataset is found, ``none`` if no rule is known; then
        there are no links
    """

    given: Axes
    found: Axes
    links: tuple[Link, ...] = ()
    special: str = ""

    @property
    def kind(self) -> str:
        """The kind of the rule: of the axes' kinds the one that is farthest from the same value."""
        if self.special:
            return self.special
        timed = [link.rule for link in self.links if link.rule.found != TEXT]
        rules = [rule for rule in timed if rule.kind not in ("same", "constant", "every")]
        rules = rules or timed or [link.rule for link in self.links]
        return rules[0].kind if rules else WHOLE

    @property
    def kept(self) -> tuple[int, ...]:
        """Which found axes follow from anything."""
        return tuple(n for n, link in enumerate(self.links) if not isinstance(link.rule, Every))

    def described(self) -> str:
        """Say the rule, for people: ``dt = dt - 1 day, region = region``."""
        if self.special or not self.links:
            return {NONE: "no rule"}.get(self.special, "the whole dataset")
        each = zip(self.found.axes, self.links, strict=True)
        return ", ".join(
            f"{'/'.join(axis.labels)} = {link.rule.described(self.label(link))}"
            for axis, link in each
        )

    def label(self, link: Link) -> str:
        """Name the given axis of a link."""
        axes = self.given.axes
        return "/".join(axes[link.axis].labels) if axes else ""

    def boxes(self, given: Iterable[Points]) -> list[tuple[Collection[Point], ...]]:
        """Give what follows from points: of each box all combinations, on the kept axes."""
        links = [self.links[n] for n in self.kept]
        axes = [link.axis for link in links]
        distinct = dict.fromkeys(tuple(points[n] for n in axes) for points in given)
        each = (
            tuple(link.rule.of(at) for link, at in zip(links, points, strict=True))
            for points in distinct
        )
        return (
            [(merged,) for merged in _merged(box[0] for box in each)]
            if len(axes) == 1
            else [*dict.fromkeys(each)]
        )

    def expected(self, cells: Iterable[str], known: Collection[str] = ()) -> list[str]:
        """List the cells that follow from some.

        :param known: cells of the found side, which dimensions that say nothing take values from
        """
        given = [points for cell in cells if (points := self.given.read(cell)) is not None]
        if self.special or not given:
            return []
        expected = (points for box in self.boxes(given) for points in product(*box))
        if len(self.kept) < len(self.links):
            wanted = set(islice(expected, MOST_CELLS))
            read = dict(self._read(self.found, known))
            kept = self.on_kept(read.values())
            return [cell for cell, points in zip(read, kept, strict=True) if points in wanted]
        return written(self.found, expected)

    def on_kept(self, found: Iterable[Points]) -> Iterable[Points]:
        """Give points of all found axes on the kept ones."""
        kept = self.kept
        if len(kept) == len(self.links):
            return found
        return (tuple(points[n] for n in kept) for points in found)

    def _read(self, axes: Axes, cells: Iterable[str]) -> Iterator[tuple[str, Points]]:
        for cell in cells:
            points = axes.read(cell)
            if points is not None:
                yield cell, points


def product_of(boxes: Iterable[Sequence[Collection[Point]]]) -> Iterator[Points]:
    """Give all combinations of each box, up to :data:`MOST_CELLS`."""
    return islice((points for box in boxes for points in product(*box)), MOST_CELLS)


def written(axes: Axes, points: Iterable[Points]) -> list[str]:
    """Write points as cells, up to :data:`MOST_CELLS`."""
    cells: dict[str, None] = {}
    for one in islice(points, MOST_CELLS):
        try:
            cells[axes.write(one)] = None
        except (ValueError, OverflowError):  # outside of the years 1 to 9999
            continue
    return list(cells)


def _merged(sets: Iterable[Collection[Point]]) -> list[Collection[Point]]:
    """Join ranges that overlap or follow each other, and all sets that are no ranges."""
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
