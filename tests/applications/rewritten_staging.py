"""Staging data that is overwritten between two reads of it: folders, a table, a database table.

What it is for: a read resolves to the write before it and to no older one. Of three kinds: a
folder; a folder with a column that is a literal, of which the events do not show that it was
overwritten as a whole, but the sizes do; a table of the catalog, whose reads have no size of files.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  staging/labels, staging/sourced, warehouse/staged_labels
  outputs        reports/<kind>_of_orders, reports/<kind>_of_customers and the intermediates
  columns        reports/*_of_orders.label <- orders.region, and nothing of customers
                 reports/*_of_customers.label <- customers.segment (transformation), and nothing of
                 orders
                 reports/sourced_*.source <- nothing, a literal
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions


def main(lake: str) -> None:
    """Stage labels of orders, report, stage labels of customers in the same place, report."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("region string").parquet(f"{lake}/orders/dt=2024-05-06")
    customers = spark.read.schema("segment string").parquet(f"{lake}/customers")
    labels = {
        "orders": orders.select(functions.col("region").alias("label")),
        "customers": customers.select(functions.upper("segment").alias("label")),
    }

    def report(staged: DataFrame, name: str) -> None:
        staged.write.mode("overwrite").parquet(f"{lake}/reports/{name}")

    for of, frame in labels.items():
        frame.write.mode("overwrite").parquet(f"{lake}/staging/labels")
        report(
            spark.read.schema("label string").parquet(f"{lake}/staging/labels"), f"labels_of_{of}"
        )

        sourced = frame.withColumn("source", functions.lit(of))
        sourced.write.mode("overwrite").parquet(f"{lake}/staging/sourced")
        staged = spark.read.schema("label string, source string").parquet(f"{lake}/staging/sourced")
        report(staged, f"sourced_of_{of}")

        frame.write.saveAsTable("staged_labels", format="parquet", mode="overwrite")
        report(spark.table("staged_labels"), f"tables_of_{of}")


if __name__ == "__main__":
    main(sys.argv[1])
