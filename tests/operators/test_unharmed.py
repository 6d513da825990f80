"""Whatever is wrong with lineage, templates are rendered and the job runs: nothing gets out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_sparklineage.event import pipeline
from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.operators.attempt import prepare, submit
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture import bundle

pytestmark = pytest.mark.airflow

TRANSPORT = "spark.openlineage.transport."


@pytest.fixture
def run(execute, context):
    """Render and execute as the task runner does; give what the event reports as missing."""

    def run(after_rendering=lambda _: None, **kwargs):
        kwargs.setdefault("application_args", ["{{ ti.dag_id }}"])
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)
        context["task"] = task
        task.render_template_fields(context)
        after_rendering(task)
        execute(task)
        facet = task.get_openlineage_facets_on_complete(None).run_facets["sparkLineage_capture"]
        return {d["code"]: d["message"] for d in facet.degradations}

    return run


@pytest.fixture
def airflow_cfg():
    """Set something in the section, as a line of airflow.cfg does."""
    names = []

    def add(name, value):
        airflow_conf.read_string(f"[sparklineage]\n{name} = {value}\n")
        names.append(name)

    yield add
    for name in names:
        airflow_conf.remove_option("sparklineage", name)


def test_a_percent_sign_in_airflow_cfg_costs_the_lineage_and_names_the_fix(
    spark_submit, run, airflow_cfg
):
    airflow_cfg("partitioning", '[{dataset: "/lake/*", dimensions: [{field: d, format: "%Y"}]}]')
    degradations = run()
    assert spark_submit.ran
    assert "[sparklineage] partitioning" in degradations["injection_failed"]
    assert "%%" in degradations["injection_failed"]


ODD = (
    *(None, "", 0, True, b"x", "\0", "\ud800", "x" * 3000, object(), float("nan"), 10**40, -1),
    *([], {}, [None], {"a": {"b": [1]}}, ("a",), {"s"}, "{{ nope }}", "{% bad", "%Y", "{dt}"),
    *("http://[", "s3a://user:password@b/x/dt={{ ds }}", "a,b,,c", "${env:HOME}", " / "),
    datetime(2024, 1, 1, tzinfo=UTC),
)


def test_nothing_that_is_declared_keeps_a_job_from_being_submitted(run, mocker, spark_submit):
    submit = mocker.patch.object(SparkSubmitHook, "submit")
    for odd in ODD:
        submit.reset_mock()
        run(reads=odd, writes=[odd, DatasetSubset(odd)], partition_key_dimensions=odd)
        run(reads=DatasetSubset("s3://lake/t", {"dt": odd}, odd), listener_extensions=odd)
        run(observe=odd, relay_spark_events=odd, lineage_conn_id=odd)
        assert submit.call_count == 3, odd


@pytest.mark.parametrize("option", ["CAPTURE_LOCATION", "LISTENER_JAR"])
def test_the_home_of_nobody_costs_the_lineage_and_names_the_option(
    spark_submit, run, monkeypatch, option
):
    monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option}", "~nobody-of-this-name/lineage")
    degradations = run()
    assert spark_submit.ran
    assert f"[sparklineage] {option.lower()} is '~nobody" in degradations["injection_failed"]


@pytest.mark.parametrize("key", ["url", "endpoint", "auth.apiKey", "headers.X-Tenant"])
def test_a_url_that_is_none_is_taken_for_a_secret(spark_submit, run, key):
    url = "http://[not-a-url/s3cr3t-path"
    run(conf={f"{TRANSPORT}type": "http", f"{TRANSPORT}{key}": url})
    given = spark_submit.given
    assert url not in " ".join(given.argv)
    [(mode, text)] = given.files.values()
    assert mode == "0o600"
    assert "s3cr3t-path" in text


@pytest.mark.parametrize("part", ["prepared", "hide_secrets"])
def test_a_defect_while_fields_are_rendered_costs_no_field(spark_submit, run, monkeypatch, part):
    with monkeypatch.context() as patched:
        patched.setattr(prepare, part, lambda *_: 1 / 0)
        run(after_rendering=lambda _: patched.undo())
    assert spark_submit.given.argv[-1] == "shop"


def test_a_defect_in_making_facets_costs_the_lineage(spark_submit, execute, monkeypatch):
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    monkeypatch.setattr(pipeline, "made", lambda *_: 1 / 0)
    execute(task)
    assert spark_submit.ran
    lineage = task.get_openlineage_facets_on_complete(None)
    assert (lineage.inputs, lineage.outputs) == ([], [])


def test_a_task_that_is_ended_does_not_sweep(spark_submit, run, monkeypatch, mocker):
    """Airflow gives it seconds, in which it has to report what it knows."""
    sweep = mocker.patch.object(bundle, "sweep_at_times")
    run()
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda *_: tasks[-1].on_kill())
    tasks = []
    run(tasks.append)
    sweep.assert_called_once()  # of the first run


def test_a_try_that_cannot_be_identified_runs_without_lineage(
    spark_submit, run, monkeypatch, caplog
):
    monkeypatch.setattr(submit, "manifest_of", lambda *_, **__: 1 / 0)
    [problem] = run().items()
    assert problem[0] == "injection_failed"
    assert problem[1].startswith("The job runs without lineage. It could not be set up (ZeroDiv")
    assert spark_submit.ran
    assert problem[1] in caplog.text
