"""Streams over what is new since their checkpoints, into files, Delta, a function, and nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

LAKE = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


def run(writer, name):
    writer = writer.trigger(availableNow=True)
    writer.option("checkpointLocation", str(LAKE.parent / "checkpoints" / name))
    return writer


def write(batch, number):
    batch.write.mode("append").partitionBy("dt", "region").parquet(str(LAKE / "batches"))


orders = spark.readStream.schema("id int, dt string, region string").parquet(str(LAKE / "orders"))
days = spark.readStream.schema("id int, name string").json(str(LAKE / "days"))
copied = run(orders.writeStream.partitionBy("dt", "region"), "copy").start(str(LAKE / "copy"))
copied.awaitTermination()
run(orders.writeStream.foreachBatch(write), "batches").start().awaitTermination()
run(days.writeStream.format("json"), "listed").start(str(LAKE / "listed")).awaitTermination()
run(days.writeStream.format("noop"), "nowhere").start().awaitTermination()
if "delta" in spark.conf.get("spark.sql.extensions", ""):
    changes = spark.readStream.format("delta").load(str(LAKE / "changes"))
    mirrored = run(changes.writeStream.format("delta"), "mirror").start(str(LAKE / "mirror"))
    mirrored.awaitTermination()
