"""Transfers of SparkJDBCOperator without Spark: what spark-submit is given, and what is not."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_jdbc import SparkLineageJDBCOperator
from tests.spark_submit_double import argument, degradations, injected

pytestmark = pytest.mark.airflow

T = "spark.openlineage.transport."
SECRET = "pl4nted-s3cr3t"


@pytest.fixture
def jdbc(spark_submit, monkeypatch):
    """Have a connection to Spark and one to a database with a password."""
    database = {"conn_type": "jdbc", "host": "db", "schema": "shop", "login": "clerk"}
    database |= {"password": SECRET, "extra": {"conn_prefix": "jdbc:derby://"}}
    monkeypatch.setenv("AIRFLOW_CONN_JDBC_DEFAULT", json.dumps(database))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    spark_submit.does("staging_chain", observations=[])
    return spark_submit


def arguments(**more):
    return {
        "task_id": "export",
        "spark_conn_id": "spark_default",
        "jdbc_conn_id": "jdbc_default",
        "metastore_table": "orders",
        "jdbc_table": "ORDERS",
        "spark_conf": {"spark.a": 1},
        "spark_jars": "/driver.jar",
        **more,
    }


class Named(SparkJDBCOperator):
    """Gives the script the name that the stock operator forgets."""

    def _get_hook(self):
        hook = super()._get_hook()
        of_stock = hook._build_jdbc_application_arguments
        hook._build_jdbc_application_arguments = lambda c: [*of_stock(c), "-name", "own"]
        return hook


def adopted(cls, **more):
    with DAG("d", schedule=None):
        task = cls(**arguments(**more))
    adopting.adopt(task)
    return task


def test_the_script_gets_listener_observer_and_a_name(jdbc, execute):
    task = SparkLineageJDBCOperator(**arguments(spark_app_name="moves"))
    before = deepcopy(task._spark_conf)
    execute(task)
    given = jdbc.given
    assert injected(given)
    assert given.conf["spark.a"] == "1"
    assert argument(given, "--jars") == f"/driver.jar,{jdbc.jar}"
    assert argument(given, "--py-files").endswith("sparklineage_observer.zip")
    assert argument(given, "-name") == "moves"
    assert "SPARK_SUBMIT_OPTS" in given.env
    assert "observer_unavailable" not in degradations(task)
    assert (task._spark_conf, task._spark_jars) == (before, "/driver.jar")


@pytest.mark.parametrize("cmd_type", ["spark_to_jdbc", "jdbc_to_spark"])
def test_the_password_is_where_airflow_puts_it_and_nowhere_else(jdbc, execute, cmd_type):
    task = SparkLineageJDBCOperator(**arguments(cmd_type=cmd_type))
    execute(task)
    argv = jdbc.given.argv
    assert argument(jdbc.given, "-cmdType") == cmd_type
    assert [argv[n - 1] for n, word in enumerate(argv) if SECRET in word] == ["-password"]
    assert SECRET not in repr(task.get_openlineage_facets_on_complete(None))


def test_without_lineage_it_differs_from_stock_in_the_name_alone(jdbc, execute):
    execute(SparkJDBCOperator(**arguments()))
    stock = jdbc.given.argv
    execute(SparkLineageJDBCOperator(**arguments(lineage=False)))
    assert jdbc.given.argv == [*stock, "-name", "airflow-spark-jdbc"]


def test_an_adopted_task_gets_the_listener_and_no_name(jdbc, execute):
    execute(adopted(SparkJDBCOperator))
    assert injected(jdbc.given)
    assert argument(jdbc.given, "-name") is None


def test_a_name_of_the_users_own_class_is_kept(jdbc, execute):
    execute(adopted(Named))
    assert injected(jdbc.given)
    assert jdbc.given.argv.count("-name") == 1
    assert argument(jdbc.given, "-name") == "own"


def test_a_transport_with_a_key_goes_into_a_file(jdbc, execute):
    own = {"type": "http", "url": "http://marquez:5000", "auth.type": "api_key"}
    conf = {f"{T}{key}": value for key, value in {**own, "auth.apiKey": "k3y-of-marquez"}.items()}
    task = SparkLineageJDBCOperator(**arguments(spark_conf=conf))
    execute(task)
    assert "k3y-of-marquez" not in json.dumps(jdbc.given.argv)
    [(mode, text)] = jdbc.given.files.values()
    assert mode == "0o600"
    assert "k3y-of-marquez" in text
    assert "transport_left_out" not in degradations(task)
