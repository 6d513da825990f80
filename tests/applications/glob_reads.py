"""Stages days in folders, and reads some of them back through globs and lists of paths.

What it is for: a glob names a part of a dataset, and the sizes that the listener reports of it
are no proof for all of it. One folder held an earlier day that the application did not write.

Truth
  inputs         orders (all three days), sales_append (dt=2024-05-03, through the last glob)
  intermediates  staging/days (dt=2024-05-05 to dt=2024-05-07)
  outputs        staging/days, sales_append (dt=2024-05-06 added), reports/two_days, reports/listed,
                 reports/mixed
  columns        reports/*.amount <- orders.amount (identity)
                 reports/mixed.amount <- sales_append.amount (identity)
"""

import sys

from pyspark.sql import SparkSession

SCHEMA = "region string, amount double"


def main(lake: str) -> None:
    """Stage day by day, then report on some days."""
    spark = SparkSession.builder.getOrCreate()
    days = "2024-05-05", "2024-05-06", "2024-05-07"
    for day in days:
        orders = spark.read.schema(SCHEMA).parquet(f"{lake}/orders/dt={day}")
        orders.write.mode("overwrite").parquet(f"{lake}/staging/days/dt={day}")
    staged = spark.read.schema(SCHEMA)
    staged.parquet(f"{lake}/staging/days/dt=2024-05-0[56]").write.parquet(
        f"{lake}/reports/two_days"
    )
    staged.parquet(*(f"{lake}/staging/days/dt={day}" for day in days[:2])).write.parquet(
        f"{lake}/reports/listed"
    )

    orders = spark.read.schema(SCHEMA).parquet(f"{lake}/orders/dt=2024-05-06")
    orders.write.mode("overwrite").parquet(f"{lake}/sales_append/dt=2024-05-06")
    staged.parquet(f"{lake}/sales_append/dt=2024-05-0[36]").write.parquet(f"{lake}/reports/mixed")


if __name__ == "__main__":
    main(sys.argv[1])
