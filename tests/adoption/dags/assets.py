"""A job whose task has an asset, by which another DAG is scheduled."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset

orders, revenue = Asset("file:///lake/orders"), Asset("file:///lake/revenue")

with DAG("assets", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(
        task_id="revenue", application="assets.py", inlets=[orders], outlets=[revenue]
    )

with DAG("assets_consumer", schedule=[revenue], start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator(task_id="report", application="assets_report.py")
