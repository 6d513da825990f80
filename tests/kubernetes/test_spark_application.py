"""SparkApplications, which Kubeflow's own Spark operator submits."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowException
from kubernetes.client.exceptions import ApiException

from airflow_provider_sparklineage.operators.spark_kubernetes import SparkLineageKubernetesOperator
from tests import spark_submit_double
from tests.cluster.pods import IMAGE, truth
from tests.cluster.submitting import LONGEST_S, Ran
from tests.kubernetes import spark_operator
from tests.kubernetes.manifests import (
    ACCOUNTS,
    NAMESPACE,
    POD_TEMPLATE,
    WORKER,
    documented,
    granted,
    without,
)
from tests.record_events import APPLICATIONS

UNUSED = {("pods/log", "get"), ("events", "list"), ("events", "watch"), ("pods", "patch")}
"""Rights for the driver's log, and for a driver that does not start or fails; not tried here."""


@pytest.fixture(scope="module")
def submits(plane, spark, tmp_path_factory):
    """Run the Spark operator."""
    folder = tmp_path_factory.mktemp("operator") / "run"
    with spark_operator.running(plane, folder, Path(spark.distribution.home)):
        yield
    print((folder / "log").read_text()[-20_000:])


@pytest.fixture
def apply(submits, plane, node, worker, conf, spark, monkeypatch):
    """Run an application of the image as a SparkApplication: ``apply("staging_chain", lake)``."""
    kube_config = json.dumps(plane.kube_config(*WORKER))
    connection = {"conn_type": "kubernetes", "extra": {"kube_config": kube_config}}
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps(connection))
    version = f"{spark.distribution.version}-scala{spark.distribution.scala}"

    def template(container):
        found = yaml.safe_load(POD_TEMPLATE.read_text())
        found["spec"]["containers"][0]["name"] = container
        return {"spec": found["spec"]}

    def run(application, lake):
        spec = {
            "type": "Python",
            "mode": "cluster",
            "image": IMAGE,
            "sparkVersion": version,
            "mainApplicationFile": f"local://{APPLICATIONS}/{application}.py",
            "arguments": [lake],
            "sparkConf": {k: v for k, v in conf.items() if "podTemplate" not in k},
            "restartPolicy": {"type": "Never"},
            "driver": {
                "serviceAccount": "spark",
                "template": template("spark-kubernetes-driver"),
            },
            "executor": {"template": template("executor")},
        }
        body = {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": "job"},
            "spec": spec,
        }
        operator = SparkLineageKubernetesOperator(
            task_id="job",
            namespace=NAMESPACE,
            template_spec=deepcopy(body),
            startup_check_interval_seconds=1,
            startup_timeout_seconds=LONGEST_S,
            get_logs=False,  # the API asks the node for them, and this one has no server
        )
        known = spark_submit_double.task_context()
        context = {**known, "task_instance": known["ti"], "run_id": "manual", "dag": None}
        try:
            spark_submit_double.execute(operator, context)
        except (AirflowException, ApiException) as error:
            return Ran(operator, error)
        return Ran(operator)

    return run


def test_a_spark_application_has_the_whole_event(apply, lake, reported, node, asked):
    ran = apply("staging_chain", lake)
    assert ran.error is None
    assert ran.degradations == {}
    assert reported() == truth("staging_chain")
    assert node.driver.found["spec"]["serviceAccountName"] == "spark"
    used = asked(ACCOUNTS["spark-applications"])
    assert [r for r in used if r.code == 403] == []
    assert granted("spark-applications") - {right for r in used for right in r.rights} == UNUSED


def test_without_the_right_to_create_one_nothing_runs(apply, lake, node, plane):
    plane.apply(without("spark-applications", "sparkapplications", "create"))
    try:
        ran = apply("staging_chain", lake)
    finally:
        plane.apply(documented("spark-applications"))
    assert "403" in str(ran.error)
    assert node.pods == {}
