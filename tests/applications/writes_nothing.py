"""Counts, shows and collects, and writes nothing.

What it is for: an application with inputs only; what little the listener reports of such actions.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  none
  outputs        none
"""

import sys

from pyspark.sql import SparkSession


def main(lake: str) -> None:
    """Look at the data."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.read.schema("order_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    orders.count()
    orders.where("amount > 0").show()

    customers = spark.read.schema("customer_id long, name string").parquet(f"{lake}/customers")
    customers.where("name = 'Ada'").collect()


if __name__ == "__main__":
    main(sys.argv[1])
