"""Datasets as such, in DataHub."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.datahub.configuration import Conversion
from airflow_provider_sparklineage.datahub.datasets import datasets
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.unit.datahub.sdk import checked

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
TABLE = "urn:li:dataset:(urn:li:dataPlatform:hive,shop.orders,PROD)"
SYMLINK = {"namespace": "hive://metastore:9083", "name": "shop.orders", "type": "TABLE"}


def orders(**facets):
    return {"namespace": "s3://lake", "name": "orders", "facets": facets}


def converted(inputs=(), outputs=(), state="COMPLETE", **how):
    event = {
        "eventType": state,
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": "0196"},
        "job": {"namespace": "airflow", "name": "dag.task"},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }
    return checked(datasets(Subject(event, Conversion(**how))))


def of(found, aspect, urn=ORDERS):
    return [
        (one.aspect, one.change_type)
        for one in found
        if one.aspect_name == aspect and one.urn == urn
    ]


def properties(found):
    ((operations, _),) = of(found, "datasetProperties")
    return {one["path"]: one["value"] for one in operations}


@pytest.mark.parametrize("state", ["START", "RUNNING", "OTHER"])
def test_a_run_that_has_not_ended_says_nothing_of_datasets(state):
    assert converted([orders()], [orders()], state=state) == []


@pytest.mark.parametrize(
    ("change", "state", "expected"),
    [
        (None, "COMPLETE", ({"removed": False}, "UPSERT")),
        ("CREATE", "COMPLETE", ({"removed": False}, "UPSERT")),
        ("DROP", "COMPLETE", ({"removed": True}, "UPSERT")),
        ("DROP", "FAIL", ({"removed": False}, "CREATE")),
        (None, "ABORT", ({"removed": False}, "CREATE")),
    ],
)
def test_what_was_written_is_there_unless_it_was_dropped(change, state, expected):
    facet = {"lifecycleStateChange": {"lifecycleStateChange": change}}

    assert of(converted(outputs=[orders(**facet)], state=state), "status") == [expected]


def test_what_was_read_is_made_known_and_else_left_as_it_is():
    assert of(converted([orders()]), "status") == [({"removed": False}, "CREATE")]


def test_what_was_read_and_written_is_proposed_once():
    found = converted([orders(), orders()], [orders()])

    assert [one.aspect_name for one in found] == ["status", "datasetProperties"]


def test_a_dataset_tells_how_openlineage_names_it():
    assert properties(converted([orders()])) == {
        "/customProperties/openlineage.namespace": "s3://lake",
        "/customProperties/openlineage.name": "orders",
    }


def test_the_writer_describes_what_it_has_written():
    described = orders(
        documentation={"description": "All orders"},
        version={"datasetVersion": "42"},
        storage={"storageLayer": "iceberg", "fileFormat": "parquet"},
    )

    found = properties(converted(outputs=[described]))

    assert found["/description"] == "All orders"
    assert found["/customProperties/openlineage.datasetVersion"] == "42"
    assert found["/customProperties/storageLayer"] == "iceberg"
    assert found["/customProperties/fileFormat"] == "parquet"
    assert properties(converted([described])) == properties(converted([orders()]))


def test_the_instance_is_known_where_there_is_one():
    found = converted([orders()], platform_instance="eu")

    platform = "urn:li:dataPlatform:s3"
    instance = f"urn:li:dataPlatformInstance:({platform},eu)"
    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,eu.lake/orders,PROD)"
    assert of(found, "dataPlatformInstance", urn) == [
        ({"platform": platform, "instance": instance}, "UPSERT")
    ]
    assert of(converted([orders()]), "dataPlatformInstance") == []


def test_files_and_their_table_are_siblings_unless_they_have_others():
    found = converted(outputs=[orders(symlinks={"identifiers": [SYMLINK]})])

    assert of(found, "siblings", TABLE) == [({"siblings": [ORDERS], "primary": True}, "CREATE")]
    assert of(found, "siblings") == [({"siblings": [TABLE], "primary": False}, "CREATE")]
    assert of(found, "status", TABLE) == [({"removed": False}, "UPSERT")]


def test_what_has_no_symlink_or_is_to_follow_none_has_no_siblings():
    linked = orders(symlinks={"identifiers": [SYMLINK]})

    assert of(converted(outputs=[orders()]), "siblings") == []
    assert of(converted(outputs=[linked], symlinks=False), "siblings") == []
