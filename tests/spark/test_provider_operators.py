"""The other operators of Airflow's Spark provider, with a real Spark."""

from __future__ import annotations

import pytest
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_sql import SparkLineageSqlOperator
from tests import spark_submit_double
from tests.operators.test_rendering import rendered
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture
def work(spark, tmp_path, monkeypatch):
    """Give a worker with this Spark, and a folder for its warehouse and its metastore."""
    environment = submissions.of_worker(spark, tmp_path) | {
        "AIRFLOW_CONN_SPARK_SQL_DEFAULT": '{"conn_type": "spark_sql", "host": "local[2]"}',
    }
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    return tmp_path


def conf(work):
    metastore = f"jdbc:derby:;databaseName={work}/metastore;create=true"
    return {
        "spark.sql.warehouse.dir": f"{work}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
        "spark.ui.enabled": "false",
    }


def ran(task):
    spark_submit_double.execute(task, spark_submit_double.task_context())
    return task.get_openlineage_facets_on_complete(None)


@pytest.mark.parametrize("way", ["edited", pytest.param("adopted", marks=pytest.mark.long)])
def test_statements_of_spark_sql_have_the_listeners_lineage(work, orders_lake, way):
    sql = f"""
    CREATE TABLE totals USING parquet PARTITIONED BY (dt) AS
    SELECT sum(amount) AS total, dt FROM parquet.`{orders_lake}/orders` WHERE dt = '{{{{ ds }}}}'
    GROUP BY dt;
    """
    arguments = {"task_id": "totals", "sql": sql, "conf": conf(work)}
    if way == "edited":
        task = SparkLineageSqlOperator(**arguments)
    else:
        with DAG("d", schedule=None):
            task = SparkSqlOperator(**arguments)
        adopting.adopt(task)
    lineage = ran(rendered(task))
    assert [one.name for one in lineage.inputs] == [f"{orders_lake}/orders"]
    [totals] = lineage.outputs
    assert totals.name == f"{work}/warehouse/totals"
    total = totals.facets["columnLineage"].fields["total"]
    assert [one["field"] for one in total["inputFields"]] == ["amount"]
    facet = lineage.run_facets["sparkLineage_capture"]
    messages = {d["code"]: d["message"] for d in facet.degradations}
    assert "no Python file" in messages["observer_unavailable"]
    assert task._conf == conf(work)
