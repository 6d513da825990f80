"""A task that is the Spark driver itself, by Airflow's decorator."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import DAG, task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = os.environ.get("SHOP_LAKE", "/lake")

with DAG("pyspark_task", schedule=None, start_date=datetime(2024, 5, 1, tzinfo=UTC)):

    @task.pyspark(
        conn_id="spark_default",
        config_kwargs={"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"},
    )
    def customers(source: str, target: str, spark: SparkSession) -> int:
        """Sum what each customer paid; gives how many they are."""
        paid = spark.read.json(source).groupBy("customer").sum("price")
        paid.withColumnRenamed("sum(price)", "paid").write.mode("overwrite").parquet(target)
        return paid.count()

    customers(f"{LAKE}/orders/dt={{{{ ds }}}}", target=f"{LAKE}/customers/dt={{{{ ds }}}}")
