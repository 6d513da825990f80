"""What the doctor makes of an application that did not end well in the cluster."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.cli.doctor import airflow, cluster, spark
from airflow_provider_sparklineage.settings.checks import Status, passed
from airflow_provider_sparklineage.settings.resolution import resolve
from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation
from airflow_provider_sparklineage.storage.objects import Objects

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


# --- what it submits ------------------------------------------------------------------------------


@pytest.fixture
def submitted(spark_submit, lake, monkeypatch):
    """Run the trial with properties of a task; give the arguments of spark-submit."""
    monkeypatch.setattr(cluster, "_COLLECT_S", 1.0)
    yarn = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_OWN", json.dumps(yarn))

    def run(conf):
        found = airflow.check("sparklineage_default", "own")
        assert found.delivers
        check = cluster.run(SimpleNamespace(), "own", conf, found.settings)
        assert "its driver delivered nothing" in check.message, check
        return spark_submit.given.argv

    return run


def test_its_events_go_to_no_backend_of_the_task(submitted):
    prefix = "spark.openlineage.transport."
    argv = submitted({f"{prefix}type": "http", f"{prefix}url": "http://marquez:5000"})
    assert f"{prefix}type=http" not in argv
    assert "marquez" not in str(argv)


def test_it_asks_for_one_executor_and_keeps_the_other_properties(submitted):
    argv = submitted({"spark.executor.instances": "9", "spark.ui.enabled": "true"})
    assert {"spark.executor.instances=1", "spark.ui.enabled=true"} <= {*argv}
    assert "spark.executor.instances=9" not in argv


# --- what it leaves -------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path):
    location = CaptureLocation(tmp_path / "captures", f"file://{tmp_path}/lake")
    return replace(resolve(), capture_location=location)


def test_what_it_may_not_remove_is_reported(settings, monkeypatch):
    def refuse(*_):
        msg = "Permission denied: user=airflow, access=ALL, inode=tables/totals"
        raise PermissionError(msg)

    monkeypatch.setattr(cluster, "_tried", lambda *_: passed("trial", "It ran."))
    monkeypatch.setattr(Objects, "remove_folder", refuse)
    check = cluster.run(SimpleNamespace(), "spark_default", {}, settings)
    assert check.status is Status.WARNING
    assert check.message.startswith("It ran. This worker could not remove the folder file:///")
    assert "Permission denied" in check.message
    assert "as the user of the driver" in check.fix


def test_what_it_has_removed_is_no_matter(settings, monkeypatch):
    monkeypatch.setattr(cluster, "_tried", lambda *_: passed("trial", "It ran."))
    assert cluster.run(SimpleNamespace(), "spark_default", {}, settings).message == "It ran."


@pytest.mark.parametrize("is_stale", [True, False])
def test_a_stale_observer_in_the_image_is_a_warning(recorded, monkeypatch, is_stale):
    monkeypatch.setattr(spark, "_missing", lambda _: [])
    event = recorded("staging_chain").event
    loss = {"code": "observer_outdated", "message": "The observer is of another version."}
    event["run"]["facets"]["sparkLineage_capture"]["degradations"] = [loss] if is_stale else []
    machine = SimpleNamespace(spark=SimpleNamespace(version="4.0.1"), defaults={})
    check = spark.judged(event, machine, "", 7.0, "in the cluster ")
    assert check.status is (Status.WARNING if is_stale else Status.OK)
    assert ("The observer is of another version." in check.message) == is_stale
