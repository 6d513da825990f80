"""What a run read and wrote, on the run."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.runs import run_datasets
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.unit.datahub.partition_events import (
    ORDERS,
    captured,
    checked_write,
    event,
    output,
    partitions,
)
from tests.unit.datahub.sdk import checked


def _sides(document: dict[str, Any]) -> dict[str, Any]:
    found = checked(run_datasets(Subject(document, DEFAULT_CONVERSION)))
    assert len({one.urn for one in found}) <= 1
    return {one.aspect_name.removeprefix("dataProcessInstance"): one.aspect for one in found}


def _properties(document: dict[str, Any], side: str = "Output") -> Any:
    [edge] = _sides(document)[side][f"{side.lower()}Edges"]
    return edge.get("properties")


def test_a_run_has_the_partitions_that_it_read_and_wrote(recorded):
    found = _sides(recorded("staging_chain").event)

    read = {e["destinationUrn"]: e["properties"] for e in found["Input"]["inputEdges"]}
    assert list(read) == found["Input"]["inputs"]
    assert [properties.get("partitions") for properties in read.values()] == [
        "partitions not known",
        "dt=2024-05-06",
        "month=2024-05",
    ]
    written = found["Output"]["outputEdges"][0]["properties"]
    assert written["partitions"] == "dt=2024-05-06"
    assert written["rows"] == "2"


def test_an_edge_has_what_was_expected_and_where_that_comes_from():
    run = captured(witness="both", accessed="part") | checked_write(
        status="missing",
        expected={"summary": "dt=2026-01-01 … dt=2026-01-02 (2 partitions)", "count": 2},
        missing={"summary": "dt=2026-01-02", "count": 1},
        **{"from": [{"field": "writes[0]", "template": "s3://lake/orders/dt={{ ds }}"}]},
    )

    assert _properties(event(output(partitions("2026-01-01"), rows=3), run=run)) == {
        "partitions": "dt=2026-01-01",
        "reported by": "both",
        "rows": "3",
        "check": "missing",
        "expected": "dt=2026-01-01 … dt=2026-01-02 (2 partitions)",
        "missing": "dt=2026-01-02",
        "expected from": "writes[0]: s3://lake/orders/dt={{ ds }}",
    }


def test_many_partitions_are_a_range():
    days = [f"2026-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]

    summary = "dt=2026-01-01 … dt=2026-12-28 (336 partitions)"
    assert _properties(event(output(partitions(*days))))["partitions"] == summary


def test_what_nothing_is_known_of_is_an_edge_without_properties():
    assert _properties(event(output())) is None


def test_a_dataset_that_nobody_reported_is_marked():
    declared = captured(witness="declared", accessed="part")
    written = output(partitions("2026-01-01"))

    assert _properties(event(written, run=declared))["reported by"] == "declared"
    assert _properties(event(written, run=captured()))["reported by"] == "nobody, but the last run"


@pytest.mark.parametrize(
    ("state", "run"),
    [
        ("START", {}),
        ("FAIL", {}),
        ("FAIL", captured(witness="declared")),
        ("COMPLETE", captured(witness="listener", failed=True)),
    ],
    ids=["a start", "a failure that shows nothing", "a declaration", "a write that failed"],
)
def test_a_run_has_no_dataset_by(state, run):
    assert _sides(event(output(), state=state, run=run)) == {}


def test_a_failed_run_has_what_it_was_seen_to_do(recorded):
    found = _sides(recorded("killed_driver").event)

    assert len(found["Input"]["inputs"]) == 2
    assert [urn.rpartition("/")[2] for urn in found["Output"]["outputs"]] == ["good_orders,PROD)"]


def test_a_dataset_that_is_read_and_written_is_on_both_sides():
    read = {**ORDERS, "inputFacets": {"subset": {"inputCondition": partitions("2025-12-31")}}}
    document = event(output(partitions("2026-01-01")), inputs=[read])

    assert _properties(document, "Input") == {"partitions": "dt=2025-12-31"}
    assert _properties(document, "Output") == {"partitions": "dt=2026-01-01"}


def test_files_and_the_table_that_they_are_of_are_one_edge():
    symlink = {"namespace": "hive://metastore:9083", "name": "shop.orders", "type": "TABLE"}
    path = output(partitions("2026-01-01"), rows=3, symlinks={"identifiers": [symlink]})
    table = {**output(partitions("2026-01-02"), rows=3), **symlink}

    found = _sides(event(path, table))["Output"]
    assert len(found["outputs"]) == 1
    assert found["outputEdges"][0]["properties"] == {
        "partitions": "dt=2026-01-01, dt=2026-01-02",
        "rows": "3",
    }
