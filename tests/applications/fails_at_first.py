"""Writes, and fails; started again by its cluster, it writes something else; not recorded.

What it is for: two attempts of one driver.

Truth
  inputs         orders (dt=2024-05-06, by the first attempt), customers
  intermediates  none
  outputs        before (<- orders, by the first attempt), after (<- customers)
"""

import sys

from pyspark.sql import SparkSession


def main(lake: str) -> None:
    """Copy the day's orders and fail; if they are there already, copy the customers."""
    spark = SparkSession.builder.getOrCreate()
    before = spark._jvm.org.apache.hadoop.fs.Path(f"{lake}/before")
    files = before.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(before):
        orders = spark.read.schema("order_id long, amount double").parquet(
            f"{lake}/orders/dt=2024-05-06"
        )
        orders.write.parquet(f"{lake}/before")
        sys.exit("the first attempt fails")

    customers = spark.read.schema("customer_id long, name string").parquet(f"{lake}/customers")
    customers.write.parquet(f"{lake}/after")


if __name__ == "__main__":
    main(sys.argv[1])
