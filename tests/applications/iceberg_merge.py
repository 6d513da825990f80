"""Every way to change an Iceberg table, then a report on it.

What it is for: the table as an input on START and COMPLETE but not on RUNNING, snapshot ids as
`version`, metadata columns in row-level commands, column lineage that MERGE and UPDATE get wrong,
filters that vanish because Iceberg takes all of them.

Truth
  inputs         orders (dt=2024-05-05 for the creation, dt=2024-05-06 for the rest)
  intermediates  none that disappears: what the row-level commands and the report read of
                 iceberg/shop/revenue was written here, so these reads are internal
  outputs        iceberg/shop/revenue, table shop.revenue, partitioned by dt: 2024-05-05 created and
                 deleted; 2024-05-06 appended, overwritten, merged into, updated
                 revenue_report, as a whole
  columns        revenue.region <- orders.region (identity)
                 revenue.amount <- orders.amount (aggregation when created, identity when appended,
                 transformation when merged), revenue.amount (when merged, updated)
                 revenue.dt <- nothing, a literal
                 revenue_report.region <- orders.region, through revenue.region
                 revenue_report.total <- orders.amount, through revenue.amount (aggregation)
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions

TABLE = "lakehouse.shop.revenue"
MERGE = """
    MERGE INTO lakehouse.shop.revenue AS t USING corrections AS c
    ON t.dt = c.dt AND t.region = c.region
    WHEN MATCHED THEN UPDATE SET amount = t.amount + c.amount
    WHEN NOT MATCHED THEN INSERT *
"""
UPDATE = """
    UPDATE lakehouse.shop.revenue SET amount = amount * 2
    WHERE dt = '2024-05-06' AND region = 'eu'
"""
DELETE = "DELETE FROM lakehouse.shop.revenue WHERE dt = '2024-05-05'"


def main(lake: str) -> None:
    """Create, append, overwrite partitions, merge, update, delete, read."""
    spark = SparkSession.builder.getOrCreate()

    def sales(day: str) -> DataFrame:
        orders = spark.read.schema("region string, amount double").parquet(
            f"{lake}/orders/dt={day}"
        )
        return orders.where("amount > 0").withColumn("dt", functions.lit(day))

    by_region = sales("2024-05-05").groupBy("region", "dt")
    totals = by_region.agg(functions.sum("amount").alias("amount"))
    totals.select("region", "amount", "dt").writeTo(TABLE).partitionedBy("dt").create()
    sales("2024-05-06").writeTo(TABLE).append()
    sales("2024-05-06").writeTo(TABLE).overwritePartitions()

    sales("2024-05-06").createOrReplaceTempView("corrections")
    spark.sql(MERGE)
    spark.sql(UPDATE)
    spark.sql(DELETE)

    revenue = spark.table(TABLE).where("dt = '2024-05-06'").groupBy("region")
    report = revenue.agg(functions.sum("amount").alias("total"))
    report.write.mode("overwrite").parquet(f"{lake}/revenue_report")


if __name__ == "__main__":
    main(sys.argv[1])
