"""Runs of Databricks without Databricks: nothing is added to them, and the event says why."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import ExecutorSafeguard

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.databricks import SparkLineageDatabricksOperator
from tests import databricks_double
from tests.operators.outcomes import degradations, facets
from tests.operators.test_rendering import DAY, dated, rendered
from tests.spark_submit_double import task_context

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.skipif(
        not hasattr(DatabricksSubmitRunOperator, "poll_until_complete"),
        reason="this provider of Databricks has no durable runs",
    ),
    # The hook asks for the version of its provider so.
    pytest.mark.filterwarnings("ignore:ProvidersManager.hooks is deprecated"),
]

CLUSTER = {"spark_version": "16.4.x-scala2.13", "num_workers": 2, "spark_conf": {"spark.a": "b"}}
TASK = {"task_key": "one", "spark_python_task": {"python_file": "dbfs:/job.py"}}


@pytest.fixture
def databricks(lake, monkeypatch):
    with databricks_double.databricks() as server:
        connection = {"conn_type": "databricks", "schema": "http", "host": "127.0.0.1"}
        connection |= {"port": server.server_port, "password": "dapi-of-the-tests"}
        monkeypatch.setenv("AIRFLOW_CONN_DATABRICKS_DEFAULT", json.dumps(connection))
        yield server


def operator(cls=SparkLineageDatabricksOperator, **more):
    known = {"json": {"tasks": [{**TASK, "new_cluster": CLUSTER}]}} if "json" not in more else {}
    return cls(
        **{"task_id": "revenue", "polling_period_seconds": 1, "durable": False, **known, **more}
    )


def submitted(databricks, execute, **more):
    """Submit by the stock operator; give the run that Databricks got."""
    execute(operator(DatabricksSubmitRunOperator, **more))
    return databricks.runs.pop()


def test_a_run_is_submitted_as_it_is_and_the_event_has_the_lines_to_set(databricks, execute, lake):
    stock = submitted(databricks, execute)
    task = operator()
    before = copy.deepcopy(task.json)
    execute(task)
    assert databricks.runs == [stock]
    assert task.json == before
    [(code, message)] = degradations(task).items()
    assert code == "listener_unavailable"
    assert "openlineage-spark_2.13-1.53.0.jar to /databricks/jars" in message
    assert "DBCEventLoggingListener,io.openlineage.spark.agent.OpenLineageSparkListener" in message
    assert not [*lake.glob("*-try*")]


NAMED = {"new_cluster": {**CLUSTER, "spark_version": "15.4.x-scala2.12"}, "json": None}
FORMS = {
    "a text": ({"json": json.dumps({**TASK, "new_cluster": CLUSTER})}, "openlineage-spark_2.13"),
    "named arguments": ({**NAMED, "spark_python_task": {}}, "openlineage-spark_2.12"),
    "an unknown release": (
        {"json": {**TASK, "new_cluster": {"spark_version": "99.x"}}},
        "openlineage-spark_<Scala>",
    ),
    "an existing cluster": ({"json": {**TASK, "existing_cluster_id": "1"}}, "no `new_cluster`"),
    "serverless": ({"json": {"tasks": [{**TASK, "environment_key": "e"}]}}, "serverless"),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_reason_is_that_of_the_run(databricks, execute, form):
    arguments, reason = FORMS[form]
    task = operator(**arguments)
    execute(task)
    assert reason in degradations(task)["listener_unavailable"]


def test_airflows_parent_stays(databricks, execute):
    execute(operator(openlineage_inject_parent_job_info=True))
    [run] = databricks.runs
    conf = run["tasks"][0]["new_cluster"]["spark_conf"]
    assert conf["spark.openlineage.parentJobName"] == "shop.revenue"
    assert "spark.extraListeners" not in conf


def test_declared_datasets_are_those_of_the_task(databricks, execute):
    task = operator(reads=["s3://shop/orders"], writes=["s3://shop/revenue"])
    execute(task)
    lineage = facets(task)
    assert [one.name for one in lineage.inputs] == ["orders"]
    assert [one.name for one in lineage.outputs] == ["revenue"]


def test_a_strict_task_submits_nothing(databricks, execute):
    with pytest.raises(ListenerError, match="init script"):
        execute(operator(strict=True))
    assert databricks.runs == []


def test_a_run_that_fails_has_an_event(databricks, execute):
    databricks.states = [("TERMINATED", "FAILED")]
    task = operator()
    with pytest.raises(AirflowException, match="FAILED"):
        execute(task)
    assert [*degradations(task, "failure")] == ["listener_unavailable"]


@pytest.mark.parametrize("broken", ["text", 3])
def test_a_run_of_another_shape_is_left_to_airflow(databricks, execute, broken):
    task = operator(json=broken)
    assert task.lineage_properties == {}
    with pytest.raises(Exception, match=r"json|mapping|dict"):
        execute(task)
    assert databricks.runs == []


def test_a_deferred_task_says_the_same(databricks, execute, lake):
    databricks.states = [("RUNNING", "")]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    state = {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS", "state_message": ""}
    event = {"run_id": 1, "run_page_url": "", "run_state": json.dumps(state), "errors": []}
    task = operator(deferrable=True)
    token = ExecutorSafeguard.tracker.set(task)
    try:
        task.resume_execution(caught.value.method_name, {"event": event}, task_context())
    finally:
        ExecutorSafeguard.tracker.reset(token)
    assert [*degradations(task)] == ["listener_unavailable"]
    assert not [*lake.glob("*-try*")]


def test_templates_in_the_run_are_traced():
    task = {**TASK, "spark_python_task": {"python_file": "job.py", "parameters": ["{{ ds }}"]}}
    found = dated(rendered(operator(json={"tasks": [task]})))
    assert {name: days for name, days in found.items() if days} == {
        "json[tasks][0][spark_python_task][parameters][0]": [DAY]
    }


def test_an_adopted_run_says_the_same(databricks, execute):
    with DAG("d", schedule=None):
        task = operator(DatabricksSubmitRunOperator)
    adopting.adopt(task)
    assert isinstance(task, SparkLineageDatabricksOperator)
    execute(task)
    assert [*degradations(task)] == ["listener_unavailable"]


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.databricks.operators.databricks'] = None\n"
        "import airflow_provider_sparklineage.operators.databricks"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[databricks]'" in done.stderr
