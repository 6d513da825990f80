"""Appends to data of an earlier application, then reads all of it and writes a report.

What it is for: a dataset that was written before it was read, and is an input nevertheless. Once as
a path, once as a table, where CREATE is reported twice though nothing was created: by CREATE TABLE
over data that is there, and by the outer execution of saveAsTable.

Truth
  inputs         orders (dt=2024-05-06)
                 ledger_path, ledger_table: entries of the earlier application
  intermediates  none
  outputs        ledger_path, ledger_table (appended to), reports/path, reports/table
  columns        ledger_*.order_id <- orders.order_id, ledger_*.amount <- orders.amount (identity)
                 reports/*.total <- ledger_*.amount (aggregation)
                 reports/*.total <- orders.amount, through what was appended (aggregation)
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions

LEDGER = "order_id long, amount double"


def report(ledger: DataFrame, path: str) -> None:
    """Write the sum over a full ledger."""
    ledger.agg(functions.sum("amount").alias("total")).write.parquet(path)


def main(lake: str) -> None:
    """Append the day's orders to both ledgers and report on each."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema(LEDGER).parquet(f"{lake}/orders/dt=2024-05-06")

    orders.write.mode("append").parquet(f"{lake}/ledger_path")
    report(spark.read.schema(LEDGER).parquet(f"{lake}/ledger_path"), f"{lake}/reports/path")

    spark.sql(
        "CREATE TABLE ledger_table (order_id BIGINT, amount DOUBLE) USING parquet "
        f"LOCATION '{lake}/ledger_table'"
    )
    orders.write.saveAsTable("ledger_table", mode="append")
    report(spark.table("ledger_table"), f"{lake}/reports/table")


if __name__ == "__main__":
    main(sys.argv[1])
