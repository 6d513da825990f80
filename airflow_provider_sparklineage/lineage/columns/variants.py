"""The sources of a column by the variants in which they come, and sets of columns as numbers.

Where each of 200 columns is made of 200 that are made of 200, there are 8 million ways, and only
40,000 edges. What is the same of many sources is done once here, for the set of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from airflow_provider_sparklineage.lineage.columns.combining import with_text, without_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def settled(
    parts: Sequence[tuple[Sequence[Variant], int]], budget: Budget
) -> list[tuple[Transformation, int]]:
    """Put texts into each other, but of sources that have too many variants.

    How many there are is found out before. It does not depend on what came first, and texts that
    nobody will see are not made.

    :param parts: variants, and a set of sources that have all of them
    :return: transformations with their sources, in the order in which each source has them
    :raise SpentError: if there is no time left
    """
    if len(parts) == 1 and len(parts[0][0]) == 1:  # most columns are made of one
        [((variant,), sources)] = parts
        return [(with_text(variant), sources)]
    variants = each_once(parts)
    budget.work(len(variants))
    many = in_more_than(MAX_VARIANTS, [sources for _, sources in variants])
    made: list[tuple[tuple[Transformation], int]] = []
    for variant, sources in variants:
        if few := sources & ~many:
            made.append(((with_text(variant),), few))
        if sources & many:
            made.append(((without_text(variant),), sources & many))
    return each_once(made)  # some are the same by now


def each_once(parts: Sequence[tuple[Sequence[V], int]]) -> list[tuple[V, int]]:
    """Give each variant with the sources that have not had it yet."""
    known: dict[V, int] = {}
    found = []
    for variants, sources in parts:
        for variant in variants:
            before = known.get(variant, 0)
            if new := sources & ~before:
                known[variant] = before | new
                found.append((variant, new))
    return found


def in_more_than(limit: int, sets: Sequence[int]) -> int:
    """Find the members that more than so many sets have: the sets are added up, digit by digit."""
    if len(sets) <= limit:
        return 0
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

    def edges(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        """Make edges of what :func:`settled` gives; equal ones are one object."""
        key = tuple(added)
        edges = self._edges.get(key)
        if edges is None:
            edges = self._edges[key] = self._made(key)
        return edges

    def _made(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        if len(added) == 1 or len({sources for _, sources in added}) == 1:
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
