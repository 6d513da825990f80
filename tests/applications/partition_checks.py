"""One day of four kinds of tables, read and written; the tests have what was expected of it.

`prepare_lakes.py` lays out three days of the sources. Truth of the day's work, for each of `path`,
`delta`, `iceberg` and `table`
  inputs   <kind>_orders, only 2024-05-06
  outputs  <kind>_revenue, only 2024-05-06

Paths and the catalog's table are partitioned by a text `dt`, Delta by a date `dt`, and Iceberg by
`days(ts)`; `path_months` is read at the integer `month` 5, whose folder is `month=05`. Kinds are
left out whose connector Spark was not given.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

DAYS = ("2024-05-05", "2024-05-06", "2024-05-07")
COLUMNS = "amount int, dt string, ts timestamp"


def has(spark: SparkSession, connector: str) -> bool:
    """Return whether Spark was given a connector."""
    return connector in spark.conf.get("spark.sql.extensions", "")


def prepare(spark: SparkSession, lake: Path) -> None:
    """Write three days of each source."""
    rows = ", ".join(f"({n}, '{d}', timestamp '{d} 10:00:00')" for n, d in enumerate(DAYS))
    spark.sql(f"select * from values {rows} as t(amount, dt, ts)").createOrReplaceTempView("days")
    days = spark.table("days").coalesce(1)
    days.write.partitionBy("dt").parquet(f"{lake}/path_orders")
    days.write.partitionBy("dt").parquet(f"{lake}/table_orders")
    days.selectExpr("amount", "'05' as month").write.partitionBy("month").parquet(
        f"{lake}/path_months"
    )
    if has(spark, "delta"):
        dated = days.selectExpr("amount", "cast(dt as date) as dt")
        dated.write.format("delta").partitionBy("dt").save(f"{lake}/delta_orders")
    if has(spark, "iceberg"):
        for table in ("iceberg_orders", "iceberg_revenue"):
            spark.sql(
                f"create table lakehouse.db.{table} (amount int, ts timestamp) using iceberg "
                "partitioned by (days(ts))"
            )
        spark.sql("insert into lakehouse.db.iceberg_orders select amount, ts from days order by ts")


def work(spark: SparkSession, lake: Path) -> None:
    """Read and write one day, table by table."""
    day = "dt = '2024-05-06'"
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    orders = spark.read.schema(COLUMNS).parquet(f"{lake}/path_orders").where(day)
    orders.write.mode("overwrite").partitionBy("dt").parquet(f"{lake}/path_revenue")

    spark.sql(
        f"create table table_orders ({COLUMNS}) using parquet partitioned by (dt) "
        f"location '{lake}/table_orders'"
    )
    spark.sql("msck repair table table_orders")
    spark.sql(
        "create table table_revenue (amount int, dt string) using parquet partitioned by (dt)"
    )
    spark.sql(f"insert into table_revenue select amount, dt from table_orders where {day}")

    if has(spark, "delta"):
        delta = spark.read.format("delta").load(f"{lake}/delta_orders").where(day)
        delta.write.format("delta").mode("append").partitionBy("dt").save(f"{lake}/delta_revenue")

    if has(spark, "iceberg"):
        spark.sql(
            "insert into lakehouse.db.iceberg_revenue select amount, ts from "
            "lakehouse.db.iceberg_orders where ts >= '2024-05-06' and ts < '2024-05-07'"
        )

    months = spark.read.parquet(f"{lake}/path_months").where("month = 5").drop("month")
    months.write.mode("overwrite").parquet(f"{lake}/path_report")


if __name__ == "__main__":
    work(SparkSession.builder.getOrCreate(), Path(sys.argv[1]))
