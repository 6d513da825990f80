"""Statements of spark-sql without Spark: what it is given, and what stays as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sparklineage.operators.spark_sql import SparkLineageSqlOperator
from tests.operators.test_rendering import DAY, dated, rendered
from tests.spark_submit_double import degradations, injected

pytestmark = pytest.mark.airflow

T = "spark.openlineage.transport."
SECRET = "pl4nted-s3cr3t"


@pytest.fixture
def spark_sql(spark_submit, monkeypatch):
    """Have a double of spark-sql do what that of spark-submit would."""
    folder = Path(spark_submit.path)
    shutil.copy(folder / "spark-submit", folder / "spark-sql")
    connection = {"conn_type": "spark_sql", "host": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_SQL_DEFAULT", json.dumps(connection))
    spark_submit.does("staging_chain")
    return spark_submit


def operator(**more):
    return SparkLineageSqlOperator(**{"task_id": "totals", "sql": "SELECT 1", **more})


@pytest.mark.parametrize(
    "conf", [{"spark.a": 1, "spark.jars": "/own.jar"}, "spark.a=1,spark.jars=/own.jar"]
)
def test_the_listener_is_among_the_properties_and_goes_again(spark_sql, execute, conf):
    task = operator(conf=conf)
    execute(task)
    given = spark_sql.given
    assert given.conf["spark.a"] == "1"
    assert given.conf["spark.jars"] == f"/own.jar,{spark_sql.jar}"
    assert given.argv[given.argv.index("-e") + 1] == "SELECT 1"
    assert "SPARK_SUBMIT_OPTS" not in given.env
    names = [d.name for d in task.get_openlineage_facets_on_complete(None).inputs]
    assert names == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert "no Python file" in degradations(task)["observer_unavailable"]
    assert task._conf == conf


def test_defaults_of_spark_are_extended_and_not_replaced(spark_sql, execute):
    defaults = spark_sql.home / "conf" / "spark-defaults.conf"
    defaults.write_text("spark.jars /site.jar\nspark.extraListeners site.Listener\n")
    execute(operator())
    conf = spark_sql.given.conf
    assert conf["spark.jars"] == f"/site.jar,{spark_sql.jar}"
    assert conf["spark.extraListeners"].startswith("site.Listener,")


def test_a_transport_with_a_key_is_left_out_and_the_lineage_is_collected(spark_sql, execute):
    own = {"type": "http", "url": "http://marquez:5000", "auth.type": "api_key"}
    conf = {f"{T}{key}": value for key, value in {**own, "auth.apiKey": SECRET}.items()}
    task = operator(conf=conf)
    execute(task)
    assert SECRET not in json.dumps(spark_sql.given.argv)
    assert "spark-sql" in degradations(task)["transport_left_out"]
    assert injected(spark_sql.given)


@pytest.mark.parametrize("conf", ["spark.a=1,2", "spark.a"])
def test_a_text_that_is_no_list_of_properties_is_left_to_airflow(spark_sql, execute, conf):
    task = operator(conf=conf)
    with pytest.raises(AirflowException, match="Cannot execute"):  # as without lineage
        execute(task)
    assert "Give it as a dict" in degradations(task)["injection_failed"]


def test_switched_off_it_is_stock(spark_sql, execute):
    execute(operator(lineage=False))
    assert spark_sql.given.conf == {}


def test_dates_in_a_statement_are_traced():
    task = rendered(operator(sql="SELECT * FROM orders WHERE dt = '{{ ds }}'"))
    assert dated(task) == {"sql": [DAY]}
