"""Columns, transformations, and the edges between columns: their union, and their two forms.

In the form ``compact``, an influence on all columns is given once (``ColumnLineage.dataset``); in
the form ``legacy``, it is repeated with each column.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import field

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from airflow_provider_sparklineage.model.datasets import DatasetName


K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

DIRECT = "DIRECT"
INDIRECT = "INDIRECT"
# The stronger one first: a value that was aggregated once remains an aggregation.
DIRECT_SUBTYPES = ("AGGREGATION", "TRANSFORMATION", "IDENTITY")
# CONDITION is the specification's word; Spark's listener writes CONDITIONAL.
INDIRECT_SUBTYPES = frozenset(
    {"FILTER", "JOIN", "GROUP_BY", "SORT", "WINDOW", "CONDITION", "CONDITIONAL"}
)


class Transformation(NamedTuple):
    """The way in which an input column influences an output column; None is an unknown type."""

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
"""Input column -> the transformations by which it influences an output column, or all of them.

No function changes edges that it got or has returned, because columns may share one object.
"""


class ColumnLineage(Frozen, frozen=True, dict=True):
    """The sources of the columns of one dataset.

    :param fields: output column -> its input columns
    :param dataset: input columns that influence every output column (in filters, joins, groupings);
        these influences are INDIRECT
    """

    fields: Mapping[str, Edges] = field(default_factory=dict)
    dataset: Edges = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.dataset)

    # A loop writes the same column lineage a thousand times, so these are found once.

    @cached_property
    def sources(self) -> frozenset[Column]:
        """All input columns."""
        return frozenset(chain.from_iterable(each_once(self)))

    @cached_property
    def datasets(self) -> frozenset[DatasetName]:
        """The datasets of all input columns."""
        return frozenset(column.dataset for column in self.sources)

    @cached_property
    def subtypes(self) -> frozenset[str | None]:
        """The subtypes of all transformations."""
        every = {id(ts): ts for edges in each_once(self) for ts in edges.values()}
        return frozenset(t.subtype for t in chain.from_iterable(every.values()))

    def changed(self, change: Callable[[Transformations], Transformations]) -> ColumnLineage:
        """Change the transformations of all edges; an edge that is left without any is dropped.

        :param change: a function that gives the new list of an edge's transformations
        """
        fields = mapped(self.fields, lambda edges: changed(edges, change))
        return ColumnLineage(fields, changed(self.dataset, change))


def changed(
    edges: Edges, change: Callable[[Transformations], Transformations]
) -> dict[Column, Transformations]:
    """Change the transformations of edges; an edge that is left without any is dropped.

    :param change: a function that gives the new list of an edge's transformations; a list that
        several edges share is given to it only once
    """
    left = {id(ts): change(ts) for ts in lists(edges)}
    return {column: kept for column, ts in edges.items() if (kept := left[id(ts)])}


def count(edges: Edges) -> int:
    """Count the transformations of edges."""
    return sum(map(len, edges.values()))


def count_all(lineage: ColumnLineage) -> int:
    """Count the transformations of all columns, and of the influences on the whole dataset."""
    return count(lineage.dataset) + sum(mapped(lineage.fields, count).values())


def each_once(lineage: ColumnLineage) -> Iterable[Edges]:
    """Give the edges of each column, and ``lineage.dataset``; a shared object comes only once."""
    return {id(edges): edges for edges in (*lineage.fields.values(), lineage.dataset)}.values()


def mapped(values: Mapping[K, V], of: Callable[[V], T]) -> dict[K, T]:
    """Apply the function ``of`` to each value, such as the edges of each column.

    The function is called only once for an object that is the value of several keys.
    """
    found = {key: of(value) for key, value in {id(v): v for v in values.values()}.items()}
    return {key: found[id(value)] for key, value in values.items()}


def lists(edges: Edges) -> Iterable[Transformations]:
    """Give the lists of transformations of edges; a list that edges share comes only once."""
    return {id(ts): ts for ts in edges.values()}.values()


def joined(
    first: tuple[Transformation, ...], second: tuple[Transformation, ...]
) -> tuple[Transformation, ...]:
    """Join two lists of transformations between the same two columns, without duplicates."""
    if not first or first == second:
        return second
    return tuple(dict.fromkeys((*first, *second)))


def union(first: Edges, second: Edges) -> dict[Column, tuple[Transformation, ...]]:
    """Unite two sets of edges; the transformations of an edge that both have are joined."""
    united = dict(first)
    unite_into(united, second)
    return united


def unite_into(edges: dict[Column, tuple[Transformation, ...]], others: Edges) -> None:
    """Add ``others`` to ``edges``, in time that grows only with the number of ``others``."""
    for column, transformations in others.items():
        edges[column] = joined(edges.get(column, ()), transformations)


# --- the two forms --------------------------------------------------------------------------------


ROW_SUBTYPES = frozenset({"FILTER", "JOIN", "GROUP_BY", "SORT"})
"""Influences of operators on rows; other INDIRECT subtypes belong to one column's expression."""


def expand(lineage: ColumnLineage) -> ColumnLineage:
    """Add the influences on all columns to the edges of each column.

    Listeners before 1.37 report them so by default. Column lineage without columns is returned as
    it is.
    """
    if not lineage.fields or not lineage.dataset:
        return lineage
    fields = mapped(lineage.fields, lambda edges: union(edges, lineage.dataset))
    return ColumnLineage(fields)


def compact(lineage: ColumnLineage, subtypes: Collection[str] = INDIRECT_SUBTYPES) -> ColumnLineage:
    """Give the form in which INDIRECT influences on all columns are named once, in ``dataset``.

    An INDIRECT influence that every column in ``fields`` has is added to ``dataset``. Influences
    that are in ``dataset``, the new and the earlier ones, are removed from the columns.
    :func:`expand` puts all of them back, though perhaps in another order. A column without other
    edges stays in ``fields``, without edges.

    :param subtypes: the INDIRECT subtypes that are moved
    """
    everywhere = union(lineage.dataset, _common_influences(lineage, subtypes))
    if not everywhere:
        return lineage
    fields = mapped(lineage.fields, lambda edges: _edges_without(edges, everywhere))
    return ColumnLineage(fields, everywhere)


MAX_LEGACY_EDGES = 500
"""The most edges that an output may have in the legacy form.

There is a limit because some backends keep every edge that they have got for ever.
"""


def legacy(lineage: ColumnLineage) -> ColumnLineage | None:
    """Give the legacy form of column lineage; None if it has over :data:`MAX_LEGACY_EDGES` edges.

    In this form the influences on all columns are edges of each column.
    """
    if len(lineage.dataset) * len(lineage.fields) > MAX_LEGACY_EDGES:
        return None
    expanded = expand(lineage)
    return expanded if sum(map(len, expanded.fields.values())) <= MAX_LEGACY_EDGES else None


def _common_influences(
    lineage: ColumnLineage, subtypes: Collection[str]
) -> dict[Column, tuple[Transformation, ...]]:
    """Find the INDIRECT transformations that all output columns share.

    :param subtypes: the subtypes that count, such as ``FILTER``
    :return: source column -> its transformations that are the same for every output column
    """
    each = iter(lineage.fields.values())
    common = {
        column: tuple(t for t in ts if t.type == INDIRECT and t.subtype in subtypes)
        for column, ts in next(each, {}).items()
    }
    for edges in each:
        left = ((column, ts, edges.get(column, ())) for column, ts in common.items() if ts)
        common = {
            c: ts if ts == here else tuple(t for t in ts if t in here) for c, ts, here in left
        }
    return {column: ts for column, ts in common.items() if ts}


def _edges_without(edges: Edges, common: Edges) -> Edges:
    left: dict[Column, tuple[Transformation, ...]] = {}
    for column, transformations in edges.items():
        taken = common.get(column)
        if taken is None:
            left[column] = transformations
        elif rest := tuple(t for t in transformations if t not in taken):
            left[column] = rest
    return left
