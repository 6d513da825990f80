"""Capture locations on HDFS that are of no use: no job notices, and what is lost is declared."""

from __future__ import annotations

import getpass

import pytest

from tests.cluster import mini_cluster
from tests.cluster.submitting import WORKER_USER

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture
def another_hdfs(tmp_path_factory):
    """Start a second HDFS, to be broken without harm to what runs on the first one."""
    with mini_cluster.running(tmp_path_factory.mktemp("hadoop"), yarn=False) as another:
        yield another


def test_a_location_that_is_closed_to_the_job(submit, cluster, capture_at, lake):
    capture_at(cluster, WORKER_USER, "700")
    ran = submit("create_then_read", lake, name="closed")
    assert ran.error is None
    assert "`sparklineage:`" in ran.degradations["driver_elsewhere"]
    [application] = [a for a in cluster.applications() if a["name"] == "closed"]
    log = cluster.log(application["id"])
    lines = [line for line in log.splitlines() if line.startswith("sparklineage:")]
    assert "Permission denied: user=etl" in lines[0]


def test_a_location_that_is_closed_to_the_worker(submit, cluster, capture_at, lake):
    capture_at(cluster, getpass.getuser(), "700")
    ran = submit("create_then_read", lake)
    assert ran.error is None
    assert "Permission denied: user=airflow" in "".join(ran.degradations.values())


def test_a_quota_that_is_full_before_the_end(between_writes, captures, cluster, lake):
    def fill():
        folder = captures.path
        used = cluster.files().content_summary(folder)
        count = used["directoryCount"] + used["fileCount"]
        cluster.dfsadmin("-setQuota", str(count), folder)

    ran = between_writes(captures, fill)
    assert ran.error is None
    assert f"{lake}/before" in ran.outputs
    assert "reported no end" in ran.degradations["delivery_incomplete"]


def test_a_name_node_in_safe_mode_at_the_end(between_writes, another_hdfs, capture_at, lake):
    captures = capture_at(another_hdfs, WORKER_USER, "770")
    ran = between_writes(captures, lambda: another_hdfs.dfsadmin("-safemode", "enter"))
    assert ran.error is None
    assert f"{lake}/before" in ran.outputs
    assert "reported no end" in ran.degradations["delivery_incomplete"]
