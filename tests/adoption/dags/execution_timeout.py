"""A job that takes longer than its task may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("execution_timeout", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(
        task_id="revenue",
        application="execution_timeout_hangs.py",
        execution_timeout=timedelta(seconds=30),  # a busy machine takes ten to start the job
    )
