"""A job of which a file declares what it has to write: see ``declarations.yaml``."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("declared", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(task_id="revenue", application="declared.py")
