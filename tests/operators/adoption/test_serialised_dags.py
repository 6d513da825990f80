"""What adoption changes in the serialised DAG, by which Airflow finds that a DAG has changed."""

from __future__ import annotations

import json

import pytest
from airflow.models.serialized_dag import SerializedDagModel
from airflow.serialization.serialized_objects import DagSerialization

pytestmark = pytest.mark.airflow

FILE = """
from datetime import datetime, timedelta
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset, TaskGroup, task, task_group

class Shop(SparkSubmitOperator):
    template_fields = (*SparkSubmitOperator.template_fields, "table")
    ui_color = "#123456"

    def __init__(self, *, table, **kwargs):
        super().__init__(application="job.py", **kwargs)
        self.table = table

    def execute(self, context):
        return super().execute(context)

with DAG(
    "shop",
    schedule="@daily",
    start_date=datetime(2024, 5, 6),
    tags=["spark"],
    default_args={"retries": 2, "retry_delay": timedelta(minutes=3)},
):
    plain = SparkSubmitOperator(
        task_id="plain",
        application="job.py",
        conf={"spark.app.name": "{{ ds }}"},
        execution_timeout=timedelta(hours=1),
        outlets=[Asset("s3://lake/orders")],
    )
    with TaskGroup("week"):
        own = Shop(task_id="own", table="{{ ds }}", trigger_rule="all_done", pool="spark")
        Shop.partial(task_id="mapped_own", retries=5).expand(table=["a", "b"])
    SparkSubmitOperator.partial(task_id="mapped", application="job.py").expand(
        application_args=[["a"], ["b"]]
    )
    SparkJDBCOperator(task_id="jdbc")
    BashOperator(task_id="bash", bash_command="true")

    @task_group
    def each_day(day):
        SparkSubmitOperator(task_id="load", application="job.py", application_args=[day])

    each_day.expand(day=["a", "b"])

    @task.pyspark
    def flights(day, spark):
        pass

    plain >> own >> flights("{{ ds }}")
    flights.override(task_id="each").partial().expand(day=["a", "b"])
"""
PLAIN = {"plain", "week.own", "flights", "each_day.load", "jdbc"}
MAPPED = {"mapped", "week.mapped_own", "each"}


def document(dag):
    return DagSerialization.to_dict(dag)


def tasks(dag):
    return {t["__var"]["task_id"]: t["__var"] for t in document(dag)["dag"]["tasks"]}


def text(dag):
    return json.dumps(document(dag))


def test_with_adoption_off_the_serialised_dag_is_the_stock_one_byte_for_byte(parse):
    stock = text(parse(FILE))
    assert text(parse(FILE, "off")) == stock
    assert text(parse(FILE, '[{"dag_id": "another"}]')) == stock
    assert text(parse(FILE, "- dag_id: [")) == stock
    assert text(parse(FILE, "all")) != stock


def test_adoption_changes_links_and_nothing_else(parse):
    stock, on = tasks(parse(FILE)), tasks(parse(FILE, "all"))
    assert on.keys() == stock.keys()
    changed = {
        name: {
            key for key in {*stock[name], *on[name]} if stock[name].get(key) != on[name].get(key)
        }
        for name in stock
    }
    for name in PLAIN | MAPPED:
        assert changed[name] == {"_operator_extra_links"}
    assert changed["bash"] == set()


def test_what_is_around_the_tasks_stays_as_it_is(parse):
    stock, on = document(parse(FILE)), document(parse(FILE, "all"))
    stock["dag"].pop("tasks")
    on["dag"].pop("tasks")
    assert on == stock


def test_a_dag_is_serialised_the_same_each_time(parse):
    hashes = {SerializedDagModel.hash(document(parse(FILE, "all"))) for _ in range(3)}
    assert len(hashes) == 1


def test_another_way_to_say_the_same_changes_nothing(parse):
    assert text(parse(FILE, '[{"dag_id": "*"}]')) == text(parse(FILE, "all"))
