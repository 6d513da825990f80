"""A task of an operator that is in a plugin."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG
from shop import ShopPluginOperator

with DAG("plugin", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    ShopPluginOperator(task_id="revenue", job="revenue")
