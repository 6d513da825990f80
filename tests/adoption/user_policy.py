"""What an organisation has in ``airflow_local_settings``: every task is billed to somebody."""

from __future__ import annotations

from airflow.exceptions import AirflowClusterPolicyViolation


def task_policy(task):
    if task.owner == "nobody":
        message = "Somebody has to own it."
        raise AirflowClusterPolicyViolation(message)
    if task.dag_id == "own_policy":
        task.owner = "finance"
        task.conf = {**(task.conf or {}), "spark.shop.bill": task.owner}
