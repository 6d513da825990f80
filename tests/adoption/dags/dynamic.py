"""A DAG for each of a list, made in a loop."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import dag

COUNTRIES = {"eu": {"executor_cores": 2}, "us": {"executor_cores": 4}}


def sales(country: str, size: dict[str, int]) -> None:
    @dag(dag_id=f"dynamic_{country}", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC))
    def of_country() -> None:
        SparkSubmitOperator(task_id="sales", application=f"dynamic_{country}.py", **size)

    of_country()


for country, size in COUNTRIES.items():
    sales(country, size)
