"""What the doctor makes of an application that did not end well in the cluster."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.cli.doctor import cluster
from airflow_provider_sparklineage.settings.checks import Status

pytestmark = pytest.mark.airflow

URL, IN_SPARK = "s3://bucket/lineage/try-abc", "s3a://bucket/lineage/try-abc"
STACK = " at org.apache.hadoop.fs.RawLocalFileSystem.getFileStatus(RawLocalFileSystem.java:907)"


def failed(output):
    """Have Airflow's hook say what it says."""
    text = f"Cannot execute: spark-submit --master yarn {IN_SPARK}. Error code is: 1. "
    return cluster.ended_badly(f"{text}Last spark-submit output: {output}", URL, IN_SPARK)


def test_a_location_that_spark_does_not_reach_is_blamed():
    check = failed(f"AccessDeniedException: {IN_SPARK}/trial_application.py: 403 Forbidden{STACK}")
    assert check.status is Status.FAILED
    assert f"This worker reaches {URL}, but Spark does not reach {IN_SPARK}" in check.message
    assert "403 Forbidden" in check.message
    assert "RawLocalFileSystem" not in check.message
    assert "capture_location_in_spark" in check.fix


def test_what_has_nothing_to_do_with_the_location_is_reported_as_spark_says_it():
    check = failed(f"ConnectException: no ResourceManager at yarn:8032{STACK * 50}")
    assert (
        check.message
        == "Spark ended with an error: ConnectException: no ResourceManager at yarn:8032"
    )
    assert "sparklineage-doctor" in check.fix


@pytest.mark.parametrize("output", ["", "x" * 100_000], ids=["nothing", "very much"])
def test_any_output_makes_a_message_of_some_size(output):
    assert len(failed(output).message) < 1000
