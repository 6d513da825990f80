"""A job in a pool, of which it takes two places."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("pool", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(
        task_id="revenue", application="pool.py", pool="cluster", pool_slots=2, priority_weight=5
    )
