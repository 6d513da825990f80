"""Jobs of Dataproc without Dataproc: what it is given, what comes back, and deferred tasks."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from typing import NamedTuple

import pytest
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG

from airflow_provider_sparklineage.model.task_rules import ADOPT_ALL
from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adoption import adopting
from tests.operators import test_idioms
from tests.operators.outcomes import READ, degradations, facets, names, resumed
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver
from tests.spark_submit_double import task_context

pytest.importorskip(
    "airflow.providers.google", reason="Airflow's provider for Google is not installed"
)
import grpc
from airflow.providers.google.cloud.operators.dataproc import (
    DataprocCreateBatchOperator,
    DataprocInstantiateInlineWorkflowTemplateOperator,
    DataprocSubmitJobOperator,
)
from google.cloud import dataproc_v1 as v1

from airflow_provider_sparklineage.operators import dataproc as operators
from airflow_provider_sparklineage.operators.dataproc import (
    SparkLineageDataprocBatchOperator,
    SparkLineageDataprocSubmitOperator,
    SparkLineageDataprocWorkflowOperator,
)
from airflow_provider_sparklineage.spark.submit import releases
from tests import dataproc_double

pytestmark = pytest.mark.airflow

SECRET = "pl4nted-s3cr3t"


class Way(NamedTuple):
    """One of Dataproc's ways to start Spark.

    :param ours: the operator with lineage
    :param stock: Airflow's operator
    :param argument: its argument that has the submission
    :param path: the traced place of a property of the submission, and of its arguments
    :param states: the states of what runs, has succeeded, and has failed
    """

    ours: type
    stock: type
    argument: str
    path: tuple[str, str]
    states: tuple[str, str, str]

    def content(self, *, kind="pyspark", properties=None, **spark):
        """Give the operator's argument: Spark's part has a Python file, if it has nothing else."""
        spark = spark or {"main_python_file_uri": "gs://shop/job.py"}
        own = {} if properties is None else {"properties": properties}
        return {"placement": {"cluster_name": "c1"}, f"{kind}_job": {**spark, **own}}

    def operator(
        self, *, cls=None, content=None, properties=None, kind="pyspark", spark=None, **more
    ):
        own = content or self.content(kind=kind, properties=properties, **(spark or {}))
        cls = cls or self.ours
        return cls(**{"task_id": "revenue", "region": "eu", self.argument: own, **more})

    def given(self, dataproc):
        """Give the parts of all that Dataproc was given."""
        return [dataproc_double.parts(job, dataproc_double.JOBS) for job in dataproc.jobs]

    def event(self, state):
        """Give the event of the operator's trigger."""
        return {"job_id": "job-1", "job_state": state, "job": {}}


class BatchWay(Way):
    """The way by a batch, whose properties are not in Spark's part."""

    def content(self, *, kind="pyspark", properties=None, **spark):
        spark = spark or {"main_python_file_uri": "gs://shop/job.py"}
        own = {} if properties is None else {"runtime_config": {"properties": properties}}
        return {f"{kind}_batch": spark, **own}

    def given(self, dataproc):
        return [
            dataproc_double.parts(batch, dataproc_double.BATCHES, batch.runtime_config.properties)
            for batch in dataproc.batches.values()
        ]

    def event(self, state):
        return {"batch_id": "batch-0", "batch_state": state, "batch_state_message": ""}


HIVE = {"step_id": "cleaned", "hive_job": {"query_file_uri": "gs://shop/clean.q"}}


class WorkflowWay(Way):
    """The way by a workflow of two jobs, of which one starts Spark."""

    def content(self, **job):
        content = super().content(**job)
        del content["placement"]
        return {"id": "shop", "jobs": [HIVE, {"step_id": "revenue", **content}]}

    def given(self, dataproc):
        return [
            dataproc_double.parts(job, dataproc_double.JOBS)
            for template in dataproc.templates
            for job in template.jobs
            if any(name in job for name in dataproc_double.JOBS)
        ]

    def event(self, state):
        status = {"DONE": "success", "ERROR": "error"}[state]
        return {"status": status, "operation_name": "workflow-1", "message": "a job failed"}


SUBMIT = Way(
    SparkLineageDataprocSubmitOperator,
    DataprocSubmitJobOperator,
    "job",
    ("job[pyspark_job][properties][spark.day]", "job[pyspark_job][args][0]"),
    ("RUNNING", "DONE", "ERROR"),
)


BATCH = BatchWay(
    SparkLineageDataprocBatchOperator,
    DataprocCreateBatchOperator,
    "batch",
    ("batch[runtime_config][properties][spark.day]", "batch[pyspark_batch][args][0]"),
    ("RUNNING", "SUCCEEDED", "FAILED"),
)


WORKFLOW = WorkflowWay(
    SparkLineageDataprocWorkflowOperator,
    DataprocInstantiateInlineWorkflowTemplateOperator,
    "template",
    (
        "template[jobs][1][pyspark_job][properties][spark.day]",
        "template[jobs][1][pyspark_job][args][0]",
    ),
    ("RUNNING", "DONE", "ERROR"),
)


@pytest.fixture(
    params=[
        pytest.param(SUBMIT, id="job"),
        pytest.param(BATCH, id="batch"),
        pytest.param(WORKFLOW, id="workflow"),
    ]
)
def way(request):
    return request.param


@pytest.fixture
def dataproc(lake, monkeypatch, tmp_path):
    """Serve a Dataproc whose jobs deliver what a recorded application does."""
    driver = RecordedDriver(tmp_path / "container", events="staging_chain")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    with dataproc_double.dataproc(monkeypatch, does=lambda conf, *_: driver(conf)) as double:
        double.image = None
        yield double


@pytest.fixture
def ends(way, dataproc):
    """Let what runs have states: ``ends("running", "failed")``."""

    def by(*names):
        known = dict(zip(("running", "succeeded", "failed"), way.states, strict=True))
        dataproc.states = [known[name] for name in names]

    by("succeeded")
    return by


# --- what is waited for ---------------------------------------------------------------------------


def test_what_the_job_did_is_the_lineage_of_the_task(way, dataproc, ends, execute):
    spark = {"main_python_file_uri": "gs://shop/job.py", "jar_file_uris": ["gs://shop/own.jar"]}
    task = way.operator(spark=spark, properties={"spark.shop": "1"})
    before = copy.deepcopy(getattr(task, way.argument))
    execute(task)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    [(conf, jars, py_files, application, _)] = way.given(dataproc)
    assert conf["spark.shop"] == "1"
    own, listener = jars
    assert own == "gs://shop/own.jar"
    assert listener.startswith("local:///")
    assert listener.endswith("/openlineage-spark_2.13-1.53.0.jar")
    [observer] = py_files
    assert observer.endswith("/sparklineage_observer.zip")
    assert application == "gs://shop/job.py"
    assert conf["spark.openlineage.parentJobName"] == "shop.revenue"
    added_by_airflow = {"labels": getattr(task, way.argument).get("labels")}
    assert getattr(task, way.argument) == before | (added_by_airflow if way is BATCH else {})


def test_parts_of_the_users_own_properties_stay(way, dataproc, ends, execute):
    own = {"spark.extraListeners": "shop.Listener", "spark.openlineage.x": "y"}
    execute(way.operator(properties={**own, "spark.jars": "/a.jar"}))
    [(conf, jars, *_)] = way.given(dataproc)
    assert conf["spark.extraListeners"].split(",")[0] == "shop.Listener"
    assert jars[0] == "/a.jar"
    assert conf["spark.openlineage.x"] == "y"


@pytest.mark.parametrize("flag", ["parent_job", "transport"])
def test_airflows_own_injection_adds_no_second_parent(
    way, dataproc, ends, execute, flag, monkeypatch
):
    monkeypatch.setattr(
        adapters, "inject_transport_information_into_spark_properties", lambda *_: {}
    )
    task = way.operator(**{f"openlineage_inject_{flag}_info": True})
    execute(task)
    [(conf, *_)] = way.given(dataproc)
    assert len([key for key in conf if "parentRunId" in key]) == 1
    assert names(facets(task).inputs) == READ


def test_a_job_that_fails_has_an_event_with_what_it_did(way, dataproc, ends, execute):
    ends("running", "failed")
    task = way.operator()
    with pytest.raises(AirflowException, match="failed"):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_a_job_that_dataproc_does_not_take_is_not_waited_for(way, dataproc, ends, execute, lake):
    dataproc.refuses = grpc.StatusCode.INVALID_ARGUMENT
    task = way.operator()
    with pytest.raises(Exception, match="400 no"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


def test_without_a_place_that_both_reach_the_job_is_submitted_as_it_is(
    way, dataproc, ends, execute, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    task = way.operator()
    execute(task)
    assert way.given(dataproc) == [({}, [], [], "gs://shop/job.py", [])]
    assert "The driver runs in Dataproc" in degradations(task)["driver_elsewhere"]


@pytest.mark.parametrize("by", ["the job", "Airflow"])
def test_no_secret_is_given_to_dataproc_and_the_lineage_is_whole(
    way, dataproc, ends, execute, monkeypatch, by
):
    prefix = "spark.openlineage.transport."
    given = {"type": "http", "url": "http://marquez:5000", "auth.type": "api_key"}
    conf = {f"{prefix}{key}": value for key, value in {**given, "auth.apiKey": SECRET}.items()}
    if by == "Airflow":
        provider = "inject_transport_information_into_spark_properties"
        monkeypatch.setattr(adapters, provider, lambda *_: conf)
        task = way.operator(openlineage_inject_transport_info=True)
    else:
        task = way.operator(properties=conf)
    execute(task)
    assert task.openlineage_inject_transport_info is (by == "Airflow")
    assert SECRET not in str(way.given(dataproc))
    assert "Dataproc" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ


@pytest.mark.parametrize("kind", ["spark", "spark_sql"])
def test_an_application_without_python_is_not_observed_and_says_what_it_takes(
    way, dataproc, ends, execute, kind
):
    spark = {"spark": {"main_class": "shop.Totals"}, "spark_sql": {"query_file_uri": "gs://q.sql"}}
    task = way.operator(kind=kind, spark=spark[kind])
    execute(task)
    assert "capture_endpoint" in degradations(task)["driver_elsewhere"]


def test_what_starts_no_spark_is_left_to_airflow(way, dataproc, ends, execute):
    spark = {"main_r_file_uri": "gs://shop/job.r"}
    task = way.operator(kind="spark_r", spark=spark)
    execute(task)
    assert re.search("there is no Spark|starts no Spark", degradations(task)["injection_failed"])
    assert task.lineage_properties == {}


@pytest.mark.parametrize(
    "broken", [{"spark": {"jar_file_uris": "gs://a.jar"}}, {"properties": ["a"]}]
)
def test_other_shapes_are_left_to_airflow(way, dataproc, ends, execute, broken):
    ours, stock = (
        attempt(execute, way.operator(cls=cls, **broken)) for cls in (way.ours, way.stock)
    )
    assert ours == stock
    assert not any("spark.sparklineage.run" in conf for conf, *_ in way.given(dataproc))


def attempt(execute, task):
    try:
        return bool(execute(task))
    except Exception as error:
        return type(error), str(error)


def test_a_property_keeps_its_type(way, dataproc, ends, execute):
    """Dataproc's library takes texts alone, and the error is Airflow's own."""
    ours, stock = (
        attempt(execute, way.operator(cls=cls, properties={"spark.shop": 1}))
        for cls in (way.ours, way.stock)
    )
    assert ours == stock


def test_templates_are_traced(way):
    spark = {"main_python_file_uri": "gs://shop/job.py", "args": ["{{ ds }}"]}
    task = rendered(way.operator(spark=spark, properties={"spark.day": "{{ ds_nodash }}"}))
    of_property, of_argument = way.path
    assert {name: days for name, days in dated(task).items() if days} == {
        of_argument: [DAY],
        of_property: ["20240506"],
    }


def test_an_adopted_task_has_the_same_lineage(way, dataproc, ends, execute):
    with DAG("d", schedule=None):
        task = way.operator(cls=way.stock, deferrable=True)
    adopting.adopt(task)
    assert isinstance(task, way.ours)
    task.deferrable = False
    execute(task)
    assert names(facets(task).inputs) == READ


@pytest.mark.parametrize("way", [SUBMIT, BATCH], ids=["job", "batch"])
def test_a_task_that_does_not_wait_is_collected_later(way, dataproc, ends, execute):
    task = way.operator(asynchronous=True)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_dataprocs_own_lineage_is_no_second_listener(way, dataproc, ends, execute):
    own = {"spark.dataproc.lineage.enabled": "true"}
    task = way.operator(properties=own)
    execute(task)
    assert way.given(dataproc)[0][0] == own
    assert "spark.dataproc.lineage.enabled=false" in degradations(task)["injection_failed"]


def test_what_is_no_argument_has_lineage_in_its_name(way):
    test_idioms.test_what_is_no_argument_has_lineage_in_its_name(way.ours, way.stock)


# --- tasks that are deferred ----------------------------------------------------------------------


def ended(way, deferred, state, **more):
    """Resume a task by a new operator; give that."""
    task = way.operator(deferrable=True, **more)
    try:
        resumed(task, deferred.method_name, {"event": way.event(state)})
    except AirflowException:
        assert state == way.states[2]
    return task


@pytest.fixture
def deferred(way, dataproc, ends, execute):
    """Defer a task; give what Airflow is given."""
    ends("running", "succeeded")
    with pytest.raises(TaskDeferred) as caught:
        execute(way.operator(deferrable=True))
    return caught.value


def test_a_deferred_task_leaves_its_bundle_at_the_location_alone(deferred, lake, tmp_path):
    [folder] = lake.glob("*-try*")
    assert (folder / "manifest.json").exists()
    assert not [*tmp_path.glob("sparklineage-*/*-try*")]


def test_the_process_that_resumes_has_the_whole_lineage(way, deferred, lake):
    task = ended(way, deferred, way.states[1])
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_job_is_an_end(way, deferred):
    task = ended(way, deferred, way.states[2])
    assert names(facets(task, "failure").inputs) == READ


@pytest.mark.parametrize("error", ["Trigger timeout", "Trigger failure"])
def test_a_trigger_that_fails_is_an_end(way, deferred, error):
    task = way.operator(deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, "__fail__", {"error": error})
    assert names(facets(task, "failure").inputs) == READ


def test_switched_off_a_deferred_task_is_stock(way, dataproc, ends, execute):
    ends("running", "succeeded")
    with pytest.raises(TaskDeferred):
        execute(way.operator(deferrable=True, lineage=False))
    assert way.given(dataproc)[0][0] == {}


def test_a_job_that_the_triggerer_submits_has_no_lineage_and_says_so(dataproc):
    task = SUBMIT.operator(deferrable=True, start_from_trigger=True)
    resumed(task, "execute_complete", {"event": SUBMIT.event("DONE")})
    assert "no manifest" in degradations(task)["capture_unavailable"]


def test_a_task_that_starts_in_the_triggerer_is_not_adopted(dataproc):
    with DAG("d", schedule=None):
        task = SUBMIT.operator(cls=SUBMIT.stock, deferrable=True, start_from_trigger=True)
    decision = adopting.decide(task, ADOPT_ALL)
    assert (decision.adopts, decision.reason) == (False, "left alone: it is deferrable")


# --- jobs of a cluster ----------------------------------------------------------------------------


def test_a_message_of_the_library_stays_one(dataproc, execute):
    job = v1.Job(SUBMIT.content(properties={"spark.shop": "1"}))
    before = v1.Job.to_dict(job)
    task = SUBMIT.operator(content=job)
    assert task.lineage_properties == {"spark.shop": "1"}
    execute(task)
    assert names(facets(task).inputs) == READ
    assert v1.Job.to_dict(task.job) == before
    assert dataproc.jobs[0].pyspark_job.properties["spark.shop"] == "1"


def test_a_message_within_a_mapping_stays_one(dataproc, execute):
    spark = v1.PySparkJob(SUBMIT.content()["pyspark_job"])
    task = SUBMIT.operator(content={"placement": {"cluster_name": "c1"}, "pyspark_job": spark})
    execute(task)
    assert names(facets(task).inputs) == READ


@pytest.mark.parametrize("image", ["2.2.45-debian12", "1.5.1-debian10", None])
def test_the_version_of_spark_is_that_of_the_image(dataproc, execute, monkeypatch, image):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    dataproc.image = image
    task = SUBMIT.operator(properties={"spark.shop": "1"})
    execute(task)
    [(conf, *_)] = SUBMIT.given(dataproc)
    assert dataproc.clusters_seen == 1
    assert conf == {"spark.shop": "1"}
    expected = "Set [sparklineage] spark_version"
    if image == "2.2.45-debian12":  # the listener of these tests is for another Scala
        expected = "Spark 3.5 runs on Scala 2.12"
    assert expected in degradations(task)["listener_unavailable"]


def test_a_dataproc_that_does_not_answer_is_not_waited_for(dataproc, execute, monkeypatch):
    monkeypatch.setattr(operators, "_ASK_S", 0.3)
    dataproc.image, dataproc.delay = "2.2.45-debian12", 2
    task = SUBMIT.operator()
    execute(task)
    [(_, jars, *_)] = SUBMIT.given(dataproc)
    assert jars[0].endswith("/openlineage-spark_2.13-1.53.0.jar")  # of spark_version


def test_a_cluster_with_dataprocs_own_lineage_gets_no_second_listener(dataproc, execute):
    dataproc.image = "2.2.45-debian12"
    dataproc.cluster_properties = {"dataproc:dataproc.lineage.enabled": "true"}
    task = SUBMIT.operator()
    execute(task)
    assert SUBMIT.given(dataproc)[0][0] == {}
    assert "Create the cluster with" in degradations(task)["injection_failed"]


# --- batches --------------------------------------------------------------------------------------


@pytest.fixture
def batches(dataproc):
    """Let the batches of Dataproc have states: ``batches("RUNNING", "FAILED")``."""

    def by(*states):
        dataproc.states = [*states]

    by("SUCCEEDED")
    return by


def with_version(version, **more):
    runtime = {"version": version, "properties": {"spark.shop": "1"}}
    return {
        "pyspark_batch": {"main_python_file_uri": "gs://a.py"},
        "runtime_config": runtime,
        **more,
    }


@pytest.mark.parametrize("own", ["the batch", "its configuration"])
def test_a_message_of_a_batch_stays_one(dataproc, batches, execute, own):
    content = with_version("2.2", labels={"team": "shop"})
    if own == "the batch":
        content = v1.Batch(content)
    else:
        content["runtime_config"] = v1.RuntimeConfig(content["runtime_config"])
    task = BATCH.operator(content=content)
    assert task.lineage_properties == {"spark.shop": "1"}
    execute(task)
    assert names(facets(task).inputs) == READ
    [batch] = dataproc.batches.values()
    assert batch.labels["team"] == "shop"
    assert batch.runtime_config.properties["spark.shop"] == "1"
    assert batch.runtime_config.version == "2.2"


def test_the_labels_that_airflow_adds_stay(dataproc, batches, execute):
    task = BATCH.operator()
    with_lineage = task.batch
    execute(task)
    assert [*task.batch] == ["pyspark_batch", "labels"]
    assert task.batch is with_lineage  # Airflow changes the user's own mapping


@pytest.mark.parametrize("version", ["2.2", "1.2.30", "1.0", None])
def test_the_version_of_spark_is_that_of_the_runtime(
    dataproc, batches, execute, monkeypatch, version
):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    monkeypatch.setattr(releases, "DATAPROC_SERVERLESS", RELEASES)
    content = with_version(version) if version else BATCH.content()
    task = BATCH.operator(content=content)
    execute(task)
    known = version in ("2.2", "1.2.30")
    expected = "openlineage-spark_2.13" if version == "2.2" else None
    [(_, jars, *_)] = BATCH.given(dataproc)
    assert [expected in jar for jar in jars] == ([True] if version == "2.2" else [])
    if version != "2.2":
        message = degradations(task)["listener_unavailable"]
        assert ("runs on Scala 2.12" if known else "Set [sparklineage] spark_version") in message


RELEASES = (
    releases.Release(r"2\.2([.-].*)?", ("4.0", "2.13")),
    releases.Release(r"1\.2([.-].*)?", ("3.5", "2.12")),
)


def of_try(number):
    context = task_context()
    context["ti"].try_number = number
    return context


def test_a_batch_of_an_earlier_try_has_its_lineage(dataproc, batches, execute):
    batches("FAILED")
    with pytest.raises(AirflowException, match="failed"):
        execute(BATCH.operator(batch_id="shop-1"), of_try(1))
    batches("SUCCEEDED")
    task = BATCH.operator(batch_id="shop-1")
    execute(task, of_try(2))
    assert len(dataproc.batches) == 1
    assert names(facets(task).inputs) == READ
    assert "submitted by try 1" in degradations(task)["submission_resumed"]


def test_a_batch_that_was_there_before_is_not_taken_for_the_tasks_own(
    dataproc, batches, execute, lake
):
    dataproc.batches["shop-1"] = v1.Batch(BATCH.content())
    task = BATCH.operator(batch_id="shop-1")
    execute(task)
    assert facets(task).inputs == []
    assert "submitted by an earlier try" in degradations(task)["submission_resumed"]
    assert not [*lake.glob("*-try*")]


def test_a_deferred_task_whose_batch_was_there_before_says_so(dataproc, batches, execute, lake):
    batches("RUNNING", "SUCCEEDED")
    dataproc.batches["batch-0"] = v1.Batch(BATCH.content())
    with pytest.raises(TaskDeferred) as caught:
        execute(BATCH.operator(batch_id="batch-0", deferrable=True))
    task = ended(BATCH, caught.value, "SUCCEEDED")
    assert facets(task).inputs == []
    [message] = degradations(task).values()
    assert message.startswith("The batch batch-0 was there already")
    assert not [*lake.glob("*-try*")]


def test_a_batch_that_is_made_again_has_the_lineage_of_the_last(
    dataproc, batches, execute, monkeypatch
):
    batches("FAILED", "SUCCEEDED")
    does = [dataproc.does, lambda *_: None]  # the first gets no machines
    dataproc.does = lambda *parts: does.pop()(*parts)
    hook = "airflow.providers.google.cloud.hooks.dataproc.DataprocHook"
    monkeypatch.setattr(
        f"{hook}.check_error_for_resource_is_not_ready_msg",
        lambda *_: len(dataproc.states) == 1 and not dataproc.deleted,
    )
    task = BATCH.operator(batch_id="shop-1", num_retries_if_resource_is_not_ready=1)
    execute(task)
    assert dataproc.deleted == ["shop-1"]
    assert names(facets(task).inputs) == READ


# --- workflows ------------------------------------------------------------------------------------


@pytest.fixture
def drivers(dataproc, lake, tmp_path):
    """Let the jobs of a workflow do what recorded applications did, each its own."""

    def of(*applications):
        left = list(enumerate(applications))

        def does(conf, *_):
            if "spark.sparklineage.deliver" not in conf:
                return
            number, application = left.pop(0)
            RecordedDriver(tmp_path / f"driver-{number}", events=application)(conf)
            for folder in lake.glob("*-try*/*-0123abcd"):
                folder.rename(folder.with_name(folder.name.replace("0123abcd", f"{number:08x}")))

        dataproc.does = does

    return of


def of_jobs(*jobs, **more):
    steps = ({"step_id": f"step-{number}", **job} for number, job in enumerate(jobs))
    return {"id": "shop", "jobs": [*steps], **more}


def python(**properties):
    return {"pyspark_job": {"main_python_file_uri": "gs://a.py", "properties": properties}}


def test_the_event_has_what_all_jobs_did(dataproc, drivers, execute):
    drivers("staging_chain", "union_diamond")
    task = WORKFLOW.operator(content=of_jobs(python(), HIVE, python()))
    before = copy.deepcopy(task.template)
    execute(task)
    outputs = names(facets(task).outputs)
    assert degradations(task) == {}
    assert {"/lake/revenue", "/lake/audience"} <= {*outputs}
    (first, *_), (second, *_) = WORKFLOW.given(dataproc)
    key = "spark.openlineage.applicationRunId"
    assert first[key] == second[key]
    assert first["spark.sparklineage.observations"] != second["spark.sparklineage.observations"]
    assert dataproc.templates[0].jobs[1].hive_job.query_file_uri == "gs://shop/clean.q"
    assert task.template == before


@pytest.mark.parametrize("first", ["python", "java"])
def test_a_job_without_lineage_is_named_where_the_others_have_theirs(
    dataproc, drivers, execute, first
):
    drivers("staging_chain")
    jobs = {"python": python(), "java": {"spark_job": {"main_class": "shop.Totals"}}}
    second = "java" if first == "python" else "python"
    task = WORKFLOW.operator(content=of_jobs(jobs[first], jobs[second]))
    execute(task)
    assert names(facets(task).inputs) == READ
    assert "capture_endpoint" in degradations(task)["listener_unavailable"]


def test_no_secret_of_any_job_is_given_to_dataproc(dataproc, drivers, execute):
    drivers("staging_chain", "union_diamond")
    prefix = "spark.openlineage.transport."
    conf = {f"{prefix}type": "http", f"{prefix}url": "http://m", f"{prefix}auth.apiKey": SECRET}
    task = WORKFLOW.operator(content=of_jobs(python(), python(**conf)))
    assert task.lineage_properties == conf
    execute(task)
    assert SECRET not in str(dataproc.templates)
    assert {*degradations(task)} == {"transport_left_out"}


def test_a_message_of_a_template_stays_one(dataproc, drivers, execute):
    drivers("staging_chain")
    template = v1.WorkflowTemplate(of_jobs(HIVE, python(**{"spark.shop": "1"})))
    task = WORKFLOW.operator(content=template)
    assert task.lineage_properties == {"spark.shop": "1"}
    execute(task)
    assert names(facets(task).inputs) == READ
    assert WORKFLOW.given(dataproc)[0][0]["spark.shop"] == "1"


def test_the_version_of_spark_is_that_of_the_managed_cluster(dataproc, execute, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    config = {"software_config": {"image_version": "2.2"}}
    managed = {"managed_cluster": {"cluster_name": "c1", "config": config}}
    task = WORKFLOW.operator(content=of_jobs(python(), placement=managed))
    execute(task)
    assert "Spark 3.5 runs on Scala 2.12" in degradations(task)["listener_unavailable"]
    assert dataproc.clusters_seen == 0


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.google.cloud.operators.dataproc'] = None\n"
        "import airflow_provider_sparklineage.operators.dataproc"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[google]'" in done.stderr
