"""Tasks made by functions of a team's own, one of them with a loop."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG


def submit(table: str, **arguments: object) -> SparkSubmitOperator:
    defaults = {"conf": {"spark.sql.shuffle.partitions": "4"}, "name": f"load-{table}"}
    return SparkSubmitOperator(
        task_id=f"load_{table}", application=f"factory_{table}.py", **defaults | arguments
    )


def chained(*tables: str) -> None:
    before = None
    for table in tables:
        task = submit(table, application_args=["--date", "{{ ds }}"])
        if before:
            before >> task
        before = task


with DAG("factory", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    chained("orders", "customers")
