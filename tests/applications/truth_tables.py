"""Makes the tables of `make truth`: of a file for each, partitioned tables of one format.

Of Iceberg, whose tables cannot be copied as files, each query gets its own here.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("truth_tables").getOrCreate()
lake = Path(sys.argv[1])
plan = json.loads((lake / "plan.json").read_text())


def write(table, columns):
    """Write one table; of partitions that are one file each, whatever wrote them."""
    planted = spark.read.parquet(f"{lake}/planted/{table}.parquet").coalesce(1)
    if plan["format"] != "iceberg":
        writer = planted.write.format(plan["format"]).partitionBy(*columns)
        writer.save(f"{lake}/base/{table}")
        return
    for home in sorted({query["home"] for query in plan["queries"] if table in query["tables"]}):
        writer = planted.sortWithinPartitions(*columns) if columns else planted
        writer = writer.writeTo(f"lakehouse.{home}.{table}")
        (writer.partitionedBy(*columns) if columns else writer).create()


if plan["format"] == "iceberg":
    for query in plan["queries"]:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lakehouse.{query['home']}")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lakehouse.out")
with ThreadPoolExecutor(2) as pool:
    list(pool.map(write, plan["partitioned_by"].keys(), plan["partitioned_by"].values()))
spark.stop()
