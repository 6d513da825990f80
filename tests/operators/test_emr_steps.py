"""Steps of EMR without Spark: what is added, what comes back, and tasks that are deferred."""

from __future__ import annotations

import copy
import json

import pytest
from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.emr import SparkLineageEmrStepsOperator
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.submission import read_arguments
from tests import emr_double
from tests.operators.outcomes import READ, degradations, facets, names, resumed
from tests.operators.test_emr import LISTENER, SECRET, WITH_KEY
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver

pytestmark = pytest.mark.airflow


@pytest.fixture
def of_cluster():
    """Give the properties that the cluster is configured with."""
    return {}


@pytest.fixture
def emr(lake, monkeypatch, tmp_path, of_cluster):
    """Serve a cluster, whose first driver delivers what a recorded application does."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "20")
    monkeypatch.setattr(releases, "EMR", (releases.Release("emr-7.5.0.*", ("4.0.1", "2.13")),))
    deliver = RecordedDriver(tmp_path / "container")
    states, delivered = ["COMPLETED"], []

    def does(step):
        conf = read_arguments(step.args[1:]).conf
        if "spark.sparklineage.deliver" in conf and not delivered:
            delivered.append(deliver(conf))

    with emr_double.cluster(monkeypatch, does, lambda _: states[0], of_cluster) as cluster:
        yield cluster._replace(states=states)


def step(*words, runs="spark-submit", jar="command-runner.jar"):
    command = {"Jar": jar, "Args": [runs, *words]}
    return {"Name": "a", "ActionOnFailure": "CONTINUE", "HadoopJarStep": command}


SPARK = step("--deploy-mode", "cluster", "s3://shop/job.py", "--date", "x")


def operator(emr, *steps, cls=SparkLineageEmrStepsOperator, **more):
    arguments = {"job_flow_id": emr.cluster, "steps": list(steps), "wait_for_completion": True}
    return cls(task_id="revenue", waiter_delay=1, **{**arguments, **more})


def added(emr):
    """Give the arguments of each step that was added."""
    return [each.args for each in emr.added]


# --- steps that are waited for --------------------------------------------------------------------


def test_what_a_step_did_is_the_lineage_of_the_task(emr, execute):
    task = operator(emr, SPARK)
    before = copy.deepcopy(task.steps)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    [[submit, *words]] = added(emr)
    assert submit == "spark-submit"
    assert words[:2] == ["--deploy-mode", "cluster"]
    assert words[-3:] == ["s3://shop/job.py", "--date", "x"]
    given = read_arguments(words)
    assert given.jars.endswith(LISTENER)
    assert given.py_files.endswith("/sparklineage_observer.zip")
    assert given.conf["spark.openlineage.parentJobName"] == "shop.revenue"
    assert task.steps == before


def test_each_step_that_starts_spark_gets_the_listener_and_others_stay(emr, execute):
    others = [
        step("-c", "spark-submit s3://a/b.py", runs="bash"),
        step("s3://a/b.sh", runs="s3://a/run.jar", jar="s3://a/script-runner.jar"),
        step("SparkPi", "10", runs="run-example"),
        {"Name": "b", "HadoopJarStep": {"Jar": "command-runner.jar"}},
    ]
    own = step("--jars", "s3://a/own.jar", "s3://a/c.py", runs="/usr/bin/spark-submit")
    task = operator(emr, others[0], SPARK, *others[1:], own)
    execute(task)
    assert names(facets(task).inputs) == READ
    given = added(emr)
    assert given[0] == others[0]["HadoopJarStep"]["Args"]
    assert given[2:5] == [*(each["HadoopJarStep"]["Args"] for each in others[1:3]), []]
    assert given[5][0] == "/usr/bin/spark-submit"
    runs = [read_arguments(given[number][1:]) for number in (1, 5)]
    assert runs[1].jars.startswith("s3://a/own.jar,")
    ids = {run.conf["spark.openlineage.applicationRunId"] for run in runs}
    assert len(ids) == 1
    assert len({run.conf["spark.sparklineage.observations"] for run in runs}) == 2


def test_steps_may_be_a_text(emr, execute):
    task = operator(emr, steps=str([SPARK]))
    execute(task)
    assert names(facets(task).inputs) == READ
    assert task.steps == str([SPARK])


@pytest.mark.parametrize(
    "of_cluster", [{"spark.jars": "s3://a/own.jar", "spark.extraListeners": "a.B"}]
)
def test_properties_of_the_cluster_are_not_lost(emr, execute):
    execute(operator(emr, SPARK))
    [[_, *words]] = added(emr)
    given = read_arguments(words)
    assert given.jars.startswith("s3://a/own.jar,")
    assert given.conf["spark.extraListeners"].startswith("a.B,")


def test_a_step_that_fails_has_an_event_with_what_it_did(emr, execute):
    emr.states[0] = "FAILED"
    task = operator(emr, SPARK)
    with pytest.raises(AirflowException):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        ([SPARK], {"wait_for_completion": False}),
        ([step("--conf", "spark.yarn.submit.waitAppCompletion=false", "a.py")], {}),
    ],
    ids=["of the step", "of its application"],
)
def test_an_end_that_nobody_waits_for_is_collected_later(emr, execute, steps, more):
    task = operator(emr, *steps, **more)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_a_cluster_is_found_by_its_name(emr, execute):
    task = operator(emr, SPARK, job_flow_id=None, job_flow_name="shop", cluster_states=["WAITING"])
    execute(task)
    assert names(facets(task).inputs) == READ


def test_a_cluster_that_the_worker_may_not_describe_has_no_known_version(emr, execute, monkeypatch):
    task = operator(emr, SPARK, wait_for_completion=False)
    execute(operator(emr, SPARK))

    def describe_cluster(**_):
        msg = "not authorized"
        raise RuntimeError(msg)

    monkeypatch.setattr(task.hook.conn, "describe_cluster", describe_cluster)
    with pytest.raises(RuntimeError, match="not authorized"):  # Airflow asks for its log, too
        execute(task)
    assert "spark_version" in degradations(task, "failure")["listener_unavailable"]


def test_no_secret_is_shown_by_emr_and_the_lineage_is_whole(emr, execute):
    conf = [word for key, value in WITH_KEY.items() for word in ("--conf", f"{key}={value}")]
    task = operator(emr, step(*conf, "s3://a/b.py"))
    before = copy.deepcopy(task.steps)
    execute(task)
    assert SECRET not in json.dumps(added(emr))
    assert "Amazon EMR" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ
    assert task.steps == before


# --- other forms ----------------------------------------------------------------------------------


def test_a_step_of_a_jvm_application_leaves_the_others_their_lineage(emr, execute):
    jvm = step("--class", "shop.Totals", "s3://a/b.jar")
    task = operator(emr, SPARK, jvm)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert added(emr)[1] == jvm["HadoopJarStep"]["Args"]
    message = degradations(task)["listener_unavailable"]
    assert message.startswith("1 of the 2 Spark applications of the task run without the listener")
    assert "capture_endpoint" in message


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([step("-c", "spark-submit a.py", runs="bash")], "No step"),
        ([step("--properties-file", "s3://a/b.conf", "a.py")], "--properties-file"),
        ([step("a.py", *["x" * 1000] * 9)], "more than 10,240 characters"),
        (["text"], "no steps of EMR"),
    ],
    ids=["no Spark", "a properties file", "too long", "no steps"],
)
def test_other_steps_are_left_to_airflow(emr, execute, steps, reason):
    task = operator(emr, *steps, wait_for_completion=False)
    given = []
    task.hook.add_job_flow_steps = lambda **kwargs: given.append(kwargs["steps"])
    execute(task)
    assert given == [steps]
    assert reason in degradations(task)["injection_failed"]


def test_templates_in_the_steps_are_traced(emr):
    task = rendered(operator(emr, step("s3://a/b.py", "--date", "{{ ds }}")))
    assert {name: days for name, days in dated(task).items() if days} == {
        "steps[0][HadoopJarStep][Args][3]": [DAY]
    }


def test_an_adopted_task_has_the_same_lineage(emr, execute):
    with DAG("d", schedule=None):
        task = operator(emr, SPARK, cls=EmrAddStepsOperator)
    adopting.adopt(task)
    assert isinstance(task, SparkLineageEmrStepsOperator)
    execute(task)
    assert names(facets(task).inputs) == READ


# --- a task that is deferred ----------------------------------------------------------------------


def test_the_process_that_resumes_has_the_whole_lineage(emr, execute, lake):
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(emr, SPARK, SPARK, deferrable=True))
    task = operator(emr, SPARK, SPARK, deferrable=True)
    event = {"status": "success", "value": "s-1"}
    assert resumed(task, caught.value.method_name, {"event": event}) == "s-1"
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_step_is_an_end(emr, execute):
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(emr, SPARK, deferrable=True))
    task = operator(emr, SPARK, deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, caught.value.method_name, {"event": {"status": "error"}})
    assert names(facets(task, "failure").inputs) == READ
