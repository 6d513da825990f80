"""The cluster itself: a job runs in it, and it ends with who uses it."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cluster import mini_cluster
from tests.cluster.shared_service import ServiceError

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


def test_a_job_runs_in_cluster_mode_and_writes_to_hdfs(on_yarn, submit, lake):
    submit("create_then_read", lake, name="plain", lineage=False)
    [ran] = [a for a in on_yarn.applications() if a["name"] == "plain"]
    assert (ran["finalStatus"], ran["user"]) == ("SUCCEEDED", "etl")
    assert on_yarn.files().exists(f"{lake.removeprefix(on_yarn.hdfs)}/paid_total/_SUCCESS")


def test_it_is_shared_and_ends_with_its_last_user(tmp_path):
    first = mini_cluster.start(tmp_path, yarn=False)
    second = mini_cluster.start(tmp_path, yarn=False)
    assert second.hdfs == first.hdfs
    second.stop()
    assert first.files().ls("/") == []
    first.stop()
    found = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    own = [line for line in found.stdout.splitlines() if str(tmp_path) in line]
    assert [line for line in own if not line.startswith(str(os.getpid()))] == []


def test_one_that_does_not_start_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ServiceError, match="JAVA_HOME"):
        mini_cluster.start(tmp_path / "hadoop")
