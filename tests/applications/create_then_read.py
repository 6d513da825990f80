"""Creates a dataset without saying "overwrite", reads it back and writes a report.

What it is for: a new dataset whose events look like an append. Spark's default mode refuses
to write where something is, so all of the dataset is new, but neither it nor an append has a
lifecycle in its events.

Truth
  inputs         orders (dt=2024-05-06)
  intermediates  staging/paid_orders
  outputs        paid_total, as a whole
  columns        paid_total.total <- orders.amount (aggregation)
                 it depends on orders.amount (filter)
"""

import sys

from pyspark.sql import SparkSession, functions

SCHEMA = "order_id long, amount double"


def main(lake: str) -> None:
    """Stage the paid orders in a new folder, then sum up what is there."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.read.schema(SCHEMA).parquet(f"{lake}/orders/dt=2024-05-06")
    orders.where("amount > 0").write.parquet(f"{lake}/staging/paid_orders")

    paid_orders = spark.read.schema(SCHEMA).parquet(f"{lake}/staging/paid_orders")
    total = paid_orders.agg(functions.sum("amount").alias("total"))
    total.write.mode("overwrite").parquet(f"{lake}/paid_total")


if __name__ == "__main__":
    main(sys.argv[1])
