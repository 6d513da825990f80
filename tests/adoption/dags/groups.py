"""A task in a group in a group, and a group that is expanded."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, TaskGroup, task_group

with DAG("groups", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    with TaskGroup("bronze"), TaskGroup("orders"):
        SparkSubmitOperator(task_id="load", application="groups_load.py")

    @task_group
    def silver(table: str) -> None:
        SparkSubmitOperator(
            task_id="merge", application="groups_merge.py", application_args=[table]
        )

    silver.expand(table=["orders"])
