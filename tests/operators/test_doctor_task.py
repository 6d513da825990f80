"""``airflow sparklineage doctor DAG TASK``: the service of a task, and a trial by it."""

from __future__ import annotations

import ast
import json
import os
import signal
import time
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator
from airflow.providers.apache.livy.hooks.livy import LivyHook

from airflow_provider_sparklineage.cli import command_line
from airflow_provider_sparklineage.cli.doctor import old_airflow, spark
from airflow_provider_sparklineage.cli.doctor import task as tasks
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.operators.adapters import adapter
from airflow_provider_sparklineage.operators.adoption import kinds
from airflow_provider_sparklineage.settings.checks import Status
from airflow_provider_sparklineage.spark.submit.submission import with_application
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError
from tests import livy_double
from tests.remote_driver import RecordedDriver

pytestmark = pytest.mark.airflow

FILE = """
from datetime import datetime, timezone
from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow_provider_sparklineage.operators.livy import LivyLineageMixin, SparkLineageLivyOperator

class Shop(LivyOperator):
    def execute(self, context):
        raise RuntimeError("the shop's own code")

class ShopL(LivyLineageMixin, Shop):
    pass

with DAG("shop", schedule=None, start_date=datetime(2024, 5, 6, tzinfo=timezone.utc)):
    EmptyOperator(task_id="nothing")
    batch = {"file": "hdfs:///job.py", "args": ["{{ ds }}"], "name": "totals"}
    LivyOperator(task_id="stock", **batch)
    SparkLineageLivyOperator(task_id="load", **batch, conf={
        "spark.shop": 1, "spark.executor.instances": 9,
    })
    SparkLineageLivyOperator(task_id="deferred", **batch, deferrable=True)
    Shop(task_id="own", **batch)
    ShopL(task_id="own_mixin", **batch)
    SparkLineageLivyOperator(task_id="off", **batch, lineage=False)
    mapped = SparkLineageLivyOperator.partial(task_id="mapped", file="hdfs:///job.py")
    mapped.expand(args=[["a"], ["b"]])
    SparkLineageLivyOperator(task_id="keyed", **batch, conf={
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": "http://marquez:5000",
        "spark.openlineage.transport.auth.apiKey": "pl4nted-s3cr3t",
        "spark.openlineage.transport.auth.type": "api_key",
    })
    SparkLineageLivyOperator(task_id="unrendered", file="{{ ti.xcom_pull('x').missing.more }}")
    SparkLineageLivyOperator(task_id="jvm", file="shop.jar", class_name="shop.Totals")
    SparkSubmitOperator(task_id="submitted", application="job.py", conn_id="own")
    SparkJDBCOperator(task_id="rows", spark_conn_id="own", cmd_type="spark_to_jdbc")
    SparkPipelinesOperator(task_id="pipeline", conn_id="own", pipeline_spec="shop.yaml")
    EmrAddStepsOperator(task_id="steps", job_flow_id="j-1", aws_conn_id="own_aws", steps=[{
        "Name": "job",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["spark-submit", "s3://a/job.py"]},
    }])
    GlueJobOperator(task_id="glue", job_name="job", script_location="s3://a/job.py")
    DatabricksSubmitRunOperator(task_id="run", json={"existing_cluster_id": "1"})
"""


@pytest.fixture
def dags(tmp_path, monkeypatch):
    """Let Airflow have one file of DAGs; give its path."""
    (tmp_path / "dags").mkdir()
    file = tmp_path / "dags" / "shop.py"
    file.write_text(FILE)
    bundle = {
        "name": "dags",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(file.parent)},
    }
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))
    return file


@pytest.fixture
def livy(lake, monkeypatch, tmp_path):
    """Serve a Livy whose batches deliver what a recorded application does."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    monkeypatch.setattr(spark, "is_fetched_later", lambda *_: False)
    driver = RecordedDriver(tmp_path / "container")
    with livy_double.livy(does=lambda batch: driver(batch.get("conf") or {})) as server:
        connection = {"conn_type": "livy", "host": "127.0.0.1", "port": server.server_port}
        monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(connection))
        yield server


def found(task_id):
    """Give the checks of a task by name, and the Spark for a trial."""
    task = tasks.find("shop", task_id)
    checks, machine = tasks.check(task)
    return {c.name: c for c in (task.adoption, *checks)}, machine


# --- the task -------------------------------------------------------------------------------------


def test_a_task_with_lineage_passes(dags, livy):
    checks, machine = found("load")
    assert {c.status for c in checks.values()} == {Status.OK}
    assert checks[tasks.TASK].message == "shop.load is a SparkLineageLivyOperator, and has lineage."
    assert checks[tasks.PROVIDER].message.startswith("apache-airflow-providers-apache-livy ")
    assert checks[tasks.CONNECTION].message == "livy_conn_id is livy_default."
    assert checks[tasks.SERVICE].message == (
        "Livy starts the driver, with Spark 4.0.1 on Scala 2.13 (by [sparklineage] spark_version: "
        "Livy does not say which Spark it runs)."
    )
    assert "/.tools; whether drivers read them, --spark-submit tries" in checks[tasks.JOB].message
    assert machine.spark.version == "4.0.1"
    assert livy.batches == []


def test_a_task_that_is_not_adopted_is_checked_as_if_it_were(dags, livy):
    checks, machine = found("stock")
    assert checks[tasks.TASK].status is Status.WARNING
    assert "is a LivyOperator, and runs without lineage (" in checks[tasks.TASK].message
    assert "SparkLineageLivyOperator" in checks[tasks.TASK].fix
    assert checks[tasks.JOB].status is Status.OK
    assert machine is not None


def test_an_adopted_task_has_lineage(dags, livy, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ADOPT", "all")
    assert found("stock")[0][tasks.TASK].message == "shop.stock is a LivyOperator, and has lineage."


def test_a_task_whose_lineage_is_switched_off_says_so(dags, livy):
    assert "switched off" in found("off")[0][tasks.TASK].message


def test_the_first_instance_of_a_mapped_task_is_checked(dags, livy):
    task = tasks.find("shop", "mapped")
    assert task.operator.spark_params["args"] == ["a"]


@pytest.mark.parametrize(
    ("dag_id", "task_id", "reason"),
    [
        ("none", "load", "No DAG file that can be imported has a DAG none"),
        ("shop", "none", "There is no task none in shop"),
        ("shop", "nothing", "is a EmptyOperator, which starts no Spark"),
        ("shop", "unrendered", "The fields of shop.unrendered cannot be rendered"),
    ],
)
def test_what_cannot_be_checked_is_refused(dags, dag_id, task_id, reason):
    with pytest.raises(UnusableInputError, match=reason):
        tasks.find(dag_id, task_id)


def test_a_file_that_cannot_be_imported_is_named(dags):
    dags.write_text("from airflow.providers.none import DAG")
    with pytest.raises(UnusableInputError, match=r"shop\.py cannot be imported: .*airflow\.prov"):
        tasks.find("shop", "load")


# --- its service ----------------------------------------------------------------------------------


def test_a_version_that_is_not_known_is_named_with_the_line_to_set(dags, livy, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    checks, machine = found("load")
    assert checks[tasks.SERVICE].status is Status.FAILED
    assert "spark_version" in checks[tasks.SERVICE].fix
    assert machine is None


def test_a_permission_that_the_worker_lacks_is_named(dags, lake, monkeypatch):
    monkeypatch.setattr(adapter("emr_steps"), "_cluster", lambda _: {})
    checks, machine = found("steps")
    assert checks[tasks.SERVICE].status is Status.FAILED
    assert "Allow the worker elasticmapreduce:DescribeCluster" in checks[tasks.SERVICE].fix
    assert checks[tasks.CONNECTION].message.startswith("There is no connection own_aws: ")
    assert machine is None


def test_a_connection_that_is_missing_is_named(dags, livy, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_LIVY_DEFAULT")
    check = found("load")[0][tasks.CONNECTION]
    assert (check.status, check.fix) == (
        Status.FAILED,
        "Add it: airflow connections add livy_default",
    )


def test_an_older_provider_is_named(dags, livy, monkeypatch):
    version = tasks.metadata.version
    monkeypatch.setattr(
        tasks.metadata, "version", lambda name: "4.4.9" if "livy" in name else version(name)
    )
    check = found("load")[0][tasks.PROVIDER]
    assert "livy 4.4.9 is older than 4.5" in check.message
    assert check.fix == "pip install 'airflow-provider-sparklineage[livy]'"


def test_a_location_on_this_worker_alone_is_a_failed_check(dags, livy, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "here"))
    checks, machine = found("load")
    assert checks[tasks.JOB].status is Status.FAILED
    assert "capture_location" in checks[tasks.JOB].message
    assert machine is None


def test_a_location_that_cannot_be_written_to_is_a_failed_check(dags, livy, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", "/proc/nothere")
    checks, machine = found("load")
    assert checks[tasks.JOB].status is Status.FAILED
    assert "/proc/nothere" in checks[tasks.JOB].message
    assert checks[tasks.SERVICE].status is Status.OK
    assert machine is None


def test_a_transport_with_a_key_is_a_warning_and_the_key_is_not_shown(dags, livy):
    checks, machine = found("keyed")
    assert checks[tasks.JOB].status is Status.WARNING
    assert "submitted without its own OpenLineage transport" in checks[tasks.JOB].message
    assert "pl4nted" not in str(checks)
    assert machine is not None


def test_an_application_without_python_is_a_failed_check(dags, livy):
    check = found("jvm")[0][tasks.JOB]
    assert check.status is Status.FAILED
    assert "capture_endpoint" in check.message


def test_a_run_of_databricks_says_what_it_takes(dags, lake):
    checks, machine = found("run")
    assert "new_cluster" in checks[tasks.SERVICE].fix
    assert machine is None


# --- the trial ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", ["load", "stock", "deferred", "own", "own_mixin"])
def test_a_trial_is_posted_with_the_tasks_own_arguments_and_leaves_nothing(
    dags, livy, lake, task_id, monkeypatch
):
    monkeypatch.setattr(spark, "_missing", lambda _: [])  # this driver is of another application
    task = tasks.find("shop", task_id)
    before = json.dumps(task.operator.spark_params)
    machine = tasks.check(task)[1]
    check = tasks.run_trial(task, machine)
    assert check.status is Status.OK, check
    [batch] = livy.batches
    assert batch["file"].endswith("/trial_application.py")
    assert batch["args"] == [batch["file"].replace("trial_application.py", "tables")]
    assert batch["conf"]["spark.executor.instances"] == "1"
    assert batch["conf"].get("spark.shop", 1) == 1
    assert "name" not in batch
    assert json.dumps(task.operator.spark_params) == before
    assert [each.name for each in lake.iterdir()] == [".tools"]


OPERATORS = {
    "livy": {"spark_params": {"num_executors": 7}, "_polling_interval": 1},
    "synapse": {"payload": {"file": "job.py", "numExecutors": 7}},
    "spark_kubernetes": {
        "template_body": {
            "spark": {
                "apiVersion": "sparkoperator.k8s.io/v1beta2",
                "kind": "SparkApplication",
                "spec": {"executor": {"instances": 7}},
            }
        }
    },
    "emr_serverless": {
        "job_driver": {"sparkSubmit": {"sparkSubmitParameters": "--num-executors 7 --conf a=b"}}
    },
    "emr_containers": {
        "job_driver": {"sparkSubmitJobDriver": {"sparkSubmitParameters": "--num-executors=7"}}
    },
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_trial_does_not_keep_the_tasks_number_of_executors(name, monkeypatch):
    operator, kept = SimpleNamespace(**OPERATORS[name]), deepcopy(OPERATORS[name])
    bodies = []
    kubernetes = adapter("spark_kubernetes")
    monkeypatch.setattr(kubernetes, "_write_body", lambda _, body: bodies.append(body))
    adapter(name).replace_application(operator, "s3://a/trial.py", [])
    assert "7" not in str([bodies] if bodies else vars(operator))
    assert OPERATORS[name] == kept


def test_a_step_does_not_keep_the_tasks_number_of_executors():
    words = ["--num-executors", "7", "--queue", "shop", "job.py", "--num-executors", "8"]
    assert with_application(words, "trial.py", ["x"]) == ["--queue", "shop", "trial.py", "x"]
    assert with_application(["--num-executors=7", "job.py"], "trial.py", []) == ["trial.py"]


def test_a_trial_sends_nothing_to_the_tasks_own_backend(dags, livy):
    task = tasks.find("shop", "keyed")
    tasks.run_trial(task, tasks.check(task)[1])
    assert "marquez" not in json.dumps(livy.batches)


def test_a_driver_that_delivers_nothing_is_what_the_trial_finds(dags, livy, monkeypatch):
    livy.does = None
    task = tasks.find("shop", "load")
    monkeypatch.setattr(tasks.cluster, "_COLLECT_S", 1.0)
    check = tasks.run_trial(task, tasks.check(task)[1])
    assert check.status is Status.FAILED
    assert "its driver delivered nothing" in check.message


def test_a_batch_that_fails_is_what_the_trial_finds(dags, livy, lake):
    livy.states = ["dead"]
    task = tasks.find("shop", "load")
    check = tasks.run_trial(task, tasks.check(task)[1])
    assert check.message == "Spark ended with an error: Batch 0 did not succeed"
    assert f"If the log names file://{lake}" in check.fix
    assert [each.name for each in lake.iterdir()] == [".tools"]


def test_a_batch_that_takes_too_long_is_deleted(dags, livy, monkeypatch):
    livy.states = ["running"]
    monkeypatch.setattr(tasks.cluster, "TIMEOUT_S", 2)
    task = tasks.find("shop", "load")
    check = tasks.run_trial(task, tasks.check(task)[1])
    assert "did not end within 2 seconds" in check.message
    assert livy.deleted == ["/batches/0"]


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt this process, which ignores it if it is a worker of pytest's."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trial_deletes_its_batch_and_leaves_nothing(
    dags, livy, lake, monkeypatch, number
):
    livy.states = ["running"]
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(tasks.cluster, "TIMEOUT_S", 60)
    task = tasks.find("shop", "load")
    machine = tasks.check(task)[1]
    signals = iter([number])

    def interrupt_once():  # the operator knows its batch when it asks for the state
        for each in signals:
            os.kill(os.getpid(), each)
        return ["running"]

    livy.now = interrupt_once
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        tasks.run_trial(task, machine)
    assert livy.deleted == ["/batches/0"]
    assert signal.getsignal(signal.SIGTERM) == before
    assert [each.name for each in lake.iterdir()] == [".tools"]


def test_a_batch_that_cannot_be_deleted_may_still_run(dags, livy, monkeypatch):
    livy.states = ["running"]
    monkeypatch.setattr(tasks.cluster, "TIMEOUT_S", 1)
    task = tasks.find("shop", "load")
    machine = tasks.check(task)[1]
    monkeypatch.setattr(LivyHook, "delete_batch", lambda *_: 1 / 0)
    check = tasks.run_trial(task, machine)
    assert check.status is Status.FAILED
    assert "did not end within 1 seconds. It may still run: " in check.message
    assert "ZeroDivisionError" in check.message


def test_a_step_that_takes_too_long_may_still_run(dags, lake, monkeypatch):
    monkeypatch.setattr(tasks.cluster, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(EmrAddStepsOperator, "execute", lambda *_: time.sleep(1))
    task = tasks.find("shop", "steps")
    with pytest.raises(OutOfTimeError, match="It may still run: Airflow's operator cannot"):
        tasks._execute(task.operator, task.kind, task.context)


def test_a_service_that_refuses_the_batch_is_what_the_trial_finds(dags, livy):
    livy.refuses = True
    task = tasks.find("shop", "load")
    check = tasks.run_trial(task, tasks.check(task)[1])
    assert check.status is Status.FAILED
    assert "400" in check.message


def test_a_job_of_glue_is_not_changed_for_a_trial(dags, lake):
    task = tasks.find("shop", "glue")
    assert task.untried.status is Status.WARNING
    assert "Run the task once" in task.untried.fix
    assert "hook" not in vars(task.operator)  # nothing was asked


def adapter_of(kind):
    """Read the name of the adapter of a kind, whose provider may not be installed."""
    module, _, name = kind.ours.rpartition(".")
    tree = ast.parse(Path(find_spec(module).origin).read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    mixin = classes[classes[name].bases[0].id]
    [found] = (
        node.value.value
        for node in mixin.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "lineage_adapter"
    )
    return found


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.stock.rpartition(".")[2])
def test_each_kind_of_task_is_tried_in_some_way_or_says_why_not(kind):
    name = adapter_of(kind)
    is_tried_by_service = hasattr(adapter(name), "replace_application")
    ways = [name in tasks._ON_WORKER, name in tasks._UNTRIED, is_tried_by_service]
    assert any(ways)
    assert not (is_tried_by_service and any(ways[:2]))


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def doctor(dags, capsys):
    """Run the command; give its checks by name, and the exit code."""
    command = next(c for c in command_line.AIRFLOW_COMMANDS if c.name == "doctor")

    def run(task_id, *, spark_submit=False):
        given = {"dag_id": "shop", "task_id": task_id, "conf": [], "json": True}
        unused = {"conn_id": "unused", "spark_conn_id": "unused"}
        args = SimpleNamespace(**given, **unused, spark_submit=spark_submit)
        code = command.run(args)
        out = capsys.readouterr().out
        return {c["name"]: c for c in json.loads(out[out.index("{\n") :])["checks"]}, code

    return run


def test_the_command_checks_the_service_and_not_the_machine(doctor, livy, monkeypatch):
    monkeypatch.setattr(spark, "_missing", lambda _: [])
    checks, _ = doctor("load", spark_submit=True)
    assert next(iter(checks)) == tasks.TASK
    assert checks["remote location"]["status"] == "ok"
    assert list(checks)[-1] == "trial"
    assert checks["trial"]["status"] == "ok"
    assert "spark-submit" not in checks
    assert "Spark connection" not in checks


def test_the_command_checks_the_connection_of_a_task_of_spark_submit(
    doctor, spark_submit, monkeypatch
):
    monkeypatch.setenv("AIRFLOW_CONN_OWN", json.dumps({"conn_type": "spark", "host": "local[3]"}))
    checks, _ = doctor("submitted")
    assert checks["Spark connection"]["message"] == "own submits to local[3]."
    assert "spark-submit" in checks


@pytest.mark.parametrize("task_id", ["rows", "pipeline"])
def test_the_worker_starts_jdbc_tasks_and_pipelines(doctor, spark_submit, monkeypatch, task_id):
    monkeypatch.setenv("AIRFLOW_CONN_OWN", json.dumps({"conn_type": "spark", "host": "local[3]"}))
    checks, _ = doctor(task_id)
    assert checks["Spark connection"]["message"] == "own submits to local[3]."
    assert "spark-submit" in checks
    assert tasks.SERVICE not in checks


def test_a_pipeline_says_why_it_is_not_tried(doctor, spark_submit, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_OWN", json.dumps({"conn_type": "spark", "host": "local[3]"}))
    checks, _ = doctor("pipeline", spark_submit=True)
    assert checks["trial"]["status"] == "warning"
    assert "Spark Connect server" in checks["trial"]["message"]
    assert not spark_submit.ran


def test_no_trial_runs_that_would_have_no_listener(doctor, livy, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    checks, code = doctor("load", spark_submit=True)
    assert (checks["trial"]["message"], code) == (spark.NOT_RUN.message, 1)
    assert livy.batches == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.0.6", ("pages", "commands", "partitions of assets", "record_asset_partitions")),
        ("3.1.8", ("commands", "partitions of assets", "record_asset_partitions")),
        ("3.2.2", ("record_asset_partitions",)),
        ("3.3.0", ()),
    ],
)
def test_the_parts_that_an_older_airflow_lacks_are_named(version, expected):
    text = " ".join(check.message for check in old_airflow(version))
    every = ("pages", "commands", "partitions of assets", "record_asset_partitions")
    assert tuple(what for what in every if what in text) == expected
