"""The adapters of Dataproc's operators, without Airflow's provider for Google."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    dataproc,
    dataproc_batch,
    dataproc_workflow,
)

pytestmark = pytest.mark.airflow

PYTHON = {"main_python_file_uri": "gs://shop/job.py"}
OWN = {"spark.shop": "1"}
IMAGE = {"software_config": {"image_version": "2.2.45-debian12"}}


def asked(_name):
    pytest.fail("a cluster was asked")


def with_account(account, config=IMAGE):
    return {"config": {**config, "gce_cluster_config": {"service_account": account}}}


def submits(job, cluster=None, **more):
    return SimpleNamespace(
        **{
            "job": job,
            "lineage_cluster": lambda _name: cluster,
            "deferrable": False,
            "asynchronous": False,
            "gcp_conn_id": "google",
            "project_id": "shop",
            "openlineage_inject_transport_info": False,
            **more,
        }
    )


def of_cluster(**fields):
    return {"placement": {"cluster_name": "c1"}, **fields}


def read(adapter, operator):
    """Read the one submission of an operator, and the target."""
    [submission], target = adapter.read(operator, {})
    return submission, target


def longer(submission):
    """Give a submission with a listener and an observer."""
    return replace(
        submission,
        conf={**submission.conf, "spark.openlineage.x": "y"},
        jars=",".join(filter(None, [submission.jars, "gs://listener.jar"])),
        py_files=",".join(filter(None, [submission.py_files, "gs://observer.zip"])),
    )


# --- jobs of a cluster ----------------------------------------------------------------------------


def test_a_job_is_read():
    spark = {**PYTHON, "properties": {"spark.a": 1}, "jar_file_uris": ("gs://a.jar", "gs://b.jar")}
    operator = submits(of_cluster(pyspark_job={**spark, "python_file_uris": ["gs://a.py"]}))
    submission, target = read(dataproc, operator)
    assert submission.conf == {"spark.a": "1"}
    assert submission.jars == "gs://a.jar,gs://b.jar"
    assert submission.py_files == "gs://a.py"
    assert submission.application == "gs://shop/job.py"
    assert (target.service, target.is_polled, target.is_deferred) == ("Dataproc", True, False)


def test_a_job_is_written_into_containers_of_its_own():
    job = of_cluster(pyspark_job={**PYTHON, "properties": {"spark.a": 1}}, labels={"team": "shop"})
    operator, before = submits(job), copy.deepcopy(job)
    submission, _ = read(dataproc, operator)
    dataproc.write(operator, [longer(submission)])
    assert job == before
    assert operator.job == {
        **job,
        "pyspark_job": {
            **PYTHON,
            "properties": {"spark.a": 1, "spark.openlineage.x": "y"},
            "jar_file_uris": ["gs://listener.jar"],
            "python_file_uris": ["gs://observer.zip"],
        },
    }


def test_a_list_that_is_no_longer_is_left_alone():
    jars = ("gs://a.jar", "gs://b.jar")
    operator = submits(of_cluster(spark_job={"main_class": "A", "jar_file_uris": jars}))
    submission, _ = read(dataproc, operator)
    dataproc.write(operator, [submission.with_conf({"spark.x": "y"})])
    assert operator.job["spark_job"]["jar_file_uris"] is jars
    assert operator.job["spark_job"]["properties"] == {"spark.x": "y"}
    assert "python_file_uris" not in operator.job["spark_job"]


@pytest.mark.parametrize("name", ["spark_job", "spark_sql_job"])
def test_an_application_without_python_has_none_to_observe(name):
    submission, _ = read(dataproc, submits(of_cluster(**{name: {"main_class": "A"}})))
    assert submission.application == ""


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (of_cluster(hive_job={}), "none of the fields pyspark_job, spark_job, spark_sql_job"),
        (of_cluster(pysparkJob=PYTHON), "none of the fields"),
        (of_cluster(pyspark_job=None), "none of the fields"),
        (None, "none of the fields"),
        ("job.yaml", "none of the fields"),
        (of_cluster(pyspark_job={**PYTHON, "properties": "a=b"}), "is a mapping"),
        (of_cluster(pyspark_job={**PYTHON, "jar_file_uris": "gs://a.jar"}), "is a list"),
        (of_cluster(pyspark_job={**PYTHON, "python_file_uris": {"a": 1}}), "is a list"),
        (
            of_cluster(
                pyspark_job={**PYTHON, "properties": {"spark.dataproc.lineage.enabled": True}}
            ),
            "Dataproc's own lineage is enabled",
        ),
    ],
)
def test_what_dataproc_would_not_take_is_refused(job, expected):
    with pytest.raises(ListenerError, match=expected):
        dataproc.read(submits(job), {})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, (True, False)),
        ({"asynchronous": True}, (False, False)),
        ({"deferrable": True}, (True, True)),
        ({"deferrable": True, "asynchronous": True}, (True, True)),  # which is deferred, too
    ],
)
def test_whether_the_end_is_waited_for(flags, expected):
    _, target = read(dataproc, submits(of_cluster(pyspark_job=PYTHON), **flags))
    assert (target.is_polled, target.is_deferred) == expected


def test_the_properties_of_a_cluster_are_kept_below_those_of_the_job():
    own = {"spark:spark.jars": "gs://b/delta.jar", "core:fs.x": "y"}
    cluster = {"config": {"software_config": {**IMAGE["software_config"], "properties": own}}}
    submission, _ = read(dataproc, submits(of_cluster(pyspark_job=PYTHON), cluster))
    assert submission.conf == {}
    assert submission.listed_jars() == ["gs://b/delta.jar"]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (None, None),
        ({}, None),
        ({"config": {}}, None),
        ({"config": {"software_config": {"image_version": "2.1.9-debian11"}}}, ("3.3", "2.12")),
        ({"config": {"software_config": {"image_version": "1.5.9-debian10"}}}, None),
        ({"config": IMAGE}, ("3.5", "2.12")),
        ({"config": {"software_config": {"image_version": "2.3.1-ubuntu22"}}}, ("3.5", "2.12")),
        ({"config": {"software_config": {"image_version": "3.0-debian12"}}}, ("4.0", "2.13")),
    ],
)
def test_the_spark_of_a_cluster_is_that_of_its_image(cluster, expected):
    _, target = read(dataproc, submits(of_cluster(pyspark_job=PYTHON), cluster))
    assert target.spark == expected


def test_a_cluster_with_dataprocs_own_lineage_is_refused():
    own = {"properties": {"dataproc:dataproc.lineage.enabled": "true"}}
    operator = submits(of_cluster(pyspark_job=PYTHON), {"config": {"software_config": own}})
    with pytest.raises(ListenerError, match="Create the cluster with"):
        dataproc.read(operator, {})


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (None, "google shop cluster c1"),
        ({"config": IMAGE}, "google shop "),
        (with_account("etl@shop"), "google shop etl@shop"),
    ],
)
def test_the_account_of_the_driver_is_that_of_the_clusters_machines(cluster, expected):
    _, target = read(dataproc, submits(of_cluster(pyspark_job=PYTHON), cluster))
    assert target.account == expected


def test_a_cluster_that_labels_select_is_not_asked():
    job = {"placement": {"cluster_labels": {"team": "shop"}}, "pyspark_job": PYTHON}
    operator = submits(job, lineage_cluster=asked)
    _, target = read(dataproc, operator)
    assert target.spark is None
    assert target.account == "google shop cluster [('team', 'shop')]"


@pytest.mark.parametrize("way", ["job", "workflow"])
def test_a_job_that_is_refused_keeps_airflows_transport(way):
    own = {"software_config": {"properties": {"dataproc:dataproc.lineage.enabled": "true"}}}
    cluster, transport = {"config": own}, {"openlineage_inject_transport_info": True}
    operator = submits(of_cluster(pyspark_job=PYTHON), cluster, **transport)
    operator.template = {"jobs": [operator.job], "placement": {"managed_cluster": cluster}}
    adapter = {"job": dataproc, "workflow": dataproc_workflow}[way]
    with pytest.raises(ListenerError, match="own lineage"):
        adapter.read(operator, {})
    assert operator.openlineage_inject_transport_info


# --- batches --------------------------------------------------------------------------------------


def creates(batch, **more):
    return submits(None, batch=batch, **more)


def of_runtime(**runtime):
    return {"pyspark_batch": PYTHON, "runtime_config": runtime}


def test_a_batch_is_read():
    spark = {**PYTHON, "jar_file_uris": ["gs://a.jar"], "python_file_uris": ["gs://a.py"]}
    batch = {"pyspark_batch": spark, "runtime_config": {"properties": {"spark.a": 1}}}
    submission, target = read(dataproc_batch, creates(batch))
    assert submission.conf == {"spark.a": "1"}
    assert (submission.jars, submission.py_files) == ("gs://a.jar", "gs://a.py")
    assert submission.application == "gs://shop/job.py"
    assert (target.service, target.is_polled, target.is_deferred) == ("Dataproc", True, False)


@pytest.mark.parametrize("runtime", [{}, {"runtime_config": None}, {"runtime_config": {}}])
def test_a_batch_without_properties_gets_some(runtime):
    batch = {"pyspark_batch": PYTHON, **runtime}
    operator, before = creates(batch), copy.deepcopy(batch)
    submission, _ = read(dataproc_batch, operator)
    dataproc_batch.write(operator, [longer(submission)])
    assert batch == before
    assert operator.batch == {
        "pyspark_batch": {
            **PYTHON,
            "jar_file_uris": ["gs://listener.jar"],
            "python_file_uris": ["gs://observer.zip"],
        },
        "runtime_config": {"properties": {"spark.openlineage.x": "y"}},
    }


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, None),  # the default of the service, which changes
        ("1.1", ("3.3", "2.12")),
        ("4.0", None),
        ("1.2", ("3.5", "2.12")),
        ("2.2.30", ("3.5", "2.13")),
        ("3.0", ("4.0", "2.13")),
    ],
)
def test_the_spark_of_a_batch_is_that_of_its_runtime(version, expected):
    _, target = read(dataproc_batch, creates(of_runtime(version=version)))
    assert target.spark == expected


def test_the_account_of_a_batch_is_its_own_or_that_of_the_project():
    execution = {"execution_config": {"service_account": "etl@shop"}}
    _, own = read(dataproc_batch, creates({**of_runtime(), "environment_config": execution}))
    _, of_project = read(dataproc_batch, creates(of_runtime()))
    assert (own.account, of_project.account) == ("google shop etl@shop", "google shop ")


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ({"spark_r_batch": {"main_r_file_uri": "gs://a.r"}}, "none of the fields pyspark_batch"),
        ("batch.yaml", "none of the fields"),
        (of_runtime(properties=["a"]), "is a mapping"),
        (of_runtime(properties={"spark.dataproc.lineage.enabled": "true"}), "own lineage"),
    ],
)
def test_a_batch_that_dataproc_would_not_take_is_refused(batch, expected):
    with pytest.raises(ListenerError, match=expected):
        dataproc_batch.read(creates(batch), {})


def test_a_batch_may_not_be_waited_for():
    _, target = read(dataproc_batch, creates(of_runtime(), asynchronous=True))
    assert not target.is_polled


# --- workflows ------------------------------------------------------------------------------------

HIVE = {"step_id": "cleaned", "hive_job": {"query_file_uri": "gs://shop/clean.q"}}


def instantiates(*jobs, **more):
    template = {"id": "shop", "jobs": [*jobs], **more}
    return submits(None, template=template)


def step(**properties):
    return {"step_id": "a", "pyspark_job": {**PYTHON, "properties": properties}}


def test_each_job_that_starts_spark_is_a_submission():
    totals = {"step_id": "b", "spark_job": {"main_class": "shop.Totals"}}
    operator = instantiates(step(a="1"), HIVE, totals)
    before = copy.deepcopy(operator.template)
    (first, second), target = dataproc_workflow.read(operator, {})
    assert (first.application, second.application) == ("gs://shop/job.py", "")
    assert (target.is_polled, target.is_deferred) == (True, False)
    own = operator.template
    dataproc_workflow.write(operator, [longer(first), second.with_conf({"spark.x": "y"})])
    assert own == before
    first, hive, second = operator.template["jobs"]
    assert hive is HIVE
    assert first["pyspark_job"] == {
        **PYTHON,
        "properties": {"a": "1", "spark.openlineage.x": "y"},
        "jar_file_uris": ["gs://listener.jar"],
        "python_file_uris": ["gs://observer.zip"],
    }
    assert second["spark_job"] == {"main_class": "shop.Totals", "properties": {"spark.x": "y"}}


def test_a_job_to_which_nothing_is_added_is_written_as_it_was():
    totals = {"step_id": "b", "spark_job": {"main_class": "shop.Totals"}}
    operator = instantiates(step(a="1"), totals)
    (first, second), _ = dataproc_workflow.read(operator, {})
    dataproc_workflow.write(operator, [longer(first), second])
    assert operator.template["jobs"][1] == totals


@pytest.mark.parametrize(
    ("placement", "spark", "account"),
    [
        ({}, None, "google shop cluster []"),
        ({"managed_cluster": {"cluster_name": "c"}}, None, "google shop cluster []"),
        ({"managed_cluster": {"config": IMAGE}}, ("3.5", "2.12"), "google shop "),
        ({"managed_cluster": with_account("etl")}, ("3.5", "2.12"), "google shop etl"),
        (
            {"cluster_selector": {"cluster_labels": {"team": "shop"}}},
            None,
            "google shop cluster [('team', 'shop')]",
        ),
    ],
)
def test_the_cluster_of_a_workflow_is_that_of_its_placement(placement, spark, account):
    _, target = dataproc_workflow.read(instantiates(step(), placement=placement), {})
    assert (target.spark, target.account) == (spark, account)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (instantiates(HIVE), "No job of `template` has one of the fields pyspark_job"),
        (submits(None, template="workflow.yaml"), "No job of `template`"),
        (submits(None, template={"jobs": None}), "No job of `template`"),
        (instantiates(step(), {"pyspark_job": {"properties": "a=b"}}), "is a mapping"),
    ],
)
def test_a_workflow_that_dataproc_would_not_take_is_refused(operator, expected):
    with pytest.raises(ListenerError, match=expected):
        dataproc_workflow.read(operator, {})
    assert dataproc_workflow.properties_of(operator.template) == {}
