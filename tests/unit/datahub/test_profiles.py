"""How many rows there are, as DataHub's profiles."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.configuration import (
    DEFAULT_CONVERSION,
    Conversion,
    FieldPaths,
)
from airflow_provider_sparklineage.datahub.partitions import profiles
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.unit.datahub.partition_events import ORDERS, captured, event, output, partitions
from tests.unit.datahub.sdk import checked

_OVERWRITE: dict[str, Any] = {"lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"}}
_CREATE: dict[str, Any] = {"lifecycleStateChange": {"lifecycleStateChange": "CREATE"}}
_ICEBERG = {"storage": {"storageLayer": "iceberg", "fileFormat": "parquet"}}


def _profiles(document: dict[str, Any], how: Conversion = DEFAULT_CONVERSION) -> list[Any]:
    found = checked(profiles(Subject(document, how)))
    assert {one.aspect_name for one in found} <= {"datasetProfile"}
    return found


def _written(*days: str, rows: int | None = 7, **facets: Any) -> dict[str, Any]:
    return output(partitions(*days or ("2026-01-01",)), rows=rows, **facets)


def test_a_partition_that_spark_replaced_has_the_rows_that_were_written(recorded):
    [found] = _profiles(recorded("staging_chain").event)

    assert found.urn.endswith("lake/revenue,PROD)")
    assert found.aspect["partitionSpec"] == {"partition": "dt=2024-05-06", "type": "PARTITION"}
    assert found.aspect["rowCount"] == 2
    assert found.aspect["sizeInBytes"] == 800


def test_each_of_several_replaced_partitions_has_the_rows_that_are_known_of_it():
    counts = {"rows": [5, -1, 7], "bytes": [50, 60, -1]}
    document = event(
        _written("01", "02", "03", rows=12, sparkLineage_partitions=counts, **_OVERWRITE)
    )

    found = {one.aspect["partitionSpec"]["partition"]: one.aspect for one in _profiles(document)}

    assert found.keys() == {"dt=01", "dt=03"}
    assert (found["dt=01"]["rowCount"], found["dt=01"]["sizeInBytes"]) == (5, 50)
    assert found["dt=03"]["rowCount"] == 7
    assert "sizeInBytes" not in found["dt=03"]


@pytest.mark.parametrize(
    "document",
    [
        event(_written(**_OVERWRITE)),
        event(_written(rows=0, **_OVERWRITE), run=captured(witness="both", accessed="part")),
        event(_written(**_CREATE, **_ICEBERG)),
    ],
    ids=["replaced", "emptied", "made"],
)
def test_rows_are_known_of_a_partition_that_was(document):
    [found] = _profiles(document)

    assert found.aspect["rowCount"] in (0, 7)


@pytest.mark.parametrize(
    "document",
    [
        event(_written()),
        event(_written(rows=None, **_OVERWRITE)),
        event(_written("2026-01-01", "2026-01-02", **_OVERWRITE)),
        event(output(rows=7, **_OVERWRITE)),
        event(_written(**_OVERWRITE, **_ICEBERG)),
        event(_written(**_OVERWRITE), inputs=[ORDERS]),
        event(_written(**_OVERWRITE), run=captured(witness="both", writes=2)),
        event(_written(**_OVERWRITE), run=captured(witness="both"), state="FAIL"),
        event(_written(**_OVERWRITE), run=captured(witness="declared")),
        event(_written(**_OVERWRITE), run={"processing_engine": {"name": "spark"}}),
        event(_written(**_OVERWRITE), state="START"),
    ],
    ids=[
        "rows were added to",
        "nobody counted",
        "is one of two",
        "is all of the dataset, of which a profiler knows more",
        "a command may have rewritten in part",
        "was read as well, as a command does",
        "was written twice",
        "was written by a run that failed",
        "is declared",
        "a job below the task wrote",
        "is yet to be written",
    ],
)
def test_nothing_is_known_of_a_partition_that(document):
    assert _profiles(document) == []


def test_how_often_spark_wrote_a_dataset_is_in_the_event(recorded):
    of = recorded("glob_reads").event["run"]["facets"]["sparkLineage_capture"]["datasets"]
    writes = {entry["dataset"]["name"]: entry.get("writes") for entry in of}

    assert writes["/lake/staging/days"] == 3
    assert writes["/lake/reports/two_days"] is None


@pytest.mark.parametrize("place", ["facets", "inputFacets"])
def test_what_a_task_measured_is_a_profile_with_its_columns(place):
    amount = {
        "nullCount": 5,
        "distinctCount": 10,
        "min": 1,
        "max": 99.5,
        "sum": 500.0,
        "quantiles": {"0.5": 20, "0.9": 90.0},
    }
    metrics = {"rowCount": 20, "bytes": 300, "columnMetrics": {"amount": amount, "id": {}}}
    read = {**ORDERS, place: {"dataQualityMetrics": metrics}}

    [found] = _profiles(event(inputs=[read]), Conversion(field_paths=FieldPaths.V1))
    assert found.aspect["partitionSpec"]["type"] == "FULL_TABLE"
    assert found.aspect["rowCount"] == 20
    assert found.aspect["sizeInBytes"] == 300
    assert found.aspect["fieldProfiles"] == [
        {
            "fieldPath": "amount",
            "nullCount": 5,
            "nullProportion": 0.25,
            "uniqueCount": 10,
            "uniqueProportion": 0.5,
            "min": "1",
            "max": "99.5",
            "median": "20",
            "quantiles": [
                {"quantile": "0.5", "value": "20"},
                {"quantile": "0.9", "value": "90.0"},
            ],
        },
        {"fieldPath": "id"},
    ]


def test_what_was_measured_of_a_partition_is_a_profile_of_it():
    side = {
        "dataQualityMetrics": {"rowCount": 3, "columnMetrics": {}},
        "subset": {"inputCondition": partitions("2026-01-01")},
    }

    [found] = _profiles(event(inputs=[{**ORDERS, "inputFacets": side}]))
    assert found.aspect["partitionSpec"] == {"partition": "dt=2026-01-01", "type": "PARTITION"}


@pytest.mark.parametrize("metrics", [None, [], {}, {"rowCount": -1, "columnMetrics": {"a": 1}}])
def test_metrics_of_another_shape_are_no_profile(metrics):
    read = {**ORDERS, "inputFacets": {"dataQualityMetrics": metrics}}

    assert _profiles(event(inputs=[read])) == []
