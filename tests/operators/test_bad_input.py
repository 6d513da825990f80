"""Arguments of services in other shapes, releases nobody knows, places that are not reached.

Each is tried with each service's operator, as far as the provider is there. The task runs as stock,
or with the listener; and if it runs without, the event says why.
"""

from __future__ import annotations

import copy
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.operators.adoption import kinds
from airflow_provider_sparklineage.spark.submit import releases
from tests.conftest import long_after
from tests.operators.outcomes import degradations

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.airflow

OWN = {"spark.shop": "1"}
ROLE = "arn:aws:iam::123456789012:role/etl"
PARENT = "spark.openlineage.parentRunId"
"""A property that every job gets which is listened to."""
EMR, DATAPROC = "emr-7.5.0", {"config": {"software_config": {"image_version": "2.2-debian12"}}}


def _job_run(key):
    driver = {"entryPoint": "s3://shop/job.py", "sparkSubmitParameters": "--conf spark.b=2"}
    defaults = {"classification": "spark-defaults", "properties": dict(OWN)}
    return {
        "job_driver": {key: {**driver, "entryPointArguments": ["2024-05-06"]}},
        "configuration_overrides": {"applicationConfiguration": [defaults]},
    }


def _step(*words):
    command = {"Jar": "command-runner.jar", "Args": ["spark-submit", *words, "s3://shop/job.py"]}
    return {"Name": "job", "ActionOnFailure": "CONTINUE", "HadoopJarStep": command}


def _pyspark(properties=None):
    spark = {"main_python_file_uri": "gs://shop/job.py", "args": ["x"], "jar_file_uris": ["a.jar"]}
    return {**spark, "python_file_uris": []} | ({"properties": properties} if properties else {})


def _hook(**answers):
    """Give a hook whose client answers, and raises for what it does not know."""
    client = SimpleNamespace(
        exceptions=SimpleNamespace(EntityNotFoundException=KeyError),
        **{name: lambda answer=answer, **_: answer for name, answer in answers.items()},
    )
    return SimpleNamespace(conn=client)


SPARK = ("4.0.1", "2.13")
"""That of the listener which the worker has."""
RELEASES = {
    "EMR": r"emr-7\..*",
    "GLUE": r"5\.0",
    "DATAPROC": r"2\.2.*",
    "DATAPROC_SERVERLESS": r"2\.2",
}
IDS = ("_batch_id", "job_id", "_job_run_id", "operation", "operation_name", "pod")
"""Attributes in which operators have the id of a job that was taken."""


class Service(NamedTuple):
    """A service, as far as its operator's arguments go.

    :param arguments: those that have the submission; parts of them are replaced
    :param more: others of the constructor
    :param known: what the service tells of the Spark, by the operator's attribute
    :param unknown: the same, for a release that nobody knows; or arguments that name it
    :param other: arguments that start no Spark
    """

    arguments: dict
    more: Mapping = MappingProxyType({})
    known: Mapping = MappingProxyType({})
    unknown: dict | None = None
    other: dict | None = None


_SPEC = {
    "type": "Python",
    "mode": "cluster",
    "sparkVersion": "4.0.1",
    "mainApplicationFile": "s3a://shop/job.py",
    "sparkConf": dict(OWN),
    "deps": {"jars": ["a.jar"]},
    "driver": {"cores": 1},
    "executor": {"instances": 1},
}
_APPLICATION = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "job"},
    "spec": _SPEC,
}
_GLUE = {
    "Name": "job",
    "Role": ROLE,
    "Command": {"Name": "glueetl", "ScriptLocation": "s3://a/b.py"},
}
_RUN = {"application_id": "1", "execution_role_arn": ROLE}
_PLACED = {"placement": {"cluster_name": "c1"}}


def _template(*jobs, version="2.2-debian12"):
    config = {"software_config": {"image_version": version}}
    return {"template": {"jobs": list(jobs), "placement": {"managed_cluster": {"config": config}}}}


SERVICES = {
    "livy": Service(
        {"spark_params": {"file": "a.py", "conf": dict(OWN), "jars": ["a.jar"], "py_files": []}},
        {"file": "a.py"},
        unknown={},
    ),
    "spark_kubernetes": Service(
        {"template_spec": _APPLICATION},
        unknown={"template_spec": {**_APPLICATION, "spec": {**_SPEC, "sparkVersion": "latest"}}},
        other={"template_spec": {**_APPLICATION, "kind": "ScheduledSparkApplication"}},
    ),
    "emr_serverless": Service(
        _job_run("sparkSubmit"),
        _RUN,
        {"hook": _hook(get_application={"application": {"releaseLabel": EMR}})},
        {"hook": _hook(get_application={"application": {"releaseLabel": "emr-99.0.0"}})},
        {"job_driver": {"hive": {"query": "q.sql"}}},
    ),
    "emr_containers": Service(
        _job_run("sparkSubmitJobDriver"),
        {
            "name": "job",
            "virtual_cluster_id": "1",
            "execution_role_arn": ROLE,
            "release_label": f"{EMR}-latest",
        },
        {},
        {"release_label": "emr-99.0.0-latest"},
        {"job_driver": {"sparkSqlJobDriver": {"entryPoint": "q.sql"}}},
    ),
    "emr_steps": Service(
        {"steps": [_step("--conf", "spark.shop=1", "--jars", "a.jar")]},
        {"job_flow_id": "j-1", "wait_for_completion": True},
        {"hook": _hook(describe_cluster={"Cluster": {"ReleaseLabel": EMR}})},
        {"hook": _hook(describe_cluster={"Cluster": {"ReleaseLabel": "emr-99.0.0"}})},
        {
            "steps": [
                {"Name": "copy", "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["cp"]}}
            ]
        },
    ),
    "glue": Service(
        {"script_args": {"--conf": "spark.shop=1", "--extra-py-files": "s3://a/b.zip"}},
        {"job_name": "job", "script_location": "s3://a/b.py", "iam_role_name": "etl"},
        {"hook": _hook(get_job={"Job": {**_GLUE, "GlueVersion": "5.0"}})},
        {"hook": _hook(get_job={"Job": {**_GLUE, "GlueVersion": "99.0"}})},
        {"hook": _hook(get_job={"Job": {**_GLUE, "Command": {"Name": "pythonshell"}}})},
    ),
    "dataproc": Service(
        {"job": {"pyspark_job": _pyspark(dict(OWN)), **_PLACED}},
        {"region": "eu"},
        {"lineage_cluster": lambda _: DATAPROC},
        {"lineage_cluster": lambda _: {"config": {"software_config": {"image_version": "99"}}}},
        {"job": {"hive_job": {"query_list": {"queries": ["SELECT 1"]}}, **_PLACED}},
    ),
    "dataproc_batch": Service(
        {
            "batch": {
                "pyspark_batch": _pyspark(),
                "runtime_config": {"version": "2.2", "properties": dict(OWN)},
            }
        },
        {"region": "eu"},
        unknown={"batch": {"pyspark_batch": _pyspark(), "runtime_config": {"version": "99"}}},
        other={"batch": {"spark_r_batch": {"main_r_file_uri": "gs://shop/job.R"}}},
    ),
    "dataproc_workflow": Service(
        _template({"step_id": "a", "pyspark_job": _pyspark(dict(OWN))}),
        {"region": "eu"},
        unknown=_template({"step_id": "a", "pyspark_job": _pyspark()}, version="99"),
        other=_template({"step_id": "a", "hive_job": {}}),
    ),
    "synapse": Service(
        {"payload": {"name": "job", "file": "a.py", "conf": dict(OWN), "jars": ["a.jar"]}},
        {"spark_pool": "pool"},
        unknown={},
    ),
}
ADAPTERS = {  # by the last part of the path of the operator with lineage
    "SparkLineageLivyOperator": "livy",
    "SparkLineageKubernetesOperator": "spark_kubernetes",
    "SparkLineageEmrServerlessOperator": "emr_serverless",
    "SparkLineageEmrContainerOperator": "emr_containers",
    "SparkLineageEmrStepsOperator": "emr_steps",
    "SparkLineageGlueOperator": "glue",
    "SparkLineageDataprocSubmitOperator": "dataproc",
    "SparkLineageDataprocBatchOperator": "dataproc_batch",
    "SparkLineageDataprocWorkflowOperator": "dataproc_workflow",
    "SparkLineageSynapseOperator": "synapse",
}
KINDS = {
    ADAPTERS[name]: kind
    for kind in kinds.KINDS
    if (name := kind.ours.rpartition(".")[2]) in ADAPTERS
}
OTHERS = {  # by which this table would be incomplete if there were one more
    "SparkLineageSubmitOperator",
    "SparkLineagePySparkOperator",
    "SparkLineageSqlOperator",
    "SparkLineageJDBCOperator",
    "SparkLineagePipelinesOperator",
    "SparkLineageDatabricksOperator",
}


def test_every_service_is_in_the_table():
    names = {kind.ours.rpartition(".")[2] for kind in kinds.KINDS}
    assert names == {*ADAPTERS, *OTHERS}
    assert SERVICES.keys() == KINDS.keys()


def named(*fields):
    """Give the services that have these fields, by name."""
    every = SERVICES.items()
    return [name for name, service in every if all(getattr(service, f) is not None for f in fields)]


@pytest.fixture
def make(lake, monkeypatch):
    """Make the task of a service; its stock operator notes the arguments that it gets."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "{}-scala{}".format(*SPARK))
    for name, label in RELEASES.items():
        monkeypatch.setattr(releases, name, (releases.Release(label, SPARK),))

    def made(name, **changed):
        service, kind = SERVICES[name], KINDS[name]
        stock = imported(kind.stock)
        given = []

        def submit(task, *_, **__):
            given.append(arguments(task))
            vars(task).update(dict.fromkeys(IDS, "1"))

        monkeypatch.setattr(stock, "execute", submit)
        known = copy.deepcopy({**service.arguments, **service.more, "task_id": "job"})
        batch = known.pop("spark_params", None)
        task = imported(kind.ours)(**known)
        if batch is not None:
            task.spark_params, task._polling_interval = batch, 1
        vars(task).update({**service.known, **changed})
        return task, given

    return made


def imported(path):
    """Import a class; the test is left out if it is that of a provider that is not installed."""
    module, _, name = path.rpartition(".")
    return getattr(pytest.importorskip(module, exc_type=ImportError), name)


def arguments(task):
    """Give a copy of what a job is made of."""
    return copy.deepcopy({name: getattr(task, name) for name in task.lineage_injected_fields})


def prepared(task, context):
    """Do all that is done before the job; give its arguments then, and what the event will miss."""
    task.render_template_fields(context)
    capture, put_back = task._begin_lineage(context)
    found = arguments(task)
    put_back()
    losses = {d.code: d.message for d in capture.bundle.manifest.degradations}
    capture.abandon()
    return found, losses


# --- other shapes ---------------------------------------------------------------------------------


SHAPES = (None, "text", 3, [], ["a"], {}, {"a": 1}, [{}], [[]])
REASONS = {
    DegradationCode.INJECTION_FAILED,
    DegradationCode.LISTENER_UNAVAILABLE,
    DegradationCode.DRIVER_ELSEWHERE,
    DegradationCode.CAPTURE_UNAVAILABLE,
}
"""Codes of what keeps the listener from a job."""


def replaced(value):
    """Yield copies of a value, each with one part of another shape; with the part's path."""
    yield from (("", copy.deepcopy(shape)) for shape in SHAPES if shape != value)
    parts = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else parts:
        for path, changed in replaced(part):
            whole = copy.deepcopy(value)
            whole[key] = changed
            yield f"[{key!r}]{path}", whole


def check_that_stock_is_given(make, context, name, field, changed, where):
    """Check that a task gets the listener, or its job is that of the stock operator."""
    task, _ = make(name, **{field: changed})
    before = arguments(task)
    after, losses = prepared(task, context)
    assert arguments(task) == before, where
    if after == before:
        assert losses.keys() & REASONS, where
        assert all(losses.values()), where
    else:
        assert PARENT in str(after), where


@pytest.mark.parametrize("name", SERVICES)
def test_arguments_of_another_shape_are_left_as_they_are(make, context, name):
    for field in SERVICES[name].arguments:
        for changed in ("text", ["a"]):
            check_that_stock_is_given(make, context, name, field, changed, (field, changed))


@pytest.mark.long
@pytest.mark.parametrize("name", SERVICES)
def test_arguments_with_any_part_of_another_shape_are_left_as_they_are_or_get_the_listener(
    make, context, name
):
    for field, value in SERVICES[name].arguments.items():
        for path, changed in replaced(value):
            where = f"{field}{path} = {changed!r}"
            check_that_stock_is_given(make, context, name, field, changed, where)


# --- nothing to listen to, or nobody knows with what ----------------------------------------------


@pytest.mark.parametrize("name", named("other"))
def test_a_job_that_starts_no_spark_is_left_as_it_is(make, execute, name):
    task, given = make(name, **SERVICES[name].other)
    before = arguments(task)
    execute(task)
    assert given == [before]
    assert REASONS & degradations(task).keys()


@pytest.mark.parametrize("name", named("unknown"))
def test_a_release_that_nobody_knows_is_left_as_it_is(make, execute, monkeypatch, name):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    task, given = make(name, **SERVICES[name].unknown)
    before = arguments(task)
    execute(task)
    assert given == [before]
    text = " ".join(degradations(task).values())
    assert ("GlueVersion" if name == "glue" else "spark_version") in text


@pytest.mark.parametrize("name", sorted({*named("unknown")} - {"glue"}))
def test_spark_version_names_the_spark_of_such_a_release(make, context, name):
    task, _ = make(name, **SERVICES[name].unknown)
    assert PARENT in str(prepared(task, context)[0])


# --- a place that one side does not reach ---------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_a_location_that_the_worker_does_not_reach_leaves_the_job_as_it_is(
    make, execute, monkeypatch, name
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", "file:///proc/lineage")
    task, given = make(name)
    before = arguments(task)
    execute(task)
    assert given == [before]
    assert "file:///proc/lineage" in degradations(task)["capture_unavailable"]


@pytest.mark.parametrize("name", long_after(1, SERVICES))
def test_a_location_that_the_driver_does_not_reach_is_named_by_the_event(
    make, execute, monkeypatch, lake, name
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "1")
    task, given = make(name)
    execute(task)
    assert PARENT in str(given)
    assert str(lake) in " ".join(degradations(task).values())


# --- long names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_names_as_long_as_airflow_allows_are_within_the_limits_of_services(make, context, name):
    ti = context["ti"]
    ti.dag_id, ti.task_id, ti.run_id = "d" * 250, "t" * 250, "r" * 250
    task, _ = make(name)
    found, losses = prepared(task, context)
    assert PARENT in str(found)
    assert losses == {}
    if overrides := found.get("configuration_overrides"):
        [defaults] = overrides["applicationConfiguration"]
        assert max(map(len, defaults["properties"].values())) <= 1024
    if steps := found.get("steps"):
        assert sum(map(len, steps[0]["HadoopJarStep"]["Args"])) <= 10_240
