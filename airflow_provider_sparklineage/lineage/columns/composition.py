"""A→tmp and tmp→B to A→B: columns of what the application wrote, replaced by their sources.

The rule for two transformations in a row is the listener's own
(``io.openlineage.client.utils.TransformationInfo.merge``), so that lineage through a staging table
reads like lineage within one query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
    joined,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.datasets import DatasetName


def combine(this: Transformation, upstream: Transformation) -> Transformation:
    """Combine two transformations in a row: ``this`` is the one nearer to the output.

    INDIRECT here stays; DIRECT after an unknown is unknown; DIRECT after INDIRECT is that INDIRECT;
    DIRECT after DIRECT is the first of AGGREGATION, TRANSFORMATION, IDENTITY. Masking anywhere
    masks.
    """
    masking = this.masking or upstream.masking
    description = this.description
    if this.type == DIRECT and this.subtype == "IDENTITY":
        description = upstream.description
    if this.type == INDIRECT:
        return this._replace(masking=masking)
    if this.type is None or upstream.type is None:
        return Transformation(None, None, description, masking)
    if upstream.type == INDIRECT:
        return Transformation(upstream.type, upstream.subtype, description, masking)
    return Transformation(DIRECT, _stronger(this.subtype, upstream.subtype), description, masking)


def _stronger(first: str | None, second: str | None) -> str | None:
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


class Origin(NamedTuple):
    """What is known of a dataset that an action read.

    :param lineage: the columns that this application wrote into it
    :param internal: nothing but those was read, so that the dataset itself is no source
    :param exact: that was observed, and not taken from what the events say of the writes
    """

    lineage: ColumnLineage
    internal: bool
    exact: bool = False


def compose(
    lineage: ColumnLineage, origin_of: Callable[[DatasetName], Origin | None]
) -> ColumnLineage:
    """Replace the columns of datasets that the application wrote itself by what those were made of.

    A column whose own sources are not known stays as it is: it is true, and more is not known. What
    influences the whole of an intermediate influences everything made of it.
    """
    fields = {name: _compose_edges(edges, origin_of) for name, edges in lineage.fields.items()}
    everything = _compose_edges(lineage.dataset, origin_of)
    used = {c.dataset for edges in (*lineage.fields.values(), lineage.dataset) for c in edges}
    for dataset in sorted(used):
        origin = origin_of(dataset)
        if origin is not None:
            everything = union(everything, origin.lineage.dataset)
    return ColumnLineage(fields, everything)


def _compose_edges(edges: Edges, origin_of: Callable[[DatasetName], Origin | None]) -> Edges:
    composed: dict[Column, tuple[Transformation, ...]] = {}
    for column, transformations in edges.items():
        origin = origin_of(column.dataset)
        sources = origin.lineage.fields.get(column.field) if origin else None
        if origin is None or not origin.internal or not sources:
            composed[column] = joined(composed.get(column, ()), transformations)
        for source, upstream in (sources or {}).items():
            both = tuple(combine(t, u) for t in transformations for u in upstream)
            composed[source] = joined(composed.get(source, ()), both)
    return composed


def without_sources_in(lineage: ColumnLineage, dataset: DatasetName) -> ColumnLineage:
    """Drop the sources that are columns of a dataset."""

    def others(edges: Edges) -> Edges:
        return {c: t for c, t in edges.items() if c.dataset != dataset}

    fields = {name: others(edges) for name, edges in lineage.fields.items()}
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))
