"""Links of a task instance: where they lead, when they are there, and when rather not."""

from __future__ import annotations

import json
from configparser import InterpolationSyntaxError
from types import SimpleNamespace
from urllib.parse import quote, unquote

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperatorLink
from msgspec import Raw
from msgspec.json import encode

from airflow_provider_sparklineage.links.lineage import LINKS, _button
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.operators.attempt.other_runs import EarlierLineage
from airflow_provider_sparklineage.operators.attempt.prepare import Prepared
from airflow_provider_sparklineage.operators.spark_submit import (
    SparkLineageMixin,
    SparkLineageSubmitOperator,
)
from airflow_provider_sparklineage.plugins.macros import lineage_job_url, output_columns_url
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT

pytestmark = pytest.mark.airflow

JOB = "http://marquez:3000/lineage/job/tests/shop.revenue?tableLevelNode=job%3Atests%3Ashop.revenue"
COLUMNS = "http://marquez:3000/datasets/column-level"
KEYS = ("_link_LineageJobLink", "_link_OutputColumnsLink")


@pytest.fixture(autouse=True)
def web(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", "http://marquez:3000/")
    _button.cache_clear()
    yield
    _button.cache_clear()


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def known(task, *outputs, schema=True):
    """Let a task know what its last successful run wrote."""
    facets = {"schema": b"{}"} if schema else {}
    datasets = tuple(LastRunDataset(namespace, name, facets) for namespace, name in outputs)
    current = task.lineage_try
    current.prepared = Prepared(current.settings(), EarlierLineage(LastRun("run-1", (), datasets)))
    return task


def links(task, ti):
    return {link.name: link.get_link(task, ti_key=ti) for link in LINKS}


def test_after_the_run_they_lead_to_the_job_and_the_first_output(spark_submit, execute, context):
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert links(task, context["ti"]) == {
        "Lineage job": JOB,
        "Output columns": f"{COLUMNS}/file/%2Flake%2Frevenue",
    }


def test_while_the_task_runs_they_are_there_of_its_last_run(spark_submit, execute, context):
    spark_submit.does(exit=1)
    task = known(operator(), ("file", "/lake/revenue"))
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    pushed = context["ti"].xcoms
    assert [pushed[key] for key in KEYS] == [JOB, f"{COLUMNS}/file/%2Flake%2Frevenue"]
    # The try failed before it wrote anything, so that stays the latest that there is to see.
    assert list(links(task, context["ti"]).values()) == [pushed[key] for key in KEYS]


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("s3://lake", "shop/revenue"),
        ("file", "/lake/revenue"),
        ("hdfs://namenode:8020", "/lake/revenue"),
        ("hive://metastore:9083", "shop.revenue"),
        ("postgres://db:5432", "shop.public.revenue"),
        ("file", "/lake/with space/ümsatz"),
    ],
)
def test_names_of_all_kinds_are_linked(namespace, name):
    url = links(known(operator(), (namespace, name)), None)["Output columns"]
    assert list(map(unquote, url.removeprefix(f"{COLUMNS}/").split("/"))) == [namespace, name]


def test_they_lead_to_datahub(spark_submit, execute, context, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", "datahub")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", "http://datahub:9002")
    both = [{"type": "console"}, {"type": DATAHUB_TRANSPORT, "folder": "/x", "cluster": "eu"}]
    transport = json.dumps({"type": "composite", "transports": both})
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", transport)
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    job = quote("urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,eu),revenue)", safe="")
    revenue = quote("urn:li:dataset:(urn:li:dataPlatform:file,lake/revenue,PROD)", safe="")
    graph = "Lineage?is_lineage_mode=true&show_columns=true"
    assert links(task, context["ti"]) == {
        "Lineage in DataHub": f"http://datahub:9002/tasks/{job}/Lineage",
        "Output columns": f"http://datahub:9002/dataset/{revenue}/{graph}",
    }


def test_in_datahub_a_table_that_is_known_by_another_name_is_linked(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", "datahub")
    task = operator()
    table = {"namespace": "hive://metastore:9083", "name": "shop.revenue", "type": "TABLE"}
    facets = {"schema": Raw(b"{}"), "symlinks": Raw(encode({"identifiers": [table]}))}
    outputs = (LastRunDataset("file", "/lake/revenue", facets),)
    current = task.lineage_try
    current.prepared = Prepared(current.settings(), EarlierLineage(LastRun("run-1", (), outputs)))
    assert "hive%2Cshop.revenue%2CPROD" in links(task, None)["Output columns"]


def test_a_configuration_that_cannot_be_read_breaks_no_dag_file(monkeypatch):
    def broken(section, option, **_):
        raise InterpolationSyntaxError(option, section, "'%' must be followed by '%' or '('")

    monkeypatch.setattr(conf, "get", broken)
    assert LINKS[0].name == "Lineage job"


def test_an_output_is_linked_by_the_name_that_the_backend_has_for_it():
    task = known(operator(), ("s3://lake~eu", "revenue"))
    assert links(task, None)["Output columns"] == f"{COLUMNS}/s3%3A%2F%2Flake_eu/revenue"
    url = output_columns_url(SimpleNamespace(task=task), "revenue")
    assert url == f"{COLUMNS}/s3%3A%2F%2Flake_eu/revenue"


def test_an_output_without_a_page_is_passed_over():
    task = known(operator(), ("s3://lake", "2024/orders"), ("file", "/lake/z"))
    assert links(task, None)["Output columns"] == f"{COLUMNS}/file/%2Flake%2Fz"
    assert output_columns_url(SimpleNamespace(task=task), "2024/orders") == ""


@pytest.mark.parametrize(
    ("task", "setting"),
    [
        pytest.param({}, ("WEB_URL", ""), id="the pages are not configured"),
        pytest.param({}, ("BACKEND", "generic"), id="pages of another backend"),
        pytest.param({}, ("DISABLED", "True"), id="no lineage at all"),
        pytest.param({"lineage": False}, ("STRICT", "False"), id="no lineage of this task"),
    ],
)
def test_there_is_none_rather_than_a_broken_one(
    task, setting, monkeypatch, spark_submit, execute, context
):
    monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{setting[0]}", setting[1])
    spark_submit.does("staging_chain")
    made = operator(**task)
    execute(made)
    assert set(links(made, context["ti"]).values()) == {""}
    assert not set(KEYS) & context["ti"].xcoms.keys()


def test_a_job_that_wrote_nothing_has_a_page_and_its_columns_have_none(
    spark_submit, execute, context
):
    spark_submit.does("writes_nothing")
    task = operator()
    execute(task)
    assert links(task, context["ti"]) == {"Lineage job": JOB, "Output columns": ""}


def test_callbacks_get_the_same_from_the_context(spark_submit, execute, context):
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    ti = context["ti"]
    ti.task = task
    assert lineage_job_url(ti) == JOB
    staging = "/lake/staging/enriched_orders"
    assert unquote(output_columns_url(ti, staging)).endswith(f"/file/{staging}")
    assert output_columns_url(ti, "/lake/unknown") == ""


def test_a_callback_of_another_task_gets_nothing():
    ti = SimpleNamespace(task=SparkSubmitOperator(task_id="t", application="job.py"))
    assert (lineage_job_url(ti), output_columns_url(ti)) == ("", "")


def test_an_operator_keeps_links_of_its_own():
    class Own(BaseOperatorLink):
        name = "Own"

        def get_link(self, operator, *, ti_key):  # noqa: ARG002
            return ""

    class ShopOperator(SparkSubmitOperator):
        operator_extra_links = (Own(),)

    class ShopLineageOperator(SparkLineageMixin, ShopOperator):
        pass

    class ShopLineageChild(ShopLineageOperator):
        pass

    named = [link.name for link in ShopLineageChild.operator_extra_links]
    assert named == ["Own", "Lineage job", "Output columns"]


def test_templates_find_the_macros_in_the_plugin():
    from airflow_provider_sparklineage.plugins.lineage_tab import SparkLineagePlugin

    assert SparkLineagePlugin.name == "sparklineage"
    assert SparkLineagePlugin.macros[:2] == [lineage_job_url, output_columns_url]
