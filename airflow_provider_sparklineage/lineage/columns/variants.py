"""The sources of a column by the variants in which they come, and sets of columns as numbers.

Where each of 200 columns is made of 200 that are made of 200, there are 8 million ways, and only
40,000 edges. What is the same of many sources is done once here, for the set of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from airflow_provider_sparklineage.lineage.columns.combining import with_text, without_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.lineage.columns.combining import Variant
    from airflow_provider_sparklineage.lineage.columns.edges import (
        Column,
        Edges,
        Transformation,
        Transformations,
    )
    from airflow_provider_sparklineage.model.budget import Budget

V = TypeVar("V")
MAX_VARIANTS = 32
"""Between two columns; where composing makes more, none of them keeps its description."""


class Variants(Generic[V]):
    """The variants of one column's edges, each with the set of sources that it is of.

    :ivar added: in the order in which each source came by them
    """

    def __init__(self) -> None:
        self.added: list[tuple[V, int]] = []
        self._sources: dict[V, int] = {}

    def add(self, variants: Iterable[V], sources: int) -> None:
        """Add variants of each of some sources."""
        for variant in variants:
            known = self._sources.get(variant, 0)
            if new := sources & ~known:
                self._sources[variant] = known | new
                self.added.append((variant, new))

    def of_more_than(self, limit: int) -> int:
        """Find the sources that have more than so many variants."""
        if len(self.added) <= limit:
            return 0
        return _in_more_than(limit, self._sources.values())


def settled(variants: Variants[Variant], budget: Budget) -> Variants[Transformation]:
    """Put texts into each other, but of sources that have too many variants.

    How many there are is found out before. It does not depend on what came first, and texts that
    nobody will see are not made.

    :raise SpentError: if there is no time left
    """
    many = variants.of_more_than(MAX_VARIANTS)
    found: Variants[Transformation] = Variants()  # some may be the same by then
    for variant, sources in variants.added:
        budget.work()
        if few := sources & ~many:
            found.add((with_text(variant),), few)
        if sources & many:
            found.add((without_text(variant),), sources & many)
    return found


def _in_more_than(limit: int, sets: Iterable[int]) -> int:
    """Find the members that more than so many sets have: the sets are added up, digit by digit."""
    digits: list[int] = []  # of all sums at once, the lowest first; each is a set
    for members in sets:
        carried = members
        for place, digit in enumerate(digits):
            digits[place], carried = digit ^ carried, digit & carried
            if not carried:
                break
        if carried:
            digits.append(carried)
    more, equal = 0, -1
    for place in reversed(range(max(len(digits), limit.bit_length()))):
        digit = digits[place] if place < len(digits) else 0
        if limit >> place & 1:
            equal &= digit
        else:
            more |= equal & digit
            equal &= ~digit
    return more


class ColumnSets:
    """Columns as bits, so that a set of them is a number; and the edges that are the same."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._bits: dict[Column, int] = {}
        self._members: dict[int, tuple[Column, ...]] = {}
        self._edges: dict[tuple[tuple[Transformation, int], ...], Edges] = {}
        self._lists: dict[Transformations, Transformations] = {}

    def of(self, column: Column) -> int:
        """Give the set that has one column."""
        bit = self._bits.get(column)
        if bit is None:
            bit = self._bits[column] = 1 << len(self._columns)
            self._columns.append(column)
        return bit

    def edges(self, found: Variants[Transformation]) -> Edges:
        """Make edges; equal ones are one object."""
        key = tuple(found.added)
        edges = self._edges.get(key)
        if edges is None:
            edges = self._edges[key] = self._made(key)
        return edges

    def _made(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        if len({sources for _, sources in added}) == 1:
            return dict.fromkeys(self._listed(added[0][1]), tuple(t for t, _ in added))
        lists: dict[Column, list[Transformation]] = {}
        for transformation, sources in added:
            for column in self._listed(sources):
                lists.setdefault(column, []).append(transformation)
        return {column: self._same(tuple(found)) for column, found in lists.items()}

    def _same(self, transformations: Transformations) -> Transformations:
        return self._lists.setdefault(transformations, transformations)

    def _listed(self, columns: int) -> tuple[Column, ...]:
        found = self._members.get(columns)
        if found is None:
            found = self._members[columns] = tuple(self._each(columns))
        return found

    def _each(self, columns: int) -> Iterator[Column]:
        while columns:
            lowest = columns & -columns
            yield self._columns[lowest.bit_length() - 1]
            columns ^= lowest
