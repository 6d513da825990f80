"""Batches of Azure Synapse without Synapse: what is submitted, and what comes back."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import DAG

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests.operators.outcomes import READ, degradations, facets, names
from tests.remote_driver import RecordedDriver

pytestmark = pytest.mark.airflow

SECRET = "pl4nted-s3cr3t"
FILE = "abfss://jobs@shop.dfs.core.windows.net/job.py"
PREFIX = "spark.openlineage.transport."
WITH_KEY = {
    f"{PREFIX}type": "http",
    f"{PREFIX}url": "http://marquez:5000",
    f"{PREFIX}auth.type": "api_key",
    f"{PREFIX}auth.apiKey": SECRET,
}


# --- the adapter, which needs no provider ---------------------------------------------------------


def task_of(payload):
    """Give a task with the attributes that the adapter reads."""
    return SimpleNamespace(
        payload=payload,
        wait_for_termination=True,
        azure_synapse_conn_id="azure_synapse_default",
        spark_pool="pool",
    )


def options(**fields):
    """Give a payload with the attributes of Azure's class."""
    names = ("configuration", "jars", "python_files", "class_name")
    return SimpleNamespace(**{"name": "shop", "file": FILE, **dict.fromkeys(names), **fields})


BATCHES = {
    "the class": options(configuration={"spark.a": 1}, jars=["own.jar"], python_files=["own.py"]),
    "a mapping": {"file": FILE, "conf": {"spark.a": 1}, "jars": ["own.jar"], "pyFiles": ["own.py"]},
    "a mapping with the names of the class": {
        **{"file": FILE, "configuration": {"spark.a": 1}, "jars": ["own.jar"]},
        "python_files": ["own.py"],
    },
}


@pytest.mark.parametrize("form", BATCHES)
def test_a_batch_is_read_and_written_in_its_own_form(form, context):
    task, own = task_of(BATCHES[form]), copy.deepcopy(BATCHES[form])
    [submission], target = adapters.adapter("synapse").read(task, context)
    known = Submission(conf={"spark.a": "1"}, jars="own.jar", py_files="own.py", application=FILE)
    assert submission == known
    assert target.is_polled
    changed = Submission(
        conf={"spark.a": "1", "spark.b": "2"}, jars="own.jar,b.jar", py_files="own.py,b.zip"
    )
    adapters.adapter("synapse").write(task, [changed])
    assert BATCHES[form] == own  # which was not changed in place
    written = task.payload if isinstance(task.payload, dict) else vars(task.payload)
    conf = written.get("conf") or written.get("configuration")
    assert conf == {"spark.a": 1, "spark.b": "2"}
    assert written["jars"] == ["own.jar", "b.jar"]
    assert (written.get("pyFiles") or written.get("python_files")) == ["own.py", "b.zip"]
    assert len(written) == len(own if isinstance(own, dict) else vars(own))


def test_what_is_empty_is_not_written(context):
    task = task_of({"file": FILE})
    submissions, _ = adapters.adapter("synapse").read(task, context)
    adapters.adapter("synapse").write(task, submissions)
    assert task.payload == {"file": FILE}


def test_a_class_is_no_python_application(context):
    [submission], _ = adapters.adapter("synapse").read(
        task_of(options(class_name="shop.Totals", file="shop.jar")), context
    )
    assert submission.application == ""


@pytest.mark.parametrize(
    "broken",
    ["text", None, {}, {"file": FILE, "conf": "spark.a=b"}, {"file": FILE, "jars": "own.jar"}],
)
def test_another_shape_is_refused(broken, context):
    with pytest.raises(ListenerError, match="no batch of Synapse"):
        adapters.adapter("synapse").read(task_of(broken), context)


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.microsoft.azure.operators.synapse'] = None\n"
        "import airflow_provider_sparklineage.operators.synapse"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[azure]'" in done.stderr


def test_a_task_that_nobody_waits_for_is_no_polled_one(context):
    task = task_of({"file": FILE})
    task.wait_for_termination = False
    assert not adapters.adapter("synapse").read(task, context)[1].is_polled


# --- the operator ---------------------------------------------------------------------------------


@pytest.fixture
def synapse(lake, monkeypatch, tmp_path):
    """Serve a Synapse whose batches deliver what a recorded application does."""
    pytest.importorskip("airflow.providers.microsoft.azure", reason="it brings fifty packages")
    from tests import synapse_double

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    driver = RecordedDriver(tmp_path / "container")

    def does(batch):
        driver(batch.get("conf") or {})

    with synapse_double.synapse(monkeypatch, does=does) as server:
        connection = synapse_double.connection(server)
        monkeypatch.setenv("AIRFLOW_CONN_AZURE_SYNAPSE_DEFAULT", connection)
        yield server


def operator(*, is_stock=False, **more):
    from airflow.providers.microsoft.azure.operators.synapse import (
        AzureSynapseRunSparkBatchOperator,
    )

    from airflow_provider_sparklineage.operators.synapse import SparkLineageSynapseOperator

    cls = AzureSynapseRunSparkBatchOperator if is_stock else SparkLineageSynapseOperator
    known = {"task_id": "revenue", "spark_pool": "pool", "check_interval": 1}
    return cls(**{**known, "payload": {"name": "shop", "file": FILE}, **more})


@pytest.mark.parametrize("is_mapping", [True, False])
def test_what_the_batch_did_is_the_lineage_of_the_task(synapse, execute, is_mapping):
    from azure.synapse.spark.models import SparkBatchJobOptions

    payload = {"name": "shop", "file": FILE, "conf": {"spark.shop": "1"}, "jars": ["own.jar"]}
    if not is_mapping:
        own = {"configuration": payload["conf"], "jars": payload["jars"]}
        payload = SparkBatchJobOptions(name="shop", file=FILE, **own)
    task, before = operator(payload=payload), copy.deepcopy(payload)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    [batch] = synapse.batches
    assert batch["name"] == "shop"
    assert batch["conf"]["spark.shop"] == "1"
    assert batch["conf"]["spark.openlineage.parentJobName"] == "shop.revenue"
    own, listener = batch["jars"]
    assert own == "own.jar"
    assert listener.endswith("/openlineage-spark_2.13-1.53.0.jar")
    assert batch["pyFiles"][0].endswith("/sparklineage_observer.zip")
    assert task.payload is payload
    assert payload == before


def test_a_batch_that_fails_has_an_event_with_what_it_did(synapse, execute):
    synapse.states = ["running", "dead"]
    task = operator()
    with pytest.raises(AirflowException, match="has failed"):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_a_batch_that_is_not_taken_is_not_waited_for(synapse, execute, lake):
    synapse.refuses = True
    task = operator()
    with pytest.raises(Exception, match="Bad Request"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


def test_a_batch_that_nobody_waits_for_is_collected_later(synapse, execute):
    task = operator(wait_for_termination=False)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_the_version_of_spark_has_to_be_known(synapse, execute, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    task = operator()
    execute(task)
    assert synapse.batches == [{"name": "shop", "file": FILE}]
    message = degradations(task)["listener_unavailable"]
    assert "Set [sparklineage] spark_version" in message
    assert "Azure Synapse" in message


@pytest.mark.parametrize("by", ["the batch", "Airflow"])
def test_no_secret_is_shown_by_synapse_and_the_lineage_is_whole(synapse, execute, monkeypatch, by):
    provider = "inject_transport_information_into_spark_properties"
    monkeypatch.setattr(adapters, provider, lambda *_: WITH_KEY)
    if by == "Airflow":
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO", "True")
        task = operator()
    else:
        task = operator(payload={"name": "shop", "file": FILE, "conf": WITH_KEY})
    execute(task)
    assert SECRET not in json.dumps(synapse.batches)
    assert "Azure Synapse" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ


def test_an_adopted_batch_has_the_same_lineage(synapse, execute):
    with DAG("d", schedule=None):
        task = operator(is_stock=True)
    adopting.adopt(task)
    assert isinstance(task, LineageMixin)
    execute(task)
    assert names(facets(task).inputs) == READ


def test_switched_off_it_is_stock(synapse, execute):
    task = operator(lineage=False)
    execute(task)
    assert task.get_openlineage_facets_on_complete is None
    assert synapse.batches == [{"name": "shop", "file": FILE}]
