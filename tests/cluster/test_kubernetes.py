"""Drivers in pods, by the API of a Kubernetes whose only node is ours.

``spark-submit`` and Spark are real. What they create in the API, drivers and executors, a
:class:`~.kubelet.Kubelet` runs as processes of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as airflow_hook
from airflow.providers.apache.spark.operators import spark_submit as airflow_operator
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.submit import fetching
from tests import spark_submit_double
from tests.cluster import api_server, pods
from tests.cluster.kubelet import Kubelet
from tests.cluster.pods import truth
from tests.record_events import APPLICATIONS

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

NAMESPACE = "spark"  # Airflow's hook finds the pod in no other, see the last test
SECRET = "pl4nted-s3cr3t"
USER = "pods"
"""Who the worker and the drivers are, for HDFS."""


@pytest.fixture(scope="module")
def api(tmp_path_factory, spark):
    with api_server.serving(spark.distribution.home, tmp_path_factory.mktemp("api") / "log") as api:
        yield api


@pytest.fixture
def kubelet(api, tmp_path, spark):
    kubelet = Kubelet(api, NAMESPACE, tmp_path / "node", spark.distribution.home)
    kubelet.start()
    yield kubelet
    kubelet.stop()
    assert kubelet.problem is None


@pytest.fixture
def folder(cluster):
    """Make a folder of HDFS for the test; give its path there."""
    path = f"/{USER}/{uuid.uuid4().hex}"
    cluster.make_folder(path, USER)
    return path


@pytest.fixture
def lake(cluster, folder, orders_lake):
    """Copy what the applications here read to HDFS; give its URL."""
    for dataset in ("customers", "orders", "rates"):
        for file in (orders_lake / dataset).rglob("part-*.parquet"):
            at = file.relative_to(orders_lake)
            cluster.files(USER).put_file(str(file), f"{folder}/lake/{at}")
    return f"{cluster.hdfs}{folder}/lake"


@pytest.fixture
def worker(cluster, folder, monkeypatch, tmp_path):
    """Give the test a worker of its own that reaches HDFS, and Spark; give what it has in /tmp."""
    temporary = tmp_path / "worker"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    host, _, port = cluster.webhdfs.partition(":")
    connection = {"conn_type": "webhdfs", "host": host, "port": int(port), "login": USER}
    monkeypatch.setenv("AIRFLOW_CONN_HDFS_OF_PODS", json.dumps(connection))
    location = f"hdfs://hdfs_of_pods@{cluster.namenode}{folder}/captures"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", location)
    return temporary


@pytest.fixture
def submit(api, kubelet, worker, monkeypatch):
    """Run an application through the operator; give the operator and its error, if there is one."""
    extra = {"deploy-mode": "cluster", "namespace": NAMESPACE}
    connection = {"conn_type": "spark", "host": f"k8s://{api.url}", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "30")  # a third for one killed
    # The hook does not start without, and is not to poll the less often the longer a test takes.
    monkeypatch.setattr(airflow_hook, "kube_client", kube_client(api), raising=False)
    monkeypatch.setattr(airflow_operator, "kube_client", airflow_hook.kube_client)
    monkeypatch.setattr(airflow_hook, "time", SimpleNamespace(sleep=lambda _: time.sleep(0.5)))
    properties = pods.properties(api.url, USER)

    def run(application, lake, conf=None, **options):
        path = application if "/" in application else f"{APPLICATIONS}/{application}.py"
        operator = SparkLineageSubmitOperator(
            application=path,
            application_args=[lake],
            conf={**properties, **(conf or {})},
            **{"task_id": "revenue", "name": "revenue", "durable": False, **options},
        )
        try:
            spark_submit_double.execute(operator, spark_submit_double.task_context())
        except AirflowException as error:
            return operator, str(error)
        return operator, ""

    return run


def degradations(operator, of="complete"):
    lineage = getattr(operator, f"get_openlineage_facets_on_{of}")(None)
    found = lineage.run_facets["sparkLineage_capture"].degradations
    return {d["code"]: d["message"] for d in found}


def argument(operator, flag):
    """Give what spark-submit was given for a flag."""
    argv = operator._hook._submit_sp.args
    return argv[argv.index(flag) + 1]


def kube_client(api):
    """Give what Airflow's provider of Kubernetes would, as far as the hook of Spark uses it."""

    class NotFoundError(Exception):
        status = 404

    def read(name, namespace):
        for pod in api.objects("pods", namespace):
            if pod["metadata"]["name"] == name:
                status = SimpleNamespace(phase=pod["status"]["phase"], container_statuses=[])
                return SimpleNamespace(status=status)
        raise NotFoundError(name)

    client = SimpleNamespace(read_namespaced_pod=read)
    return SimpleNamespace(get_kube_client=lambda: client, ApiException=NotFoundError)


@pytest.fixture
def uploads(cluster, folder):
    return {"spark.kubernetes.file.upload.path": f"{cluster.hdfs}{folder}/uploads"}


@pytest.fixture
def image(tmp_path):
    """Make a folder as if it were the image's: with applications."""
    return shutil.copytree(APPLICATIONS, tmp_path / "image")


@pytest.fixture
def in_image(image):
    """Name an application that the image has."""
    return lambda name: f"local://{image}/{name}.py"


@pytest.fixture
def listener_in_image(image, spark, monkeypatch):
    """Put the listener into the image, and name it there."""
    jar = f"{image}/openlineage-spark.jar"
    shutil.copy(fetching.cached(spark.distribution.scala), jar)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", f"local://{jar}")
    return f"local://{jar}"


@pytest.fixture
def reported(lake, worker):
    """Give what the task has collected."""
    return lambda: pods.reported(worker, lake)


# --- what a task submits, and what comes back -----------------------------------------------------


def test_files_of_the_worker_come_by_the_upload_path(submit, uploads, lake, kubelet, reported, api):
    transport = {
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": "http://127.0.0.1:9",  # where nobody listens
        "spark.openlineage.transport.auth.type": "api_key",
        "spark.openlineage.transport.auth.apiKey": SECRET,
    }
    operator, error = submit("staging_chain", lake, conf=uploads | transport)
    assert error == ""
    assert degradations(operator) == {}
    assert reported() == truth("staging_chain")
    driver = kubelet.driver
    assert driver.container["image"] == pods.IMAGE
    assert driver.found["spec"]["serviceAccountName"] == "spark"
    [executor] = kubelet.executors  # it was one that wrote
    assert "Saved output of task" in executor.log
    assert [*(driver.root / "tmp").iterdir()] == []  # what was captured was there
    # Spark itself puts all properties into a config map, which is no secret of Kubernetes.
    argv = operator._hook._submit_sp.args
    assert SECRET not in json.dumps([argv, driver.found, driver.command, executor.found])
    named = [m["metadata"]["name"] for m in api.objects("configmaps", NAMESPACE)]
    holding = [m for m in api.objects("configmaps", NAMESPACE) if SECRET in json.dumps(m["data"])]
    assert [m["metadata"]["name"] for m in holding] == [n for n in named if "-drv-" in n]


def test_without_an_upload_path_both_files_come_from_the_tools_folder(
    submit, in_image, lake, reported
):
    """Here Airflow asks the API for the pod's end; spark-submit has ended before."""
    operator, error = submit(
        in_image("staging_chain"), lake, track_driver_via_k8s_api=True, durable=True
    )
    assert error == ""
    assert degradations(operator) == {}
    assert reported() == truth("staging_chain")
    for flag in ("--jars", "--py-files"):
        assert "/captures/.tools/" in argument(operator, flag)


def test_a_listener_in_the_image_is_named_there(
    submit, in_image, listener_in_image, lake, reported
):
    operator, error = submit(in_image("staging_chain"), lake)
    assert error == ""
    assert degradations(operator) == {}
    assert reported() == truth("staging_chain")
    assert argument(operator, "--jars") == listener_in_image
    assert "/captures/.tools/" in argument(operator, "--py-files")


def test_a_driver_that_fails_reports_what_it_had_written(submit, in_image, lake, reported):
    _, error = submit(in_image("failing_action"), lake)
    assert "Kubernetes spark exit code is: 1" in error
    # A task that has failed names what it began to write as well.
    assert reported() == sorted([*truth("failing_action"), "writes checked_orders"])


def test_a_driver_that_is_killed_reports_what_it_had_delivered(submit, in_image, lake, reported):
    operator, error = submit(in_image("killed_driver"), lake)
    assert "Kubernetes spark exit code is: 137" in error
    assert "killed" in degradations(operator, "failure")["delivery_incomplete"]
    found = set(reported())
    assert found >= {
        "good_orders.amount <- orders.amount IDENTITY",
        "good_orders.order_id <- orders.order_id IDENTITY",
        "reads orders dt=2024-05-06",
        "writes good_orders",
        "says delivery_incomplete",
    }
    # How much of the second action there is depends on when the driver was killed.
    assert found - {"says delivery_incomplete"} <= set(truth("killed_driver"))


def test_airflows_hook_still_finds_the_pod_in_one_namespace_alone(monkeypatch):
    # When this fails, docs/cluster.md need no longer name the namespace.
    line = "Deployed Spark application with submission ID {}:revenue-1f-driver into Kubernetes"
    monkeypatch.setattr(airflow_hook, "kube_client", object(), raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "k8s://host:443")
    hook = airflow_hook.SparkSubmitHook()
    hook._process_spark_submit_log([line.format("lineage")])
    assert hook._kubernetes_driver_pod is None
    hook._process_spark_submit_log([line.format("spark")])
    assert hook._kubernetes_driver_pod == "revenue-1f-driver"
