"""A DAG for which adoption is turned on and off while it is there."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("switched", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(task_id="revenue", application="switched.py")
    SparkSubmitOperator.partial(task_id="load", application="switched_load.py").expand(
        application_args=[["orders"]]
    )
