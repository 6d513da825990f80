"""A real Kubernetes with HDFS beneath, and a worker of Airflow that has one of its accounts."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from airflow.providers.apache.spark.hooks import spark_submit as airflow_hook

from tests.cluster import mini_cluster, pods
from tests.cluster.submitting import USER, WORKER_USER, Submitter, until
from tests.kubernetes import control_plane
from tests.kubernetes.contained_pod import Node
from tests.kubernetes.manifests import DOCUMENTED, NAMESPACE, POD_TEMPLATE, WORKER, documented
from tests.record_events import APPLICATIONS


def pytest_itemcollected(item):
    """Mark all tests of this folder, which `make test-kubernetes` alone runs."""
    item.add_marker(pytest.mark.kubernetes)


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """Start a Kubernetes in which the documented objects are, and that has no node yet."""
    with control_plane.running(tmp_path_factory.mktemp("kubernetes") / "plane") as plane:
        of_airflow = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKER[0]}}
        plane.apply([of_airflow])
        for name in DOCUMENTED:
            plane.apply(documented(name))
        yield plane


@pytest.fixture
def node(plane, tmp_path, spark):
    """Run the pods of the namespace on this machine; if the test fails, show what they printed."""
    node = Node(plane, NAMESPACE, tmp_path / "node", Path(spark.distribution.home))
    node.start()
    yield node
    for pod in plane.objects("pods", NAMESPACE):
        plane.delete("pods", NAMESPACE, pod["metadata"]["name"])
    until(lambda: node.problem or not plane.objects("pods", NAMESPACE))
    node.stop()
    for pod in node.pods.values():
        print(f"== {pod.name}, {pod.exit_code}\n{pod.log}")
    assert node.problem is None


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory):
    """Start HDFS."""
    with mini_cluster.running(tmp_path_factory.mktemp("hadoop") / "hdfs", yarn=False) as cluster:
        yield cluster


@pytest.fixture
def lake(hadoop, orders_lake):
    """Copy what the applications here read to HDFS; give its URL."""
    folder = f"/user/{USER}/{uuid.uuid4().hex}/lake"
    datasets = [orders_lake / name for name in ("customers", "orders", "rates")]
    hadoop.put(datasets, folder, USER)
    return f"{hadoop.hdfs}{folder}"


@pytest.fixture
def captures(hadoop):
    """Make a capture location to which worker and drivers may write; give its path in HDFS."""
    path = f"/captures/{uuid.uuid4().hex}"
    hadoop.make_folder(path, WORKER_USER, "770")
    return path


@pytest.fixture
def delivered(hadoop, captures):
    """Whether drivers have delivered both kinds of files with a text in them."""

    def has(text):
        found = hadoop.files().find(captures)
        for kind in ("events", "observations"):
            files = [n for n in found if f"/{kind}-" in n and n.endswith(".ndjson")]
            contents = hadoop.files().cat(files) if files else {}
            if not any(text in content.decode() for content in contents.values()):
                return False
        return True

    return has


@pytest.fixture
def worker(hadoop, captures, plane, monkeypatch, tmp_path):
    """Give the test a worker that has its account's token, and that of HDFS; give its /tmp.

    The worker is another user of HDFS than the drivers are.
    """
    temporary = tmp_path / "worker"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("SPARK_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
        monkeypatch.delenv(name, raising=False)
    host, _, port = hadoop.webhdfs.partition(":")
    connection = {"conn_type": "webhdfs", "host": host, "port": int(port), "login": WORKER_USER}
    monkeypatch.setenv("AIRFLOW_CONN_HDFS_OF_WORKER", json.dumps(connection))
    location = f"hdfs://hdfs_of_worker@{hadoop.namenode}{captures}"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", location)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "30")  # a third for one killed
    kube_config = tmp_path / "kubeconfig"
    kube_config.write_text(yaml.safe_dump(plane.kube_config(*WORKER)))
    monkeypatch.setenv("KUBECONFIG", str(kube_config))
    monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER", "False")
    monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE", str(kube_config))
    # The hook is not to poll the less often the longer a test takes.
    monkeypatch.setattr(airflow_hook, "time", SimpleNamespace(sleep=lambda _: time.sleep(0.5)))
    return temporary


@pytest.fixture
def conf(plane):
    """Give the properties of a job whose pods are as the documented template makes them."""
    return {
        **pods.properties(plane.url, USER),
        "spark.hadoop.dfs.replication": "1",
        "spark.kubernetes.driver.podTemplateFile": str(POD_TEMPLATE),
        "spark.kubernetes.executor.podTemplateFile": str(POD_TEMPLATE),
    }


@pytest.fixture
def submit(plane, node, worker, conf, monkeypatch):
    """Run an application of the image through the operator: ``submit("staging_chain", lake)``."""
    extra = {"deploy-mode": "cluster", "namespace": NAMESPACE}
    connection = {"conn_type": "spark", "host": f"k8s://{plane.url}", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    return _OfImage(conf)


class _OfImage(Submitter):
    """Runs applications that the image has."""

    def operator(self, application, *arguments, **options):
        path = f"local://{APPLICATIONS}/{application}.py"
        return super().operator(path, *arguments, **options)


@pytest.fixture
def asked(plane):
    """Give what an account has asked of the API since the test began: ``asked("spark:spark")``."""
    before = len(plane.requests())
    return lambda account: [r for r in plane.requests()[before:] if r.account == account]


@pytest.fixture
def reported(worker, lake):
    """Give what the task has collected."""
    return lambda: pods.reported(worker, lake)
