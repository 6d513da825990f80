"""The cluster itself: a job runs in it, and it ends with who uses it."""

from __future__ import annotations

import os
import subprocess

import pytest

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests import spark_submit_double
from tests.cluster import mini_cluster
from tests.record_events import APPLICATIONS

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


def test_a_job_runs_in_cluster_mode_and_writes_to_hdfs(on_yarn, lake, spark):
    task = SparkLineageSubmitOperator(
        task_id="plain",
        name="plain",
        application=f"{APPLICATIONS}/create_then_read.py",
        application_args=[lake],
        conf=on_yarn.spark_conf(spark.distribution.home),
        lineage=False,
        durable=False,
    )
    spark_submit_double.execute(task, spark_submit_double.task_context())
    [ran] = [a for a in on_yarn.applications() if a["name"] == "plain"]
    assert (ran["finalStatus"], ran["user"]) == ("SUCCEEDED", "etl")
    assert on_yarn.files().exists(f"{lake.removeprefix(on_yarn.hdfs)}/paid_total/_SUCCESS")


def test_it_is_shared_and_ends_with_its_last_user(tmp_path):
    first = mini_cluster.start(tmp_path, yarn=False)
    second = mini_cluster.start(tmp_path, yarn=False)
    assert second.hdfs == first.hdfs
    second.stop()
    assert "Safe mode is OFF" in first.dfsadmin("-safemode", "get")
    first.stop()
    found = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    own = [line for line in found.stdout.splitlines() if str(tmp_path) in line]
    assert [line for line in own if not line.startswith(str(os.getpid()))] == []


def test_one_that_does_not_start_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(mini_cluster.ClusterError, match="JAVA_HOME"):
        mini_cluster.start(tmp_path / "hadoop")
