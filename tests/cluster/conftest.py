"""A Hadoop for the session, and jobs that the operator submits to it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_sparklineage.spark.capture import tools
from tests.cluster import livy as livy_server
from tests.cluster import mini_cluster
from tests.cluster.submitting import LONGEST_S, USER, WORKER_USER, LivySubmitter, Submitter, until
from tests.record_events import APPLICATIONS


def pytest_itemcollected(item):
    """Mark all tests of this folder: `make test-all` takes only the smoke tests of them."""
    item.add_marker(pytest.mark.cluster)


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
def home(tmp_path, monkeypatch):
    """Give a test a worker of its own, with the tests' Spark."""
    move_worker(tmp_path / "worker", monkeypatch)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path


def move_worker(folder, monkeypatch):
    """Let all that a worker keeps on its own machine be in a folder."""
    (folder / "tmp").mkdir(parents=True)
    monkeypatch.setenv("AIRFLOW_HOME", str(folder / "airflow"))
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))


@pytest.fixture
def on_yarn(cluster, home, monkeypatch):
    """Let what is submitted run on the cluster, by a user without privileges."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
    for name, value in cluster.variables(USER).items():
        monkeypatch.setenv(name, value)
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


@pytest.fixture
def capture_at(on_yarn, monkeypatch):
    """Set a folder of HDFS as the capture location: ``capture_at(cluster, WORKER_USER, "770")``."""

    def configure(cluster, owner, permission):
        place = Captures(cluster, f"/captures/{uuid.uuid4().hex}")
        cluster.make_folder(place.path, owner, permission)
        connection = cluster.connection(WORKER_USER)
        name = f"hdfs_{uuid.uuid4().hex}"  # file systems are kept by the connection's name
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
        location = f"hdfs://{name}@{cluster.namenode}{place.path}"
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", location)
        return place

    return configure


@pytest.fixture
def captures(cluster, capture_at):
    """Configure a capture location on HDFS that worker and job may write to."""
    return capture_at(cluster, WORKER_USER, "770")


TOOLS = f"{tools.FOLDER}/"


class Captures:
    """A capture location on HDFS."""

    def __init__(self, cluster, path):
        self.cluster = cluster
        self.path = path
        self.url = f"{cluster.hdfs}{path}"
        """Its URL for Spark."""

    def files(self):
        """Name the files of tries there, from a try's folder on."""
        return [name for name in self._written() if not name.startswith(TOOLS)]

    def tools(self):
        """Give when each file of the tools folder was written, by its name from a digest on."""
        found = self._written().items()
        return {n.removeprefix(TOOLS): time for n, time in found if n.startswith(TOOLS)}

    def _written(self):
        found = self.cluster.files().find(self.path, detail=True).items()
        return {n.removeprefix(f"{self.path}/"): info["modificationTime"] for n, info in found}

    def delivered(self, kind):
        """Give what drivers have delivered of a kind, by now."""
        files = [
            f"{self.path}/{name}"
            for name in self.files()
            if f"/{kind}-" in name and name.endswith(".ndjson")
        ]
        found = self.cluster.files().cat(files) if files else {}
        return b"".join(content for _, content in sorted(found.items())).decode()


@pytest.fixture
def submit(on_yarn, spark):
    """Run an application through the operator: ``submit("staging_chain", lake)``."""
    return Submitter(on_yarn.spark_conf(spark.distribution.home))


@pytest.fixture(scope="session")
def livys(cluster, spark):
    """Start a Livy of the cluster, once for all workers."""
    home = Path(spark.distribution.home)
    with livy_server.running(cluster, USER, home, APPLICATIONS) as livy:
        yield livy


@pytest.fixture
def livy(livys, cluster, home, spark, monkeypatch):
    """Let what is posted run on the cluster; if the test fails, show what was logged meanwhile."""
    monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", livys.connection)
    version = f"{spark.distribution.version}-scala{spark.distribution.scala}"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", version)
    logged, before = len(livys.log), {a["id"] for a in cluster.applications()}
    yield livys
    print(livys.log[logged:])
    for application in cluster.applications():
        if application["id"] not in before:
            print(cluster.log(application["id"]))


@pytest.fixture
def submit_to_livy(livy):
    """Run an application through the operator for Livy."""
    return LivySubmitter()


@pytest.fixture
def lake(cluster, orders_lake):
    """Copy the lake of the recorded applications to HDFS, less its database; give its URL."""
    folder = f"/user/{USER}/{uuid.uuid4().hex}/lake"
    datasets = [dataset for dataset in orders_lake.iterdir() if dataset.name != "shop"]
    cluster.put(datasets, folder, USER)
    return f"{cluster.hdfs}{folder}"


@pytest.fixture
def let_go(cluster, lake):
    """Let ``waits_between`` on this lake go on."""
    folder = lake.removeprefix(cluster.hdfs)
    return lambda: cluster.files(USER).pipe_file(f"{folder}/go", b"")


@pytest.fixture
def between_writes(submit, lake, let_go):
    """Run ``waits_between``, and do something when the first of its writes has been delivered."""

    def run(place, action, **options):
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(submit, "waits_between", lake, **options)
            try:
                until(lambda: is_known(place, "before") or running.done())
                action()
            finally:
                let_go()
            return running.result(LONGEST_S)

    def is_known(place, name):
        return all(f"/{name}" in place.delivered(kind) for kind in ("events", "observations"))

    return run
