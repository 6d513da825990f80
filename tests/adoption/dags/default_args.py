"""Everything that a task needs comes from the DAG's default arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG(
    "default_args",
    schedule=None,
    start_date=datetime(2024, 5, 1, tzinfo=UTC),
    default_args={
        "owner": "shop",
        "application": "default_args.py",
        "application_args": ["--output", "/lake/revenue/dt={{ ds }}"],
        "conf": {"spark.ui.enabled": "false"},
        "conn_id": "spark_default",
        "retry_delay": timedelta(minutes=1),
    },
    tags=["spark"],
):
    SparkSubmitOperator(task_id="revenue")
