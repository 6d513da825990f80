"""Column lineage in an event: the facets of its outputs and of its job, and the limit of its size.

The dataset facet ``columnLineage`` of an output is the specification's, in the form of 1-2-0
(:func:`column_lineage_facet`).

If a task makes C from A and D from B, the lists of its inputs and outputs do not show which input
feeds which output, and a consumer draws four edges. The job facet ``lineage``
(``LineageFacet.json`` 1-0-0, which the specification calls experimental) has an entry for each
output; a dataset-level source without a field feeds the output, one with a field influences all of
it, and an entry without sources states that there are none (:func:`lineage_facet`).

A million edges take gigabytes as a facet, and seconds in each step, and the last step would drop
them. So column lineage that can never fit into the event does not become facets (:func:`bounded`).
:mod:`.steps.size` would drop the same parts at last, in the same order: all descriptions, all
INDIRECT edges, then the column lineage of full outputs, the largest first. The other kinds of
detail that it drops are cheap to make. Sizes here are lower bounds, by the least bytes that an edge
can take, so no part is dropped that would fit. Below :data:`CHEAP` bytes nothing is dropped here,
because it would save little time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.event.steps.fitting import of_column_lineage, of_dropped
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    ColumnLineage,
    Edges,
    Transformation,
    lists,
    mapped,
)
from airflow_provider_sparklineage.model.producer import facet, present

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.lineage.columns.edges import Transformations
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.degradations import Degradation


# --- the facet of an output -----------------------------------------------------------------------


_DATASET_FACET = (
    "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
    "#/$defs/ColumnLineageDatasetFacet"
)


def column_lineage_facet(lineage: ColumnLineage) -> dict[str, Any]:
    """Make the facet ``columnLineage`` of an output, with descriptions in full.

    A later step truncates these (:func:`.steps.texts.shortened`). If the edges of two columns are
    one Python object, so are the columns' entries in the facet; that saves time and memory.
    """
    fields = mapped(lineage.fields, _column_field)
    return facet(
        _DATASET_FACET,
        fields={name: fields[name] for name in sorted(fields)},
        dataset=input_fields(lineage.dataset),
    )


def _column_field(edges: Edges) -> dict[str, Any]:
    sources = input_fields(edges)
    return {
        "inputFields": sources,
        "transformationDescription": _transformation_description(edges),
        "transformationType": transformation_type(sources),
    }


def input_fields(edges: Edges) -> list[dict[str, Any]]:
    """Give edges as the specification's ``InputField``s, in the order of their source columns."""
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


@lru_cache(maxsize=4096)  # many edges have the same transformation
def _transformation(t: Transformation) -> dict[str, Any]:
    return present(t._asdict())


# Some consumers show only the deprecated fields.


def _transformation_description(edges: Edges) -> str:
    ordered = {id(edges[column]): edges[column] for column in sorted(edges)}
    every = [t for ts in ordered.values() for t in ts if t.description]
    every.sort(key=lambda t: t.type != DIRECT)  # the text is short, and the value comes first
    return "; ".join(dict.fromkeys(t.description for t in every))


def transformation_type(sources: list[dict[str, Any]]) -> str:
    """Give the strongest transformation of a column's sources, e.g. ``DIRECT:AGGREGATION``.

    It is ``UNKNOWN`` if no source has a transformation.

    :param sources: the sources as :func:`input_fields` gives them
    """
    given = {id(s["transformations"]): s["transformations"] for s in sources}
    kinds = {(t["type"], t.get("subtype") or "") for ts in given.values() for t in ts}
    for kind in (DIRECT, INDIRECT):
        subtypes = {subtype for of, subtype in kinds if of == kind}
        if subtypes:
            strongest = next((s for s in DIRECT_SUBTYPES if s in subtypes), min(subtypes))
            return f"{kind}:{strongest}" if strongest else kind
    return "UNKNOWN"


# --- the facet of the job -------------------------------------------------------------------------


_JOB_FACET = "https://openlineage.io/spec/facets/1-0-0/LineageFacet.json#/$defs/LineageJobFacet"


def lineage_facet(outputs: Iterable[LineageDataset]) -> dict[str, Any] | None:
    """Make the job facet ``lineage`` of the outputs with known sources; None if there are none."""
    entries = [_output_entry(output) for output in outputs if output.sources is not None]
    return facet(_JOB_FACET, entries=entries) if entries else None


def _output_entry(output: LineageDataset) -> dict[str, Any]:
    columns = output.columns
    datasets = [{**source._asdict(), "type": "DATASET"} for source in sorted(output.sources or ())]
    influences = _column_inputs(columns.dataset) if columns else []
    made = mapped(columns.fields, _column_inputs) if columns else {}
    fields = {name: {"inputs": inputs} for name, inputs in sorted(made.items()) if inputs}
    entry: dict[str, Any] = {
        **output.name._asdict(),
        "type": "DATASET",
        "inputs": [*datasets, *influences],
    }
    return entry | ({"fields": fields} if fields else {})


def _column_inputs(edges: Edges) -> list[dict[str, Any]]:
    return [
        {
            "namespace": source["namespace"],
            "name": source["name"],
            "type": "DATASET",
            "field": source["field"],
            "transformations": source["transformations"],
        }
        for source in input_fields(edges)
    ]


# --- the limit of its size ------------------------------------------------------------------------


_EDGE_BYTES = len('{"namespace": "", "name": "", "field": ""}, ')
_FIELD_BYTES = len('"": {"inputFields": [], "transformationType": ""}, ')

CHEAP = 16 * 1024 * 1024
"""Bytes of JSON that take a second or two to make."""


def bounded(lineage: TaskLineage, max_bytes: int, option: str) -> TaskLineage:
    """Leave out the column lineage that cannot fit into an event of ``max_bytes``.

    The lineage gets a degradation for each loss.

    :param option: the setting that limits the size, for the message
    """
    of = {d.name: d.columns for d in lineage.outputs if d.columns}
    limit = max(CHEAP, max_bytes)
    dropped: list[Degradation] = []
    if sum(_total(columns, _bytes_of_texts) for columns in of.values()) > limit:
        count = sum(_total(columns, _number_of_texts) for columns in of.values())
        dropped.append(of_dropped(f"{count} descriptions of column lineage", option))
        of = {name: columns.changed(_undescribed) for name, columns in of.items()}
    if sum(map(_bytes_of, of.values())) > limit:
        if count := sum(map(_number_of_indirect, of.values())):
            dropped.append(of_dropped(f"{count} INDIRECT edges of column lineage", option))
            of = {name: _without_indirect(columns) for name, columns in of.items()}
        sizes = {name: _bytes_of(columns) for name, columns in of.items()}
        left = sum(sizes.values())
        bare = []
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            if left <= max_bytes:
                break
            del of[name]
            left -= sizes[name]
            bare.append(name)
        dropped += of_column_lineage(bare, option)
    if not dropped:
        return lineage
    outputs = tuple(replace(d, columns=of.get(d.name)) if d.columns else d for d in lineage.outputs)
    return replace(lineage, outputs=outputs, degradations=(*lineage.degradations, *dropped))


def _total(lineage: ColumnLineage, of_edges: Callable[[Edges], int]) -> int:
    return sum(mapped(lineage.fields, of_edges).values()) + of_edges(lineage.dataset)


def _bytes_of_texts(edges: Edges) -> int:
    return sum(len(t.description) for ts in edges.values() for t in ts)


def _number_of_texts(edges: Edges) -> int:
    return sum(bool(t.description) for ts in edges.values() for t in ts)


def _number_of_indirect(lineage: ColumnLineage) -> int:
    """Count the edges in an output's column lineage that have only INDIRECT transformations.

    The edges that lead to the output as a whole, not to one column, are all of that kind.
    """
    of_columns = mapped(lineage.fields, lambda es: sum(not _direct(ts) for ts in es.values()))
    return sum(of_columns.values()) + len(lineage.dataset)


def _bytes_of(lineage: ColumnLineage) -> int:
    """Give a lower bound of the bytes that an output's edges take in JSON without transformations.

    The name of a column counts only if the column has a DIRECT edge, because a column without one
    is dropped together with its INDIRECT edges.
    """
    stays = mapped(lineage.fields, lambda edges: any(map(_direct, edges.values())))
    columns = sum(_FIELD_BYTES + len(name) for name, is_direct in stays.items() if is_direct)
    return columns + _total(lineage, _bytes_of_edges)


def _bytes_of_edges(edges: Edges) -> int:
    return sum(_EDGE_BYTES + len(c.field) + sum(map(len, c.dataset)) for c in edges)


def _undescribed(transformations: Transformations) -> Transformations:
    return tuple(dict.fromkeys(t._replace(description="") for t in transformations))


def _without_indirect(lineage: ColumnLineage) -> ColumnLineage:
    """Leave out an output's INDIRECT edges, and its columns that have no other edges."""
    direct = ColumnLineage(lineage.fields).changed(_direct)
    return ColumnLineage({name: edges for name, edges in direct.fields.items() if edges})


def _direct(transformations: Transformations) -> Transformations:
    return tuple(t for t in transformations if t.type != INDIRECT)
