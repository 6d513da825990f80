"""``compact`` and ``legacy``: what influences all columns, given once or with each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.edges import (
    INDIRECT,
    INDIRECT_SUBTYPES,
    ColumnLineage,
    mapped,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.lineage.columns.edges import Column, Edges, Transformation

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
    everywhere = union(lineage.dataset, _common(lineage, subtypes))
    if not everywhere:
        return lineage
    fields = mapped(lineage.fields, lambda edges: _without(edges, everywhere))
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


def _common(
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


def _without(edges: Edges, common: Edges) -> Edges:
    left: dict[Column, tuple[Transformation, ...]] = {}
    for column, transformations in edges.items():
        taken = common.get(column)
        if taken is None:
            left[column] = transformations
        elif rest := tuple(t for t in transformations if t not in taken):
            left[column] = rest
    return left
