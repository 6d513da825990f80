"""A plugin of a team's own, with an operator."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator


class ShopPluginOperator(SparkSubmitOperator):
    """Knows where the jobs of the shop are."""

    def __init__(self, *, job: str, **kwargs: Any) -> None:
        super().__init__(application=f"plugin_{job}.py", **kwargs)


class ShopPlugin(AirflowPlugin):
    """Registers nothing: its folder is on Python's path."""

    name = "shop"
