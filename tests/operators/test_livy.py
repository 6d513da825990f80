"""Batches of Livy without Livy: what is posted, what comes back, and tasks that are deferred."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys

import pytest
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.livy import SparkLineageLivyOperator
from tests import livy_double
from tests.operators.outcomes import READ, degradations, facets, names, resumed
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver

pytestmark = pytest.mark.airflow

SECRET = "pl4nted-s3cr3t"


@pytest.fixture
def livy(lake, monkeypatch, tmp_path):
    """Serve a Livy whose batches deliver what a recorded application does."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    driver = RecordedDriver(tmp_path / "container")
    with livy_double.livy(does=lambda batch: driver(batch.get("conf") or {})) as server:
        connection = {"conn_type": "livy", "host": "127.0.0.1", "port": server.server_port}
        monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(connection))
        yield server


def operator(cls=SparkLineageLivyOperator, **more):
    return cls(**{"task_id": "revenue", "file": "hdfs:///job.py", "polling_interval": 1, **more})


# --- a batch that is waited for -------------------------------------------------------------------


def test_what_the_batch_did_is_the_lineage_of_the_task(livy, execute):
    task = operator(conf={"spark.shop": 1}, jars=["/own.jar"], py_files=None, name="shop")
    before = copy.deepcopy(task.spark_params)
    assert execute(task) == 0
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    [batch] = livy.batches
    assert batch["conf"]["spark.shop"] == 1  # and no text
    assert batch["name"] == "shop"
    own, listener = batch["jars"]
    assert own == "/own.jar"
    assert listener.startswith("local:///")
    assert listener.endswith("/openlineage-spark_2.13-1.53.0.jar")
    [observer] = batch["pyFiles"]
    assert observer.endswith("/sparklineage_observer.zip")
    assert "spark.driver.extraJavaOptions" not in batch["conf"]  # Livy's own Spark may have some
    assert task.spark_params == before


def test_parts_of_the_users_own_conf_stay(livy, execute):
    own = {"spark.extraListeners": "shop.Listener", "spark.openlineage.x": "y"}
    execute(operator(conf={**own, "spark.jars": "/a.jar"}))
    [batch] = livy.batches
    assert batch["conf"]["spark.extraListeners"].split(",")[0] == "shop.Listener"
    assert batch["jars"][0] == "/a.jar"
    assert batch["conf"]["spark.openlineage.x"] == "y"


def test_a_batch_that_fails_has_an_event_with_what_it_did(livy, execute):
    livy.states = ["running", "dead"]
    task = operator()
    with pytest.raises(AirflowException, match="did not succeed"):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_a_batch_that_livy_does_not_take_is_not_waited_for(livy, execute, lake):
    livy.refuses = True
    task = operator()
    with pytest.raises(AirflowException, match="Could not submit batch"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


def test_a_batch_that_nobody_waits_for_is_collected_later(livy, execute):
    task = operator(polling_interval=0)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_the_version_of_spark_has_to_be_known(livy, execute, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    task = operator(conf={"spark.shop": "1"})
    execute(task)
    assert livy.batches[0]["conf"] == {"spark.shop": "1"}
    message = degradations(task)["listener_unavailable"]
    assert "Set [sparklineage] spark_version" in message
    assert "Livy" in message


def test_without_a_place_that_both_reach_the_batch_is_posted_as_it_is(
    livy, execute, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    task = operator()
    execute(task)
    assert livy.batches[0].get("conf", {}) == {}
    assert "The driver runs in Livy" in degradations(task)["driver_elsewhere"]


@pytest.mark.parametrize("by", ["the batch", "Airflow"])
def test_no_secret_is_shown_by_livy_and_the_lineage_is_whole(livy, execute, monkeypatch, by):
    prefix = "spark.openlineage.transport."
    given = {"type": "http", "url": "http://marquez:5000", "auth.type": "api_key"}
    conf = {f"{prefix}{key}": value for key, value in {**given, "auth.apiKey": SECRET}.items()}
    if by == "Airflow":
        provider = "inject_transport_information_into_spark_properties"
        monkeypatch.setattr(adapters, provider, lambda *_: conf)
        task = operator(openlineage_inject_transport_info=True)
    else:
        task = operator(conf=conf)
    execute(task)
    assert task.openlineage_inject_transport_info is (by == "Airflow")
    assert task.spark_params["conf"] == ({} if by == "Airflow" else conf)
    assert SECRET not in json.dumps(livy.batches)
    assert "Livy" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ


def test_a_jvm_application_is_not_observed_and_says_what_it_takes(livy, execute):
    task = operator(file="hdfs:///shop.jar", class_name="shop.Totals")
    execute(task)
    assert "capture_endpoint" in degradations(task)["driver_elsewhere"]


@pytest.mark.parametrize("broken", ["text", ["a"], {"conf": "spark.a=b", "file": "x.py"}])
def test_a_batch_of_another_shape_is_left_to_airflow(livy, execute, broken):
    task = operator()
    task.spark_params = broken
    with pytest.raises(Exception, match=r"mapping|argument|conf"):
        execute(task)
    assert livy.batches == []


def test_templates_in_the_batch_are_traced():
    task = rendered(operator(args=["--date", "{{ ds }}"], conf={"spark.day": "{{ ds_nodash }}"}))
    assert {name: days for name, days in dated(task).items() if days} == {
        "spark_params[args][1]": [DAY],
        "spark_params[conf][spark.day]": ["20240506"],
    }


def test_an_adopted_batch_has_the_same_lineage(livy, execute):
    with DAG("d", schedule=None):
        task = operator(LivyOperator, deferrable=True)
    adopting.adopt(task)
    assert isinstance(task, LivyOperator)
    assert isinstance(task, SparkLineageLivyOperator)
    task.deferrable = False
    execute(task)
    assert names(facets(task).inputs) == READ


# --- a task that is deferred ----------------------------------------------------------------------


def succeeds(deferred, **more):
    """Resume a task whose batch has succeeded, by a new operator; give that."""
    event = {"status": "success", "batch_id": 0, "response": "", "log_lines": None}
    task = operator(deferrable=True, **more)
    resumed(task, deferred.method_name, {"event": event})
    return task


@pytest.fixture
def deferred(livy, execute, captures):
    """Defer a task; give what Airflow is given."""
    livy.states = ["running", "success"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    return caught.value


def test_a_deferred_task_leaves_its_bundle_at_the_location_alone(deferred, lake, tmp_path):
    [folder] = lake.glob("*-try*")
    assert (folder / "manifest.json").exists()
    assert not [*tmp_path.glob("sparklineage-*/*-try*")]


def test_the_process_that_resumes_has_the_whole_lineage(deferred, lake):
    task = succeeds(deferred)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_batch_is_an_end(deferred):
    event = {"status": "error", "batch_id": 0, "response": "dead", "log_lines": None}
    task = operator(deferrable=True)
    with pytest.raises(AirflowException, match="dead"):
        resumed(task, deferred.method_name, {"event": event})
    assert names(facets(task, "failure").inputs) == READ


@pytest.mark.parametrize("error", ["Trigger timeout", "Trigger failure"])
def test_a_trigger_that_fails_is_an_end(deferred, error):
    task = operator(deferrable=True)
    with pytest.raises(AirflowException, match=r"(?i)trigger|time"):
        resumed(task, "__fail__", {"error": error})
    assert names(facets(task, "failure").inputs) == READ


def test_a_deferred_task_whose_bundle_is_gone_says_so(deferred, lake):
    for folder in lake.glob("*-try*"):
        shutil.rmtree(folder)
    task = succeeds(deferred)
    assert "no manifest" in degradations(task)["capture_unavailable"]


def test_what_was_missing_before_the_task_was_deferred_is_in_the_event(
    livy, execute, lake, monkeypatch
):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    livy.states = ["running", "success"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    task = succeeds(caught.value)
    assert [*degradations(task)] == ["listener_unavailable"]
    assert not [*lake.glob("*-try*")]


def test_a_deferred_task_without_a_place_that_others_reach_is_posted_as_it_is(
    livy, execute, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    livy.states = ["running", "success"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    assert livy.batches[0].get("conf", {}) == {}
    task = succeeds(caught.value)
    assert "capture_location to a URL" in degradations(task)["capture_unavailable"]


def test_a_batch_that_has_ended_at_once_is_not_deferred(livy, execute):
    task = operator(deferrable=True)
    assert execute(task) == 0
    assert names(facets(task).inputs) == READ


def test_switched_off_a_deferred_task_is_stock(livy, execute):
    livy.states = ["running", "success"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True, lineage=False))
    task = succeeds(caught.value, lineage=False)
    assert task.get_openlineage_facets_on_complete is None
    assert livy.batches[0].get("conf", {}) == {}


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.apache.livy.operators.livy'] = None\n"
        "import airflow_provider_sparklineage.operators.livy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[livy]'" in done.stderr
