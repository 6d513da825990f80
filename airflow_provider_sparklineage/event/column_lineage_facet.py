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
    lists,
    mapped,
)

_SCHEMA = (
    "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
    "#/$defs/ColumnLineageDatasetFacet"
)


def column_lineage_facet(lineage: ColumnLineage) -> dict[str, Any]:
    """Make the facet; descriptions are in full (:mod:`.steps.short_texts` truncates them).

    Columns whose edges are one object have one entry.
    """
    fields = mapped(lineage.fields, _field)
    return facet(
        _SCHEMA,
        fields={name: fields[name] for name in sorted(fields)},
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
    made = {id(ts): [_transformation(t) for t in ts if t.type is not None] for ts in lists(edges)}
    return [
        {
            "namespace": column.dataset.namespace,
            "name": column.dataset.name,
            "field": column.field,
            "transformations": made[id(edges[column])],
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
    ordered = {id(edges[column]): edges[column] for column in sorted(edges)}
    every = [t for ts in ordered.values() for t in ts if t.description]
    every.sort(key=lambda t: t.type != DIRECT)  # the text is short, and the value comes first
    return "; ".join(dict.fromkeys(t.description for t in every))


def summary(sources: list[dict[str, Any]]) -> str:
    """``DIRECT:AGGREGATION``: the strongest of what is done with a column's sources."""
    given = {id(s["transformations"]): s["transformations"] for s in sources}
    kinds = {(t["type"], t.get("subtype") or "") for ts in given.values() for t in ts}
    for kind in (DIRECT, INDIRECT):
        subtypes = {subtype for of, subtype in kinds if of == kind}
        if subtypes:
            strongest = next((s for s in DIRECT_SUBTYPES if s in subtypes), min(subtypes))
            return f"{kind}:{strongest}" if strongest else kind
    return "UNKNOWN"
