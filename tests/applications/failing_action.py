"""A good write, then one that fails in a task, uncaught: spark-submit ends with 1.

What it is for: FAIL is sticky (a COMPLETE with the same run id follows it), and the event of a
failed task names the failed output as a bare name only.

Truth of the failed task
  inputs         orders (dt=2024-05-06)
  intermediates  none
  outputs        good_orders, written as a whole
                 checked_orders: attempted, nothing committed
  columns        good_orders.order_id <- orders.order_id (identity)
                 good_orders.amount <- orders.amount (identity)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Copy the orders, then refuse one that is negative."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )

    orders.write.parquet(f"{lake}/good_orders")

    checked = functions.when(
        functions.col("amount") < 0, functions.raise_error(functions.lit("negative amount"))
    ).otherwise(functions.col("amount"))
    orders.select("order_id", checked.alias("amount")).write.parquet(f"{lake}/checked_orders")


if __name__ == "__main__":
    main(sys.argv[1])
