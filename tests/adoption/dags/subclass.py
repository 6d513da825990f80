"""Operators of a team's own: one prepares its job when executed, one submits by other means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class ShopSubmitOperator(SparkSubmitOperator):
    """Adds what all jobs of the shop are given; gives the table as its result."""

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "table")
    ui_color = "#fafafa"

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    def execute(self, context: Context) -> str:
        self.conf = {**(self.conf or {}), "spark.shop.table": self.table}
        self.application_args = ["--table", self.table]
        super().execute(context)
        return self.table


class LivyOperator(SparkSubmitOperator):
    """Submits without the stock operator."""

    def execute(self, context: Context) -> str:  # noqa: ARG002
        return "submitted elsewhere"


with DAG("subclass", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):
    ShopSubmitOperator(task_id="load", application="subclass.py", table="orders/dt={{ ds }}")
    LivyOperator(task_id="elsewhere", application="elsewhere.py")
