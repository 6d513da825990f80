"""One task for each of several tables, by ``partial`` and ``expand``."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("mapped", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    SparkSubmitOperator.partial(
        task_id="load", application="mapped.py", conf={"spark.ui.enabled": "false"}
    ).expand(application_args=[["orders", "{{ ds }}"], ["customers", "{{ ds }}"]])
