"""Hive tables, V2 file scans, streams, equal writes at once; then many queries in a row.

It needs no connector, so it runs on each Spark, with a Hive metastore in the scratch folder.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import planted
from planted import case
from pyspark.sql import SparkSession

LAKE = Path(sys.argv[1])
DAYS = ["2024-05-05", "2024-05-06", "2024-05-07"]
REGIONS = ["us", "eu", "a b/c=d%", None]
ALL = [{"dt": d, "region": r} for d in DAYS for r in REGIONS]
TODAY = [p for p in ALL if p["dt"] == "2024-05-06"]
TODAY_US = [{"dt": "2024-05-06", "region": "us"}]
QUERIES = 150

spark = SparkSession.builder.getOrCreate()


def orders(rows=None):
    values = rows or [(i + 1, d, r) for i, d in enumerate(DAYS) for r in REGIONS]
    return spark.createDataFrame(values, "amount int, dt string, region string").coalesce(1)


def view(name, frame):
    frame.createOrReplaceTempView(name)
    return name


def sink(frame):
    frame.write.format("noop").mode("overwrite").save()


# --- Hive: a text table, which only Hive itself reads and writes ----------------------------------


@case(writes=["warehouse/texts"], modes={"warehouse/texts": "append"})
def hive_text_insert():
    spark.sql("set hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(
        "create table texts (amount int) partitioned by (dt string, region string) "
        "stored as textfile"
    )
    spark.sql(f"insert into texts select * from {view('v', orders())}")


@case(reads={"warehouse/texts": TODAY})
def hive_text_filtered():
    sink(spark.table("texts").where("dt = '2024-05-06'"))


@case(reads={"warehouse/texts": ALL})
def hive_text_whole():
    sink(spark.table("texts"))


@case(reads={"warehouse/texts": [{"dt": d, "region": None} for d in DAYS]})
def hive_text_null_partition():
    sink(spark.table("texts").where("region = '__HIVE_DEFAULT_PARTITION__' or region is null"))


@case(reads={"warehouse/texts": [{"dt": "2024-05-06", "region": "a b/c=d%"}]})
def hive_text_escaped_value():
    sink(spark.table("texts").where("dt = '2024-05-06' and region = 'a b/c=d%'"))


@case(reads={"warehouse/texts": []})
def hive_text_empty_selection():
    sink(spark.table("texts").where("dt = '1999-01-01'"))


@case(
    reads={"warehouse/texts": TODAY_US},
    writes=["warehouse/texts"],
    modes={"warehouse/texts": "static"},
)
def hive_text_static_overwrite():
    spark.sql(
        "insert overwrite texts partition (dt='2024-05-10', region='us') "
        "select amount from texts where dt='2024-05-06' and region='us'"
    )


@case(writes=["warehouse/texts"], modes={"warehouse/texts": "dynamic"})
def hive_text_dynamic_overwrite():
    rows = orders([(1, "x", "us"), (2, "x", "nowhere")])
    spark.sql(
        "insert overwrite texts partition (dt='2024-05-07', region) "
        f"select amount, region from {view('v', rows)}"
    )


@case(writes=["warehouse/texts"], modes={"warehouse/texts": "append"})
def hive_text_append_to_a_partition():
    spark.sql("insert into texts partition (dt='2024-05-05', region='us') select 7")


@case(writes=["warehouse/notes"], modes={"warehouse/notes": "whole"})
def hive_text_without_partitions():
    spark.sql("create table notes (amount int) stored as textfile")
    spark.sql("insert overwrite notes select 1")


@case(reads={"warehouse/notes": [{}]})
def hive_text_without_partitions_read():
    sink(spark.table("notes"))


# --- Hive: a Parquet table, which Spark reads and writes itself -----------------------------------


@case(writes=["warehouse/columns"], modes={"warehouse/columns": "append"})
def hive_parquet_insert():
    spark.sql(
        "create table columns (amount int) partitioned by (dt string, region string) "
        "stored as parquet"
    )
    spark.sql(f"insert into columns select * from {view('v', orders())}")


@case(reads={"warehouse/columns": TODAY_US})
def hive_parquet_filtered():
    sink(spark.table("columns").where("dt = '2024-05-06' and region = 'us'"))


@case(writes=["warehouse/columns"], modes={"warehouse/columns": "static"})
def hive_parquet_static_overwrite():
    spark.sql("insert overwrite columns partition (dt='2024-05-10', region='us') select 1")


@case(writes=["warehouse/columns"], modes={"warehouse/columns": "dynamic"})
def hive_parquet_dynamic_overwrite():
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    rows = orders([(1, "2024-05-11", "us")])
    spark.sql(f"insert overwrite columns select * from {view('v', rows)}")
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@case(
    writes=["warehouse/columns"],
    expected={"warehouse/columns": {"written": [{"dt": "2024-06-01", "region": "moved"}]}},
)
def hive_parquet_location_of_its_own():
    spark.sql(
        "alter table columns add partition (dt='2024-06-01', region='moved') "
        f"location '{LAKE}/elsewhere/moved'"
    )
    spark.sql("insert overwrite columns partition (dt='2024-06-01', region='moved') select 9")


@case(writes=["warehouse/columns"])
def hive_parquet_by_hive_itself():
    spark.conf.set("spark.sql.hive.convertMetastoreParquet", "false")
    spark.sql("insert overwrite columns partition (dt='2024-05-12', region) select 1, 'us'")
    spark.conf.unset("spark.sql.hive.convertMetastoreParquet")


# --- DataSource V2 of files -----------------------------------------------------------------------


def of_v2(folder, file_format="parquet"):
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    frame = spark.read.format(file_format).schema("amount int, dt string, region string")
    frame = frame.load(str(LAKE / folder))
    spark.conf.unset("spark.sql.sources.useV1SourceList")
    return frame


@case(writes=["orders", "lines", "days"])
def prepared_for_v2():
    orders().write.partitionBy("dt", "region").parquet(str(LAKE / "orders"))
    orders().write.partitionBy("dt").csv(str(LAKE / "lines"))
    orders().selectExpr("dt").write.parquet(str(LAKE / "days"))


@case(reads={"orders": ALL})
def v2_whole():
    sink(of_v2("orders"))


@case(reads={"orders": TODAY})
def v2_filtered():
    sink(of_v2("orders").where("dt = '2024-05-06'"))


@case(reads={"orders": [{"dt": "2024-05-06", "region": None}]})
def v2_null_partition():
    sink(of_v2("orders").where("dt = '2024-05-06' and region is null"))


@case(reads={"orders": [{"dt": "2024-05-06", "region": "a b/c=d%"}]})
def v2_escaped_value():
    sink(of_v2("orders").where("dt = '2024-05-06' and region = 'a b/c=d%'"))


@case(reads={"orders": []})
def v2_empty_selection():
    sink(of_v2("orders").where("dt = '1999-01-01'"))


@case(reads={"lines": [{"dt": "2024-05-06"}]})
def v2_text_format():
    sink(of_v2("lines", "csv").where("dt = '2024-05-06'"))


@case(reads={"days": [{}]})
def v2_without_partitions():
    sink(of_v2("days"))


# --- streams --------------------------------------------------------------------------------------


@case(writes=["landing"])
def landing():
    orders([(1, "2024-05-06", "us")]).write.parquet(str(LAKE / "landing"))


def stream(name, put):
    """Run all micro-batches that there are."""
    frame = spark.readStream.schema("amount int, dt string, region string")
    frame = frame.parquet(str(LAKE / "landing"))
    writer = frame.writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(LAKE.parent / "checkpoints" / name))
    query = put(writer)
    query.awaitTermination()


# What a stream reads, Spark reports to no QueryExecutionListener: the stream itself is asked.
@case(reads={"landing": [{}]}, writes=["batches"], modes={"batches": "append"})
def for_each_batch():
    def put(batch, number):
        batch.write.mode("append").partitionBy("dt", "region").parquet(str(LAKE / "batches"))

    stream("batches", lambda writer: writer.foreachBatch(put).start())


# --- equal writes at once -------------------------------------------------------------------------


@case(writes=["equal"], modes={"equal": "append"})
def equal_appends_at_once():
    """Two jobs share a temporary folder, and the first to end would delete that of the other."""

    def put():
        writer = orders([(1, "2024-05-06", "us"), (2, "2024-05-07", "eu")]).write.mode("append")
        writer = writer.option("mapreduce.fileoutputcommitter.algorithm.version", "2")
        writer = writer.option("mapreduce.fileoutputcommitter.cleanup.skipped", "true")
        writer.partitionBy("dt", "region").parquet(str(LAKE / "equal"))

    threads = [threading.Thread(target=put) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --------------------------------------------------------------------------------------------------


def many_queries():
    """More than the limit on the file's size lets the observer report."""
    frame = spark.read.schema("amount int, dt string, region string").parquet(str(LAKE / "orders"))
    frame = frame.where("dt = '2024-05-06' and region = 'us'")
    for _ in range(QUERIES):
        assert frame.count() == 1


if __name__ == "__main__":
    planted.run(LAKE, spark)
    many_queries()
    print("all queries ran", flush=True)
