"""Columns and folders with dots, spaces, quotes and letters of other alphabets, staged and read.

What it is for: names that Spark quotes, that look nested, or that differ in case between the write
and the read. Parquet keeps the case of the write, Spark finds a column by any.

Truth
  inputs         customers
  intermediates  staging/Übergabe 1
  outputs        out/a name, staging/Übergabe 1
  columns        "out/a name"."full name" <- customers.name (identity)
                 "out/a name"."größe" <- customers.segment (transformation)
                 "out/a name"."a.b" <- customers.email (identity)
                 "out/a name"."tick`s" <- customers.customer_id (transformation)
                 "out/a name"."select" <- customers.segment (identity)
                 "out/a name"."shout" <- customers.name (transformation)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Stage under odd names, read back under other cases, write."""
    spark = SparkSession.builder.getOrCreate()
    customers = spark.read.schema(
        "customer_id long, name string, email string, segment string"
    ).parquet(f"{lake}/customers")
    customers.select(
        functions.col("name").alias("full name"),
        functions.length("segment").alias("größe"),
        functions.col("email").alias("a.b"),
        (functions.col("customer_id") + 1).alias("tick`s"),
        functions.col("segment").alias("select"),
        functions.upper("name").alias("Shout"),
    ).write.mode("overwrite").parquet(f"{lake}/staging/Übergabe 1")

    staged = spark.read.schema(
        "`full name` string, `größe` int, `a.b` string, `tick``s` long, `select` string, "
        "shout string"
    ).parquet(f"{lake}/staging/Übergabe 1")
    staged.write.mode("overwrite").parquet(f"{lake}/out/a name")


if __name__ == "__main__":
    main(sys.argv[1])
