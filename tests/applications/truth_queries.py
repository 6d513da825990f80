"""Runs the queries of `make truth`, and writes the result of each as a table.

Results are written in all the ways that a format has, one after the other. Files that are opened
show to those who look when a query runs: what is opened before it is for its tables' schemas.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

WAYS = {
    "parquet": ("save", "saveAsTable", "ctas", "insert", "append"),
    "delta": ("save", "saveAsTable", "ctas", "insert", "createOrReplace", "append", "merge"),
    "iceberg": ("create", "createOrReplace", "ctas", "insert", "append", "merge"),
}

spark = SparkSession.builder.appName("truth_queries").getOrCreate()
lake = Path(sys.argv[1])
plan = json.loads((lake / "plan.json").read_text())
kind = plan["format"]


def empty_table(name, frame, columns):
    """Create a table for the result, by DDL."""
    fields = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in frame.schema)
    by = f"PARTITIONED BY ({', '.join(columns)})" if columns else ""
    spark.sql(f"CREATE TABLE {name} ({fields}) USING {kind} {by}")


def write(way, query):
    """Write the result of a query in one of the ways."""
    sql, columns = query["sql"], query["partitioned_by"]
    frame = spark.sql(sql)
    path = f"{lake}/out/{query['name']}"
    table = f"{'lakehouse.' if kind == 'iceberg' else ''}out.{query['name']}"
    by = f"PARTITIONED BY ({', '.join(columns)})" if columns else ""
    if way == "save":
        frame.write.format(kind).mode("overwrite").partitionBy(*columns).save(path)
    elif way == "append" and kind != "iceberg":
        frame.write.format(kind).mode("append").partitionBy(*columns).save(path)
    elif way == "saveAsTable":
        frame.write.format(kind).mode("overwrite").partitionBy(*columns).saveAsTable(table)
    elif way == "ctas":
        spark.sql(f"CREATE TABLE {table} USING {kind} {by} AS {sql}")
    elif way in ("create", "createOrReplace"):
        writer = frame.writeTo(table).using(kind)
        getattr(writer.partitionedBy(*columns) if columns else writer, way)()
    else:
        empty_table(table, frame, columns)
        if way == "insert":
            spark.sql(f"INSERT INTO {table} BY NAME {sql}")
        elif way == "append":
            frame.writeTo(table).append()
        else:
            key = frame.columns[0]
            spark.sql(
                f"MERGE INTO {table} AS target USING ({sql}) AS source "
                f"ON target.{key} = source.{key} WHEN NOT MATCHED THEN INSERT *"
            )


if kind != "iceberg":
    spark.sql("CREATE DATABASE IF NOT EXISTS out")
for number, query in enumerate(plan["queries"]):
    if kind == "iceberg":
        spark.sql(f"USE lakehouse.{query['home']}")
    else:
        for table in query["tables"]:
            frame = spark.read.format(kind).load(f"{lake}/{query['home']}/{table}")
            frame.createOrReplaceTempView(table)
    open(lake / "begun", "ab").close()
    way = plan["way"] or WAYS[kind][number % len(WAYS[kind])]
    print(f"{query['name']}: {way}", flush=True)
    write(way, query)
    open(lake / "ended", "ab").close()
spark.stop()
