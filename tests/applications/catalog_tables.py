"""Tables of the session catalog, written in the four usual ways.

What it is for: one write of a table is announced by two nested executions (inner insert, outer
create); the merge must see one write, with the inner execution's lineage and lifecycle and the
outer one's table name. The outer one reports CREATE whatever happens.

Truth
  inputs         orders (dt=2024-05-06 for three writes, dt=2024-05-07 for the append)
  intermediates  none
  outputs        warehouse/paid_orders, table default.paid_orders: CREATE TABLE ... AS SELECT
                 warehouse/region_totals, table default.region_totals: created, overwritten, then
                 appended to by saveAsTable
  columns        paid_orders.order_id <- orders.order_id (identity)
                 paid_orders.amount <- orders.amount (identity)
                 region_totals.region <- orders.region (identity)
                 region_totals.amount <- orders.amount (aggregation; the sum of one day, then the
                 maximum of the next)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Create a table by SQL; create, overwrite and append to another by saveAsTable."""
    spark = SparkSession.builder.getOrCreate()
    schema = "order_id long, amount double, region string"
    orders = spark.read.schema(schema).parquet(f"{lake}/orders/dt=2024-05-06")

    orders.createOrReplaceTempView("orders")
    spark.sql(
        "CREATE TABLE paid_orders USING parquet AS "
        "SELECT order_id, amount FROM orders WHERE amount > 0"
    )

    sums = orders.groupBy("region").agg(functions.sum("amount").alias("amount"))
    sums.write.saveAsTable("region_totals", format="parquet")
    sums.write.saveAsTable("region_totals", format="parquet", mode="overwrite")

    next_day = spark.read.schema(schema).parquet(f"{lake}/orders/dt=2024-05-07")
    (
        next_day.groupBy("region")
        .agg(functions.max("amount").alias("amount"))
        .write.saveAsTable("region_totals", format="parquet", mode="append")
    )


if __name__ == "__main__":
    main(sys.argv[1])
