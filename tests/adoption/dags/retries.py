"""A job that succeeds when it is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("retries", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(
        task_id="revenue",
        application="retries_fails_once.py",
        retries=1,
        retry_delay=timedelta(0),
    )
