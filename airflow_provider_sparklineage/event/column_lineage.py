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
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.columns.edges import Transformations
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.degradations import Degradation


# --- the facet of an output -----------------------------------------------------------------------


_DATASET_FACET = (
    "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
    "#/$defs/ColumnLineageDatasetFacet"
)


def column_lineage_facet(lineage: ColumnLineage) -> dict[str, Any]:
    """Make the facet with full descriptions; :func:`.steps.texts.shortened` truncates them.

    Columns whose edges are the same object get the same entry as one object.
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
    """Make the facet of the outputs whose sources are known; None if no output has known ones."""
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
    """Leave out the column lineage that cannot fit into an event of ``max_bytes``, and declare it.

    :param option: the setting that allows more
    """
    of = {d.name: d.columns for d in lineage.outputs if d.columns}
    sizes = {name: _LineageSize.of(columns) for name, columns in of.items()}
    dropped: list[Degradation] = []
    if sum(size.texts for size in sizes.values()) > max(CHEAP, max_bytes):
        count = sum(size.descriptions for size in sizes.values())
        dropped.append(of_dropped(f"{count} descriptions of column lineage", option))
        of = {name: columns.changed(_undescribed) for name, columns in of.items()}
    if sum(size.edges for size in sizes.values()) > max(CHEAP, max_bytes):
        if count := sum(size.indirect for size in sizes.values()):
            dropped.append(of_dropped(f"{count} INDIRECT edges of column lineage", option))
            of = {name: _without_indirect(columns) for name, columns in of.items()}
        left = sum(size.direct for size in sizes.values())
        bare = []
        for name in sorted(sizes, key=lambda name: (-sizes[name].direct, name)):
            if left <= max_bytes:
                break
            del of[name]
            left -= sizes[name].direct
            bare.append(name)
        dropped += of_column_lineage(bare, option)
    if not dropped:
        return lineage
    outputs = tuple(replace(d, columns=of.get(d.name)) if d.columns else d for d in lineage.outputs)
    return replace(lineage, outputs=outputs, degradations=(*lineage.degradations, *dropped))


class _LineageSize(NamedTuple):
    """The least bytes of JSON that column lineage takes, with two counts.

    :param texts: bytes of its descriptions
    :param descriptions: number of its descriptions
    :param edges: bytes of all of its edges, without their transformations
    :param indirect: number of edges that have INDIRECT transformations only
    :param direct: bytes of the other edges
    """

    texts: int
    descriptions: int
    edges: int
    indirect: int
    direct: int

    @classmethod
    def of(cls, lineage: ColumnLineage) -> _LineageSize:
        sizes = mapped(lineage.fields, _size_of_edges)
        columns = sum(_FIELD_BYTES + len(name) for name, size in sizes.items() if size.direct)
        of_all = _size_of_edges(lineage.dataset, is_of_all=True)
        parts = (_LineageSize(0, 0, columns, 0, columns), of_all, *sizes.values())
        return cls(*map(sum, zip(*parts, strict=True)))


def _size_of_edges(edges: Edges, *, is_of_all: bool = False) -> _LineageSize:
    of_list = {id(ts): _size_of_list(ts) for ts in lists(edges)}
    texts = descriptions = size = indirect = direct = 0
    for column, transformations in edges.items():
        length, described, is_indirect = of_list[id(transformations)]
        texts += length
        descriptions += described
        edge = _EDGE_BYTES + len(column.field) + sum(map(len, column.dataset))
        size += edge
        if is_of_all or is_indirect:
            indirect += 1
        else:
            direct += edge
    return _LineageSize(texts, descriptions, size, indirect, direct)


def _size_of_list(transformations: Transformations) -> tuple[int, int, bool]:
    texts = [t.description for t in transformations if t.description]
    return sum(map(len, texts)), len(texts), all(t.type == INDIRECT for t in transformations)


def _undescribed(transformations: Transformations) -> Transformations:
    return tuple(dict.fromkeys(t._replace(description="") for t in transformations))


def _without_indirect(lineage: ColumnLineage) -> ColumnLineage:
    """Leave out the INDIRECT edges, and the columns that have no other edges."""
    direct = ColumnLineage(lineage.fields).changed(_direct)
    return ColumnLineage({name: edges for name, edges in direct.fields.items() if edges})


def _direct(transformations: Transformations) -> Transformations:
    return tuple(t for t in transformations if t.type != INDIRECT)
