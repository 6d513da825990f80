"""A job that fails, and one that runs because it did."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, TriggerRule

with DAG("trigger_rule", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    load = SparkSubmitOperator(task_id="load", application="trigger_rule_fails.py")
    repair = SparkSubmitOperator(
        task_id="repair", application="trigger_rule.py", trigger_rule=TriggerRule.ONE_FAILED
    )
    load >> repair
