"""Reads a partitioned dataset by its root, lets Spark infer the schema, and keeps one day.

What it is for: inferring the schema starts a job of its own whose START event names one arbitrary
partition as the input's subset and which never ends. It is no action, and that subset is wrong.

Truth
  inputs         orders (dt=2024-05-06; known by the predicate, by no location)
  intermediates  none
  outputs        day_orders, as a whole
  columns        day_orders.order_id <- orders.order_id (identity)
                 day_orders.amount <- orders.amount (identity)
                 both depend on orders.dt (filter)
"""

import sys

from pyspark.sql import SparkSession


def main(lake: str) -> None:
    """Copy one day of the orders."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.read.parquet(f"{lake}/orders").where("dt = '2024-05-06'")
    orders.select("order_id", "amount").write.parquet(f"{lake}/day_orders")


if __name__ == "__main__":
    main(sys.argv[1])
