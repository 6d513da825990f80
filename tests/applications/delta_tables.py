"""Writes, appends to, merges into and reads a Delta table by its path.

What it is for: with Delta there is no RUNNING, CREATE is reported for an append, and a path has no
version. An ordinary write whose plan has a shuffle is not announced at all: revenue_report is
written and no event reports it. MERGE does not name its source as an input.

Truth
  inputs         orders (dt=2024-05-05 for the creation, dt=2024-05-06 for the rest)
  intermediates  none that disappears: what MERGE, the copy and the report read of delta/revenue was
                 written here, so these reads are internal
  outputs        delta/revenue, partitioned by dt: 2024-05-05 created, 2024-05-06 appended, then
                 merged into
                 revenue_copy, as a whole
                 revenue_report, as a whole; not in the events
  columns        revenue.region <- orders.region (identity)
                 revenue.amount <- orders.amount (aggregation when created, identity when appended,
                 transformation when merged), revenue.amount (when merged)
                 revenue.dt <- nothing, a literal
                 revenue_copy.region <- orders.region, revenue_copy.amount <- orders.amount,
                 both through revenue
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions

MERGE = """
    MERGE INTO delta.`{table}` AS t USING corrections AS c
    ON t.dt = c.dt AND t.region = c.region
    WHEN MATCHED THEN UPDATE SET amount = t.amount + c.amount
    WHEN NOT MATCHED THEN INSERT *
"""


def main(lake: str) -> None:
    """Write, append, merge, copy, report."""
    spark = SparkSession.builder.getOrCreate()
    table = f"{lake}/delta/revenue"

    def sales(day: str) -> DataFrame:
        orders = spark.read.schema("region string, amount double").parquet(
            f"{lake}/orders/dt={day}"
        )
        return orders.where("amount > 0").withColumn("dt", functions.lit(day))

    by_region = sales("2024-05-05").groupBy("region", "dt")
    totals = by_region.agg(functions.sum("amount").alias("amount"))
    totals.write.format("delta").partitionBy("dt").save(table)
    sales("2024-05-06").write.format("delta").mode("append").save(table)

    sales("2024-05-06").createOrReplaceTempView("corrections")
    spark.sql(MERGE.format(table=table))

    revenue = spark.read.format("delta").load(table).where("dt = '2024-05-06'")
    revenue.select("region", "amount").write.mode("overwrite").parquet(f"{lake}/revenue_copy")
    report = revenue.groupBy("region").agg(functions.sum("amount").alias("total"))
    report.write.mode("overwrite").parquet(f"{lake}/revenue_report")


if __name__ == "__main__":
    main(sys.argv[1])
