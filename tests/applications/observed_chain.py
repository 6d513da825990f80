"""Reads what it wrote, by partition: into a table with older data, and back.

`totals` holds an older day. The application overwrites one more day dynamically and reads that day
back (internal), then reads both days (the older one comes from outside).
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

lake = sys.argv[1]
spark = SparkSession.builder.getOrCreate()

orders = spark.read.parquet(f"{lake}/orders").where("dt = '2024-05-06'")
daily = orders.selectExpr("customer_id", "amount", "dt")
writer = daily.write.mode("overwrite").partitionBy("dt")
writer.option("partitionOverwriteMode", "dynamic").parquet(f"{lake}/totals")

today = spark.read.parquet(f"{lake}/totals").where("dt = '2024-05-06'")
today.write.mode("overwrite").partitionBy("dt").parquet(f"{lake}/report")

if len(sys.argv) > 2:
    both = spark.read.parquet(f"{lake}/totals").where("dt >= '2024-05-05'")
    both.write.mode("overwrite").partitionBy("dt").parquet(f"{lake}/report")
