"""Reads and writes of folders whose names a user's configuration of the listener changes."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

lake = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


def make(name):
    rows = spark.range(4).selectExpr("id", "cast(id % 2 AS string) AS dt", "id * 2 AS price")
    rows.write.partitionBy("dt").parquet(f"{lake}/{name}")


def copy(frame, name):
    frame.write.parquet(f"{lake}/{name}")


for name in ("orders", "v7/orders", "nested/2024-05-06", "snapshots/v7"):
    make(name)

copy(spark.read.parquet(f"{lake}/orders/dt=1"), "folder/dt=1")
base = spark.read.option("basePath", f"{lake}/orders")
copy(base.parquet(f"{lake}/orders/dt=0"), "base_path")
copy(spark.read.parquet(f"{lake}/orders").where("dt = '1'"), "filtered")
copy(spark.read.parquet(f"{lake}/v7/orders/dt=1"), "v7/version")
copy(spark.read.parquet(f"{lake}/nested/2024-05-06/dt=1"), "below_a_date")
copy(spark.read.parquet(f"{lake}/snapshots/v7/dt=1"), "snapshot")
doubled = udf(lambda price: 2 * price, "long")
copy(spark.read.parquet(f"{lake}/v7/orders/dt=1").select(doubled("price").alias("p")), "python")

# By the listener's own logger: what it has to say of a connector that extends it.
logger = "io.openlineage.spark.agent.lifecycle.SparkOpenLineageExtensionVisitorWrapper"
spark._jvm.org.slf4j.LoggerFactory.getLogger(logger).warn("No 'apply' method found")

spark.stop()
