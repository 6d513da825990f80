"""Columns, what is done with them on the way, and such edges: their union, and their two forms.

In the form ``compact``, an influence on all columns is given once (``ColumnLineage.dataset``); in
the form ``legacy``, with each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import field

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from airflow_provider_sparklineage.model.datasets import DatasetName


T = TypeVar("T")

DIRECT = "DIRECT"
INDIRECT = "INDIRECT"
# The stronger one first: what was aggregated once is an aggregation for good.
DIRECT_SUBTYPES = ("AGGREGATION", "TRANSFORMATION", "IDENTITY")
# CONDITION is the specification's word for what Spark's listener calls CONDITIONAL.
INDIRECT_SUBTYPES = frozenset(
    {"FILTER", "JOIN", "GROUP_BY", "SORT", "WINDOW", "CONDITION", "CONDITIONAL"}
)


class Transformation(NamedTuple):
    """How an input column influences an output column; the type is None where it is not known."""

    type: str | None = None
    subtype: str | None = None
    description: str = ""
    masking: bool = False


class Column(NamedTuple):
    """A column of a dataset."""

    dataset: DatasetName
    field: str


Transformations = tuple[Transformation, ...]
Edges = Mapping[Column, Transformations]
"""Nobody changes edges that are given on: of columns with equal ones they are often one object."""


class ColumnLineage(Frozen, frozen=True):
    """What the columns of one dataset are made of.

    :param fields: output column -> its input columns
    :param dataset: input columns that influence every output column (filters, joins, groupings):
        INDIRECT
    """

    fields: Mapping[str, Edges] = field(default_factory=dict)
    dataset: Edges = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.dataset)


def changed(
    edges: Edges, change: Callable[[Transformations], Transformations]
) -> dict[Column, Transformations]:
    """Change the transformations of edges, lists that are one object once; an edge needs some."""
    left = {id(ts): change(ts) for ts in lists(edges)}
    return {column: kept for column, ts in edges.items() if (kept := left[id(ts)])}


def count(edges: Edges) -> int:
    """Count transformations."""
    return sum(map(len, edges.values()))


def count_all(lineage: ColumnLineage) -> int:
    """Count the transformations of all columns, and of what influences them."""
    return count(lineage.dataset) + sum(mapped(lineage.fields, count).values())


def each_once(lineage: ColumnLineage) -> Iterable[Edges]:
    """Give all edges; those that are one object only once."""
    return {id(edges): edges for edges in (*lineage.fields.values(), lineage.dataset)}.values()


def mapped(fields: Mapping[str, Edges], of: Callable[[Edges], T]) -> dict[str, T]:
    """Find something of the edges of each column, once of those that are one object."""
    found: dict[int, T] = {}
    for edges in fields.values():
        if id(edges) not in found:
            found[id(edges)] = of(edges)
    return {name: found[id(edges)] for name, edges in fields.items()}


def lists(edges: Edges) -> Iterable[Transformations]:
    """Give the transformations of edges; lists that are one object only once."""
    return {id(ts): ts for ts in edges.values()}.values()


def joined(
    first: tuple[Transformation, ...], second: tuple[Transformation, ...]
) -> tuple[Transformation, ...]:
    """Join the transformations between the same two columns: a list without duplicates."""
    if not first or first == second:
        return second
    return tuple(dict.fromkeys((*first, *second)))


def union(first: Edges, second: Edges) -> dict[Column, tuple[Transformation, ...]]:
    """Unite edges; several transformations between two columns stay a list without duplicates."""
    united = dict(first)
    unite_into(united, second)
    return united


def unite_into(edges: dict[Column, tuple[Transformation, ...]], others: Edges) -> None:
    """Add edges to a dict of them, in time of the length of what is added."""
    for column, transformations in others.items():
        edges[column] = joined(edges.get(column, ()), transformations)


# --- the two forms --------------------------------------------------------------------------------


ROW_SUBTYPES = frozenset({"FILTER", "JOIN", "GROUP_BY", "SORT"})
"""What operators do to rows; the other INDIRECT subtypes are of one column's expression."""


def expand(lineage: ColumnLineage) -> ColumnLineage:
    """Give what influences all columns with each of them, as listeners before 1.37 do by default.

    Where there are no columns to give it with, it stays as it is.
    """
    if not lineage.fields or not lineage.dataset:
        return lineage
    fields = mapped(lineage.fields, lambda edges: union(edges, lineage.dataset))
    return ColumnLineage(fields)


def compact(lineage: ColumnLineage, subtypes: Collection[str] = INDIRECT_SUBTYPES) -> ColumnLineage:
    """Give once which INDIRECT influences there are on each and every column.

    Exactly those are taken from the columns, and what the dataset has already; :func:`expand`
    gives them back, up to order. A column that had no others stays, with no edges.

    :param subtypes: which INDIRECT subtypes to look for
    """
    everywhere = union(lineage.dataset, _common_influences(lineage, subtypes))
    if not everywhere:
        return lineage
    fields = mapped(lineage.fields, lambda edges: _edges_without(edges, everywhere))
    return ColumnLineage(fields, everywhere)


MAX_LEGACY_EDGES = 500
"""Of an output in the legacy form: a backend that keeps every edge can never take one back."""


def legacy(lineage: ColumnLineage) -> ColumnLineage | None:
    """Expand, unless that makes too many edges; then there is no legacy form."""
    count = sum(map(len, lineage.fields.values()))
    if count <= MAX_LEGACY_EDGES and len(lineage.dataset) * len(lineage.fields) <= MAX_LEGACY_EDGES:
        expanded = expand(lineage)
        count = sum(map(len, expanded.fields.values()))
        return expanded if count <= MAX_LEGACY_EDGES else None
    return None


def _common_influences(
    lineage: ColumnLineage, subtypes: Collection[str]
) -> dict[Column, tuple[Transformation, ...]]:
    """Find what every column has; the first one narrows it down the most."""
    common: dict[Column, tuple[Transformation, ...]] | None = None
    for edges in lineage.fields.values():
        if common is None:
            found = {
                column: tuple(t for t in ts if t.type == INDIRECT and t.subtype in subtypes)
                for column, ts in edges.items()
            }
        else:
            found = {}
            for column, ts in common.items():
                here = edges.get(column, ())
                found[column] = ts if ts == here else tuple(t for t in ts if t in here)
        common = {column: ts for column, ts in found.items() if ts}
        if not common:
            break
    return common or {}


def _edges_without(edges: Edges, common: Edges) -> Edges:
    left: dict[Column, tuple[Transformation, ...]] = {}
    for column, transformations in edges.items():
        taken = common.get(column)
        if taken is None:
            left[column] = transformations
        elif rest := tuple(t for t in transformations if t not in taken):
            left[column] = rest
    return left
