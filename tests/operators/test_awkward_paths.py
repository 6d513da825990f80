"""Paths that Spark would misread: the job gets others, and its lineage is collected."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.submit import submitted_files
from tests import spark_lists
from tests.unit.listener_jars import listener_jar, other_jar

pytestmark = pytest.mark.airflow

NAMES = ("c,d", "c[1]", "{c}", "c#d", "u:v", "s*t", "b b", "p%20q", "n\nl", "ü")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Give the temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


USERS = "/users/[own].jar, /users/b,/users/d d.jar"


@pytest.fixture
def run(spark_submit, execute, monkeypatch):
    """Run a task; give what its event has, and the files that Spark found when it was submitted."""
    submit = SparkSubmitHook.submit
    found = {}

    def looking(hook, application):
        for text in (hook._jars, hook._py_files):
            for file in spark_lists.files((text or "").removeprefix(f"{USERS},")):
                found[Path(file).name] = Path(file).read_bytes()
        submit(hook, application)

    monkeypatch.setattr(SparkSubmitHook, "submit", looking)

    def run(**kwargs):
        spark_submit.does("staging_chain")
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)
        execute(task)
        lineage = task.get_openlineage_facets_on_complete(None)
        facet = lineage.run_facets["sparkLineage_capture"]
        return lineage, {d["code"]: d["message"] for d in facet.degradations}, found

    return run


@pytest.mark.parametrize("name", NAMES)
def test_whatever_the_capture_location_is_called_the_lineage_is_collected(
    spark_submit, run, monkeypatch, tmp_path, temporary, name
):
    location = tmp_path / name / "captures"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(location))
    lineage, codes, found = run()
    assert lineage.outputs
    assert not {"no_events", "capture_unavailable"} & codes.keys()
    assert submitted_files.observer_zip() in found.values()
    assert str(tmp_path / name) not in " ".join(spark_submit.given.argv)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_jar_is_called_spark_gets_it(
    spark_submit, run, monkeypatch, tmp_path, temporary, name
):
    listener = listener_jar(tmp_path / "jars" / name / "openlineage-spark_2.13-1.53.0.jar")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", str(listener))
    extension = other_jar(tmp_path / "jars" / f"{name}.jar")
    lineage, codes, found = run(listener_extensions=[str(extension)], jars=USERS, py_files=USERS)
    assert lineage.outputs
    assert "extension_unavailable" not in codes
    jars = [listener.read_bytes(), extension.read_bytes()]
    assert list(found.values()) == [*jars, submitted_files.observer_zip()]
    assert list(temporary.iterdir()) == []  # links are in the bundle
    argv = spark_submit.given.argv
    assert argv[argv.index("--jars") + 1].startswith(f"{USERS},/")


def test_where_there_is_no_place_for_links_the_job_runs_and_the_character_is_named(
    spark_submit, run, monkeypatch, tmp_path
):
    odd = tmp_path / "c,d"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(odd / "captures"))
    _, codes, _ = run()
    assert spark_submit.ran
    assert "--jars" not in spark_submit.given.argv
    assert "because of ','" in codes["capture_unavailable"]
    assert "letters of ASCII" in codes["capture_unavailable"]


CLUSTER = '{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}'


@pytest.mark.parametrize(
    ("option", "code"),
    [("CAPTURE_LOCATION", "capture_unavailable"), ("LISTENER_JAR", "listener_unavailable")],
)
def test_a_driver_in_the_cluster_would_not_see_links(
    spark_submit, run, monkeypatch, tmp_path, option, code
):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", CLUSTER)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    jar = listener_jar(tmp_path / "c,d" / "openlineage-spark_2.13-1.53.0.jar")
    monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option}", str(jar))
    if option == "CAPTURE_LOCATION":
        monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option}", str(tmp_path / "c,d"))
    _, codes, _ = run(durable=False)
    assert spark_submit.ran
    assert "because of ','" in codes[code]
    assert "a YARN cluster" in codes[code]


def test_a_url_of_an_extension_that_spark_would_take_for_two_is_left_out(spark_submit, run):
    _, codes, _ = run(listener_extensions=["s3a://jars/a,b.jar"])
    assert "s3a://jars/a,b.jar is no URL that Spark takes" in codes["extension_unavailable"]
    assert "a,b" not in " ".join(spark_submit.given.argv)
