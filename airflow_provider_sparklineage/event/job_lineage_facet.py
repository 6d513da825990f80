"""OpenLineage's explicit lineage of a job: which inputs feed which output, and which do not.

The inputs and outputs of a task that makes C of A and D of B do not show who feeds whom, and a
consumer takes it for four edges. The job facet ``lineage`` (``LineageFacet.json`` 1-0-0, which the
specification calls experimental) has an entry for each output; a dataset-level source without a
field feeds the output, one with a field influences all of it, and an entry without sources states
that there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.column_lineage_facet import input_fields
from airflow_provider_sparklineage.event.producer import facet
from airflow_provider_sparklineage.lineage.columns import mapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.columns import Edges
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset

_SCHEMA = "https://openlineage.io/spec/facets/1-0-0/LineageFacet.json#/$defs/LineageJobFacet"


def lineage_facet(outputs: Iterable[LineageDataset]) -> dict[str, Any] | None:
    """Make the facet of the outputs whose sources are known; None if there are none."""
    entries = [_entry(output) for output in outputs if output.sources is not None]
    return facet(_SCHEMA, entries=entries) if entries else None


def _entry(output: LineageDataset) -> dict[str, Any]:
    columns = output.columns
    datasets = [
        {"namespace": source.namespace, "name": source.name, "type": "DATASET"}
        for source in sorted(output.sources or ())
    ]
    influences = _inputs(columns.dataset) if columns else []
    made = mapped(columns.fields, _inputs) if columns else {}
    fields = {name: {"inputs": inputs} for name, inputs in sorted(made.items()) if inputs}
    entry: dict[str, Any] = {
        "namespace": output.name.namespace,
        "name": output.name.name,
        "type": "DATASET",
        "inputs": [*datasets, *influences],
    }
    return entry | ({"fields": fields} if fields else {})


def _inputs(edges: Edges) -> list[dict[str, Any]]:
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
