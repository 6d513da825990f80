"""Thirty actions, each on what the one before wrote.

What it is for: column lineage that is composed over a long chain, with descriptions that stay
bounded, and staging folders that are all found to be no inputs.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  staging/step_01 to staging/step_29
  outputs        result, and the intermediates
  columns        result.order_id <- orders.order_id (identity)
                 result.amount <- orders.amount (transformation)
                 result.segment <- customers.segment (identity)
                 all depend on orders.amount (filter), orders.customer_id and customers.customer_id
                 (join)
"""

import sys

from pyspark.sql import SparkSession, functions

STEPS = 29
JOINS_AT = 15


def main(lake: str) -> None:
    """Stage the day's orders, add to the amount in each step, and join in the middle."""
    spark = SparkSession.builder.getOrCreate()
    schema = "order_id long, customer_id long, amount double"
    frame = spark.read.schema(schema).parquet(f"{lake}/orders/dt=2024-05-06").where("amount > 0")
    for step in range(1, STEPS + 1):
        if step == JOINS_AT:
            customers = spark.read.schema("customer_id long, segment string").parquet(
                f"{lake}/customers"
            )
            frame = frame.join(customers, "customer_id")
            schema = "order_id long, amount double, segment string"
        columns = [name.split()[0] for name in schema.split(", ")]
        staged = frame.withColumn("amount", functions.col("amount") + step).select(*columns)
        staged.write.mode("overwrite").parquet(f"{lake}/staging/step_{step:02}")
        frame = spark.read.schema(schema).parquet(f"{lake}/staging/step_{step:02}")
    frame.write.mode("overwrite").parquet(f"{lake}/result")


if __name__ == "__main__":
    main(sys.argv[1])
