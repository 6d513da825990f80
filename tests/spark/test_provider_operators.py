"""The other operators of Airflow's Spark provider, with a real Spark."""

from __future__ import annotations

import json

import duckdb
import pytest
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_jdbc import SparkLineageJDBCOperator
from airflow_provider_sparklineage.operators.spark_sql import SparkLineageSqlOperator
from tests import maven, record_events, spark_submit_double
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


# --- SparkJDBCOperator ----------------------------------------------------------------------------

PASSWORD = "pl4nted-s3cr3t"
ROWS = "SELECT * FROM (VALUES (1, 2.0::DOUBLE, 5), (2, 3.0::DOUBLE, 6)) AS t(id, amount, day)"


@pytest.fixture
def transfer(work, monkeypatch):
    """Have files of two days and a connection to a new database; give a maker of transfers."""
    extra = {"conn_prefix": f"jdbc:h2:{work}/"}  # the host of a connection takes no slash
    connection = {"conn_type": "jdbc", "host": "databases", "schema": "shop", "extra": extra}
    connection |= {"login": "clerk", "password": PASSWORD}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(connection))
    duckdb.sql(f"COPY ({ROWS}) TO '{work}/orders' (FORMAT parquet, PARTITION_BY (day))")

    def transfer(**arguments):
        return SparkLineageJDBCOperator(
            task_id="transfer",
            spark_conn_id="spark_default",
            spark_conf=conf(work),
            spark_jars=str(maven.jar(record_events.H2)),
            jdbc_conn_id="shop",
            jdbc_driver="org.h2.Driver",
            jdbc_table="PUBLIC.ORDERS",
            save_mode="append",
            **arguments,
        )

    return transfer


def sources(output):
    """Give the columns that each column of an output is made of."""
    fields = output.facets["columnLineage"].fields
    return {
        name: [(one["name"], one["field"]) for one in field["inputFields"]]
        for name, field in fields.items()
    }


@pytest.mark.long
def test_rows_go_to_a_database_and_back(work, transfer):
    there = ran(transfer(metastore_table=f"parquet.`{work}/orders`"))
    back = ran(transfer(cmd_type="jdbc_to_spark", metastore_table="copied", save_format="parquet"))
    namespace, table = f"h2:{work}/databases/shop", "PUBLIC.ORDERS"
    [orders], [database] = there.inputs, there.outputs
    assert orders.name == f"{work}/orders"
    assert (database.namespace, database.name) == (namespace, table)
    [read] = there.run_facets["sparkLineage_partitionCheck"].reads
    assert read["observed"]["summary"] == "day=5 … day=6 (2 partitions)"
    assert sources(database)["amount"] == [(orders.name, "amount")]
    [source], [copied] = back.inputs, back.outputs
    assert (source.namespace, source.name) == (namespace, table)
    assert copied.name == f"{work}/warehouse/copied"
    assert sources(copied)["amount"] == [(table, "amount")]
    for lineage in (there, back):
        assert PASSWORD not in repr(lineage)
