"""Events of any size, for the page."""

from __future__ import annotations

from typing import Any


def wide_event(datasets: int, columns: int) -> dict[str, Any]:
    """Make an event with as many inputs as outputs, each with so many columns.

    Each column of an output is made of two columns of one input, and all of them are filtered by a
    third; the first column of each output is masked.
    """
    inputs = [dataset("in", n, columns) for n in range(datasets)]
    outputs = [dataset("out", n, columns) for n in range(datasets)]
    for n, output in enumerate(outputs):
        source = inputs[n]
        output["facets"]["columnLineage"] = {
            "fields": {
                f"column_{c}": {
                    "inputFields": [
                        edge(source, c, "DIRECT", "TRANSFORMATION", masking=c == 0),
                        edge(source, (c + 1) % columns, "DIRECT", "AGGREGATION"),
                    ]
                }
                for c in range(columns)
            },
            "dataset": [edge(source, columns - 1, "INDIRECT", "FILTER")],
        }
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-05-06T00:00:00Z",
        "job": {"namespace": "tests", "name": "shop.wide"},
        "run": {"runId": "018f4b33-3c00-7c1b-9334-33d444edfa00", "facets": {}},
        "inputs": inputs,
        "outputs": outputs,
    }


def dataset(kind: str, number: int, columns: int) -> dict[str, Any]:
    """Make a dataset with a schema."""
    fields = [{"name": f"column_{c}", "type": "decimal(38,18)"} for c in range(columns)]
    name = f"warehouse/{kind}_{number}"
    return {"namespace": "s3://lake", "name": name, "facets": {"schema": {"fields": fields}}}


def edge(
    source: dict[str, Any], column: int, kind: str, subtype: str, *, masking: bool = False
) -> dict[str, Any]:
    """Make an edge of column lineage."""
    transformation = {"type": kind, "subtype": subtype, "description": "a + b", "masking": masking}
    names = {"namespace": source["namespace"], "name": source["name"]}
    return {**names, "field": f"column_{column}", "transformations": [transformation]}
