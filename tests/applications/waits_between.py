"""Writes, waits until the file `go` is in the lake, and writes again; not recorded.

What it is for: ending a job, or who waits for it, between two writes.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  none
  outputs        before (<- orders), after (<- customers)
"""

import sys
import time

from pyspark.sql import SparkSession

LONGEST_S = 120


def main(lake: str) -> None:
    """Copy the day's orders, wait, then copy the customers."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    orders.write.parquet(f"{lake}/before")

    go = spark._jvm.org.apache.hadoop.fs.Path(f"{lake}/go")
    files = go.getFileSystem(spark._jsc.hadoopConfiguration())
    ends = time.monotonic() + LONGEST_S
    while not files.exists(go):
        if time.monotonic() > ends:
            sys.exit(f"there is no {lake}/go")
        time.sleep(0.2)

    customers = spark.read.schema("customer_id long, name string").parquet(f"{lake}/customers")
    customers.write.parquet(f"{lake}/after")


if __name__ == "__main__":
    main(sys.argv[1])
