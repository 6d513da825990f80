"""Which columns an event says were made of which: the edges of facet ``columnLineage``.

Both forms of the facet are read: lists of transformations, and the deprecated single type of a
column (``IDENTITY``, ``MASKED``; this package's events have ``DIRECT:AGGREGATION`` there). Its
entries of the whole dataset are INDIRECT, whatever they say (the listener gives DIRECT for some).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.facts.line import Edge
from airflow_provider_sparklineage.history.facts.names import dataset_name, short
from airflow_provider_sparklineage.history.facts.shapes import Transformation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.history.facts.shapes import (
        ColumnSources,
        Dataset,
        InputField,
    )
    from airflow_provider_sparklineage.model.datasets import DatasetName

_DIRECT, _INDIRECT = "DIRECT", "INDIRECT"
_MASKED = "MASKED"


def edges(dataset: Dataset) -> Iterator[Edge]:
    """Give the edges of an output."""
    lineage = dataset.facets and dataset.facets.column_lineage
    if not lineage:
        return
    output = dataset_name(dataset.namespace, dataset.name)
    for column, sources in (lineage.fields or {}).items():
        known = _deprecated(sources)
        for source in sources.inputFields or ():
            for one in source.transformations or known:
                yield _edge(output, column, source, one, one.type)
    for source in lineage.dataset or ():
        for one in source.transformations or _UNKNOWN:
            yield _edge(output, None, source, one, _INDIRECT)


_UNKNOWN = (Transformation(),)


def _edge(
    output: DatasetName,
    column: str | None,
    source: InputField,
    how: Transformation,
    kind: str | None,
) -> Edge:
    namespace, name = dataset_name(source.namespace, source.name)
    return Edge(
        *output,
        namespace,
        name,
        source.field,
        column,
        kind,
        how.subtype,
        how.masking,
        short(how.description),
    )


def _deprecated(sources: ColumnSources) -> tuple[Transformation, ...]:
    """Read the one type that a column has in old events; it is of all of its sources."""
    kind, _, subtype = (sources.transformationType or "").partition(":")
    text = sources.transformationDescription
    if kind == _MASKED:
        return (Transformation(_DIRECT, description=text, masking=True),)
    if kind in (_DIRECT, _INDIRECT):
        return (Transformation(kind, subtype or None, text),)
    return (Transformation(_DIRECT if kind else None, kind or None, text),)
