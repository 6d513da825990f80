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


def partitioned_event(
    reads: dict[str, dict[str, Any]], writes: dict[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Make an event of datasets with partitions.

    :param reads: by the dataset's name: ``named``, the partitions that the event names, each a dict
        of values; and entries of the partition check
    """
    inputs = [partitioned("input", name, **entry) for name, entry in reads.items()]
    outputs = [partitioned("output", name, **entry) for name, entry in (writes or {}).items()]
    check = {"reads": [e for _, e in inputs], "writes": [e for _, e in outputs]}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-05-06T00:00:00Z",
        "job": {"namespace": "tests", "name": "shop.partitioned"},
        "run": {"facets": {"sparkLineage_partitionCheck": {"status": "matched", **check}}},
        "inputs": [d for d, _ in inputs],
        "outputs": [d for d, _ in outputs],
    }


def partitioned(
    side: str, name: str, named: list[dict[str, str]] | None = None, **check: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a dataset, and its entry of the partition check."""
    identity = {"namespace": "s3://lake", "name": name}
    facets = {}
    if named:
        partitions = [{"dimensions": p, "identifier": identifier(p)} for p in named]
        condition = {"type": "partition", "partitions": partitions}
        facets = {"subset": {f"{side}Condition": condition}}
        check = {"observed": counted(named), **check}
    return {**identity, "facets": {}, f"{side}Facets": facets}, {
        "dataset": identity,
        "status": "matched",
        **check,
    }


def identifier(partition: dict[str, str]) -> str:
    """Name a partition."""
    return "/".join(f"{label}={value}" for label, value in partition.items())


def counted(partitions: list[dict[str, str]], count: int | None = None) -> dict[str, Any]:
    """Describe partitions as the check does."""
    names = [identifier(partition) for partition in partitions]
    summary = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    number = len(names) if count is None else count
    return {"summary": summary, "count": number, "first": names[0], "last": names[-1]}


def source(value: str, kind: str = "declared", dimension: str = "dt") -> dict[str, Any]:
    """Say where an expected value comes from."""
    made = {"field": "application_args[1]", "template": "{{ ds }}", "expressions": ["ds"]}
    return {"dimension": dimension, "value": value, "kind": kind, **made}
