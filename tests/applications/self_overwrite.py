"""Rewrites a dataset in place by way of a staging folder: Spark cannot overwrite what it reads.

What it is for: one dataset is input and output of the same task; only the staging folder is an
intermediate. The column lineage is a cycle between datasets, but not in time.

Truth
  inputs         customers, as it was before
  intermediates  staging/customers
  outputs        customers, overwritten as a whole
  columns        customers.customer_id <- customers.customer_id (identity)
                 customers.name <- customers.name (identity)
                 customers.segment <- customers.segment (transformation)
                 customers.email is dropped
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Clean the customers into the staging folder, then overwrite the original from there."""
    spark = SparkSession.builder.getOrCreate()

    customers = spark.read.parquet(f"{lake}/customers")
    upper_segment = functions.upper("segment").alias("segment")
    cleaned = customers.select("customer_id", "name", upper_segment)
    cleaned.write.mode("overwrite").parquet(f"{lake}/staging/customers")

    cleaned = spark.read.parquet(f"{lake}/staging/customers")
    cleaned.write.mode("overwrite").parquet(f"{lake}/customers")


if __name__ == "__main__":
    main(sys.argv[1])
