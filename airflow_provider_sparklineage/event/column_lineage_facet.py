"""Dataset facet ``columnLineage`` of an output: the specification's, in the form of 1-2-0."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from airflow_provider_sparklineage.event.producer import facet
from airflow_provider_sparklineage.lineage.columns import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    ColumnLineage,
    Edges,
    Transformation,
)

_SCHEMA = (
    "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
    "#/$defs/ColumnLineageDatasetFacet"
)


def column_lineage_facet(lineage: ColumnLineage) -> dict[str, Any]:
    """Make the facet; descriptions are in full (:mod:`.steps.short_texts` truncates them)."""
    return facet(
        _SCHEMA,
        fields={name: _field(lineage.fields[name]) for name in sorted(lineage.fields)},
        dataset=input_fields(lineage.dataset),
    )


def _field(edges: Edges) -> dict[str, Any]:
    sources = input_fields(edges)
    return {
        "inputFields": sources,
        "transformationDescription": _description(edges),
        "transformationType": summary(sources),
    }


def input_fields(edges: Edges) -> list[dict[str, Any]]:
    """Give edges as the specification's ``InputField``s, in the order of their columns."""
    return [
        {
            "namespace": column.dataset.namespace,
            "name": column.dataset.name,
            "field": column.field,
            "transformations": [_transformation(t) for t in edges[column] if t.type is not None],
        }
        for column in sorted(edges)
    ]


@lru_cache(maxsize=4096)  # edges have few different ones, with texts that come again
def _transformation(t: Transformation) -> dict[str, Any]:
    entry = {
        "type": t.type,
        "subtype": t.subtype,
        "description": t.description,
        "masking": t.masking,
    }
    return {key: value for key, value in entry.items() if value is not None}


# The deprecated fields are all that some consumers show.


def _description(edges: Edges) -> str:
    every = [t for column in sorted(edges) for t in edges[column] if t.description]
    every.sort(key=lambda t: t.type != DIRECT)  # the text is short, and the value comes first
    return "; ".join(dict.fromkeys(t.description for t in every))


def summary(sources: list[dict[str, Any]]) -> str:
    """``DIRECT:AGGREGATION``: the strongest of what is done with a column's sources."""
    kinds = {(t["type"], t.get("subtype") or "") for s in sources for t in s["transformations"]}
    for kind in (DIRECT, INDIRECT):
        subtypes = {subtype for of, subtype in kinds if of == kind}
        if subtypes:
            strongest = next((s for s in DIRECT_SUBTYPES if s in subtypes), min(subtypes))
            return f"{kind}:{strongest}" if strongest else kind
    return "UNKNOWN"
