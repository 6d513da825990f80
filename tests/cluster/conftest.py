"""A Hadoop for the session, and jobs that the operator submits to it."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

import pytest

from tests.cluster import mini_cluster

USER = "etl"
"""Who submits, for Hadoop; its superuser may do what nobody else may."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Start HDFS and YARN, once for all workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with mini_cluster.running(shared / "hadoop") as cluster:
        cluster.make_folder(f"/user/{USER}", USER)
        yield cluster


@pytest.fixture
def lake(cluster, orders_lake, request):
    """Copy the lake of the recorded applications to HDFS; give its URL."""
    folder = f"/user/{USER}/{uuid.uuid4().hex}"
    cluster.files(USER).put(str(orders_lake), folder, recursive=True)
    yield f"{cluster.hdfs}{folder}"
    cluster.files(USER).rm(folder, recursive=True)


@pytest.fixture
def on_yarn(cluster, monkeypatch):
    """Let what is submitted run on the cluster, by a user without privileges."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    connection = {
        "conn_type": "spark",
        "host": "yarn",
        "extra": {
            "deploy-mode": "cluster",
            "yarn_resourcemanager_webapp_address": cluster.resource_manager,
        },
    }
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    return cluster
