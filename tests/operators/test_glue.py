"""Jobs of AWS Glue without Glue: what is started, what comes back, and tasks that are deferred."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import boto3
import pytest
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG
from moto.glue.models import FakeJob

from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adapters import glue as adapter
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.glue import SparkLineageGlueOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import emr_double, glue_double
from tests.operators.outcomes import READ, degradations, facets, names, resumed
from tests.operators.test_emr import LISTENER, SECRET, WITH_KEY
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.skipif(
        not hasattr(GlueJobOperator, "poll_until_complete"),
        reason="this provider of Amazon has no durable jobs of Glue",
    ),
]

LISTENERS = "spark.extraListeners"


class Glue:
    def __init__(self, runs, states):
        self.runs = runs
        self.states = states

    def given(self):
        """Give the arguments of the run that was started, and its properties."""
        [run] = self.runs
        return run.arguments, adapter.properties(run.arguments)


@pytest.fixture
def glue(lake, monkeypatch, tmp_path):
    """Serve a Glue whose versions have the Spark of the listener here, and deliver for runs."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "20")
    known = (releases.Release(r"[45]\.0", ("4.0.1", "2.13")),)
    monkeypatch.setattr(releases, "GLUE", known)
    deliver, states = RecordedDriver(tmp_path / "container"), ["SUCCEEDED"]

    def does(_job, run):
        deliver(adapter.properties(run.arguments))

    with glue_double.glue(monkeypatch, does, lambda _: states[0]) as runs:
        yield Glue(runs, states)


def operator(cls=SparkLineageGlueOperator, version="5.0", job=None, **more):
    made = {"GlueVersion": version, **(job or {})} if version else job
    return cls(
        **{
            "task_id": "revenue",
            "job_name": "revenue",
            "script_location": "s3://shop/job.py",
            "iam_role_arn": emr_double.ROLE,
            "create_job_kwargs": made,
            "job_poll_interval": 0,
            **more,
        }
    )


def made(**more):
    """Make a job that is there before the task."""
    command = {"Name": "glueetl", "ScriptLocation": "s3://shop/job.py"}
    arguments = {"Name": "revenue", "Role": emr_double.ROLE, "Command": command}
    client = boto3.client("glue", emr_double.REGION)
    client.create_job(**{**arguments, "GlueVersion": "5.0", **more})


# --- a run that is waited for ---------------------------------------------------------------------


def test_what_the_run_did_is_the_lineage_of_the_task(glue, execute):
    conf = "spark.shop=1 --conf spark.driver.extraJavaOptions=-Da=1 -Db=2"
    task = operator(script_args={"--conf": conf, "--date": "x", "--extra-py-files": "s3://a/b.zip"})
    before = copy.deepcopy(task.script_args)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    arguments, properties = glue.given()
    assert arguments["--conf"].startswith(f"{conf} --conf {LISTENERS}=io.openlineage.")
    assert arguments["--date"] == "x"
    own, observer = arguments["--extra-py-files"].split(",")
    assert own == "s3://a/b.zip"
    assert observer.endswith("/sparklineage_observer.zip")
    assert properties["spark.openlineage.parentJobName"] == "shop.revenue"
    assert task.script_args == before


def test_no_listener_is_added_to_the_one_of_glue_5(glue, execute):
    execute(operator())
    arguments, properties = glue.given()
    assert "--extra-jars" not in arguments
    assert LISTENERS in properties


def test_an_older_glue_gets_the_listener(glue, execute):
    task = operator(version="4.0", script_args={"--extra-jars": "s3://a/own.jar"})
    execute(task)
    assert names(facets(task).inputs) == READ
    own, listener = glue.given()[0]["--extra-jars"].split(",")
    assert own == "s3://a/own.jar"
    assert listener.endswith(LISTENER)


def test_a_listener_that_replaces_glues_own_is_used(glue, execute):
    jar = f"s3://a{LISTENER}"
    task = operator(script_args={"--extra-jars": jar, "--user-jars-first": "true"})
    execute(task)
    assert glue.given()[0]["--extra-jars"] == jar
    assert names(facets(task).inputs) == READ


def test_two_listeners_are_not_added_to(glue, execute):
    task = operator(script_args={"--extra-jars": f"s3://a{LISTENER}"})
    execute(task)
    assert LISTENERS not in glue.given()[1]
    assert "the listener of Glue 5.0" in degradations(task)["listener_unavailable"]


def test_connectors_among_the_jars_are_seen_by_glues_listener(glue, execute):
    task = operator(script_args={"--extra-jars": "s3://a/delta-spark_2.13-4.0.0.jar"})
    execute(task)
    assert degradations(task) == {}


def test_default_arguments_of_the_job_are_not_lost(glue, execute):
    defaults = {"--conf": "spark.a=1 --conf spark.extraListeners=a.B", "--extra-py-files": "s3://a"}
    made(DefaultArguments=defaults)
    execute(operator(version="4.0"))  # that is for a job that is not there yet
    arguments, properties = glue.given()
    assert properties["spark.a"] == "1"
    assert properties[LISTENERS].startswith("a.B,io.openlineage.")
    assert arguments["--extra-py-files"].startswith("s3://a,")
    assert "--extra-jars" not in arguments


def test_a_job_that_is_updated_has_the_arguments_of_the_task(glue, execute):
    made(DefaultArguments={"--conf": "spark.a=1"})
    job = {"DefaultArguments": {"--conf": "spark.b=1"}}
    task = operator(job=job, update_config=True)
    task.hook.create_or_update_glue_job = lambda: task.job_name  # moto updates no job
    execute(task)
    _, properties = glue.given()
    assert "spark.a" not in properties
    assert properties["spark.b"] == "1"


@pytest.mark.parametrize("state", ["FAILED", "STOPPED"])
def test_a_run_that_fails_has_an_event_with_what_it_did(glue, execute, state):
    glue.states[0] = state
    task = operator()
    with pytest.raises(AirflowException):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_a_run_that_glue_does_not_take_is_not_waited_for(glue, execute, lake, monkeypatch):
    def refuses(*_, **__):
        msg = "no"
        raise RuntimeError(msg)

    monkeypatch.setattr(FakeJob, "start_job_run", refuses)
    task = operator()
    with pytest.raises(RuntimeError, match="no"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


def test_a_run_that_nobody_waits_for_is_collected_later(glue, execute):
    task = operator(wait_for_completion=False)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_the_spark_of_an_unknown_version_of_glue_has_to_be_set(glue, execute):
    task = operator(version="3.0")
    execute(task)
    assert LISTENERS not in glue.given()[1]
    assert "Set [sparklineage] spark_version" in degradations(task)["listener_unavailable"]


@pytest.mark.parametrize("by", ["the run", "the job", "Airflow"])
def test_no_secret_is_shown_by_glue_and_the_lineage_is_whole(glue, execute, monkeypatch, by):
    conf = " --conf ".join(f"{key}={value}" for key, value in WITH_KEY.items())
    if by == "Airflow":
        provider = "inject_transport_information_into_spark_properties"
        monkeypatch.setattr(adapters, provider, lambda *_: WITH_KEY)
        task = operator(openlineage_inject_transport_info=True)
    elif by == "the job":
        task = operator(job={"DefaultArguments": {"--conf": conf}})
    else:
        task = operator(script_args={"--conf": conf})
    before = copy.deepcopy(task.script_args)
    execute(task)
    assert SECRET not in json.dumps(glue.given()[0])
    assert "AWS Glue" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ
    assert task.script_args == before


# --- other forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"Command": {"Name": "pythonshell", "ScriptLocation": "s3://a.py"}}, "pythonshell"),
        ({"NonOverridableArguments": {"--conf": "spark.a=b"}}, "--conf"),
        ({"GlueVersion": "6.0"}, "brings a listener is not known"),
        ({"GlueVersion": "newest"}, "Set GlueVersion"),
    ],
    ids=["a Python shell", "arguments that stay", "a later version", "no version"],
)
def test_other_jobs_are_left_to_airflow(glue, execute, job, reason):
    made(**job)
    task = operator(openlineage_inject_transport_info=True)
    task._build_script_args = _noting_the_flag(task, flags := [])
    execute(task)
    assert flags == [True]
    assert LISTENERS not in glue.given()[0].get("--conf", "")
    assert "--extra-py-files" not in glue.given()[0]
    assert reason in degradations(task)["injection_failed"]


def _noting_the_flag(task, flags):
    """Give what notes whether Airflow would give Spark its own transport."""

    def build(_context):
        flags.append(task.openlineage_inject_transport_info)
        return dict(task.script_args)

    return build


def test_a_job_that_the_worker_may_not_read_is_left_to_airflow(glue, execute, monkeypatch):
    made()
    task = operator()
    get, asked = task.hook.conn.get_job, []

    def get_job(**which):
        asked.append(which)
        if len(asked) == 1:
            msg = "not authorized"
            raise RuntimeError(msg)
        return get(**which)

    monkeypatch.setattr(task.hook.conn, "get_job", get_job)
    execute(task)
    assert "--conf" not in glue.given()[0]
    assert "glue:GetJob" in degradations(task)["injection_failed"]


def test_a_script_of_scala_is_not_observed_and_says_what_it_takes(glue, execute):
    task = operator(script_location="s3://shop/job.scala")
    execute(task)
    assert "capture_endpoint" in degradations(task)["driver_elsewhere"]


def test_templates_in_the_arguments_are_traced():
    task = rendered(operator(script_args={"--date": "{{ ds }}", "--conf": "spark.a={{ ds }}"}))
    assert {name: days for name, days in dated(task).items() if days} == {
        "script_args[--date]": [DAY],
        "script_args[--conf]": [DAY],
    }


def test_an_adopted_task_has_the_same_lineage(glue, execute):
    with DAG("d", schedule=None):
        task = operator(GlueJobOperator, deferrable=True)
    adopting.adopt(task)
    assert isinstance(task, SparkLineageGlueOperator)
    task.deferrable = False
    execute(task)
    assert names(facets(task).inputs) == READ


# --- a task that is deferred ----------------------------------------------------------------------


@pytest.fixture
def deferred(glue, execute):
    """Defer a task; give what Airflow is given."""
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    return caught.value


def test_the_process_that_resumes_has_the_whole_lineage(glue, deferred, lake):
    task = operator(deferrable=True)
    event = {"status": "success", "run_id": glue.runs[0].job_run_id}
    resumed(task, deferred.method_name, {"event": event})
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_run_is_an_end(deferred):
    task = operator(deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, deferred.method_name, {"event": {"status": "error"}})
    assert names(facets(task, "failure").inputs) == READ


# --- a run that is resumed ------------------------------------------------------------------------


class Store(dict):
    """The part of Airflow's store of a task's state that is used here."""

    def set(self, key, value):
        self[key] = value

    def delete(self, key):
        self.pop(key, None)


def test_a_retry_that_resumes_the_run_has_its_lineage(glue, execute, context, monkeypatch):
    context = {**context, "task_state_store": Store()}
    with monkeypatch.context() as crash:
        crash.setattr(GlueJobOperator, "poll_until_complete", _crashes)
        with pytest.raises(SystemExit):
            execute(operator(durable=True), context)
    glue.states[:] = ["RUNNING"]
    context["ti"].try_number = 2
    task = operator(durable=True)
    monkeypatch.setattr(GlueJobOperator, "poll_until_complete", lambda *_: None)
    execute(task, context)
    assert len(glue.runs) == 1
    assert names(facets(task).inputs) == READ


def _crashes(*_):
    raise SystemExit(1)


def test_switched_off_a_task_is_stock(glue, execute):
    task = operator(lineage=False)
    execute(task)
    assert "--conf" not in (glue.given()[0] or {})
    assert task.get_openlineage_facets_on_complete is None


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.amazon.aws.operators.glue'] = None\n"
        "import airflow_provider_sparklineage.operators.glue"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[amazon]'" in done.stderr
