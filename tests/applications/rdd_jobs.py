"""Leaves the DataFrame API twice: text files written by an RDD, and a frame made of one.

What it is for: events of RDD jobs (datasets without facets, the real partitions as locations) and
a SQL execution below which there is an RDD (inputs, but no column lineage).

Truth
  inputs         orders (dt=2024-05-06 for the text, dt=2024-05-07 for the frame)
  intermediates  none
  outputs        order_lines, order_frame, both as a whole
  columns        order_frame.order_id <- orders.order_id, order_frame.amount <- orders.amount
                 (identity); not in the events
"""

import sys

from pyspark.sql import SparkSession


def main(lake: str) -> None:
    """Write one day as text, another as parquet, both by way of an RDD."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, amount double, dt string").parquet(f"{lake}/orders")

    day = orders.where("dt = '2024-05-06'")
    day.rdd.map(lambda row: f"{row.order_id};{row.amount}").saveAsTextFile(f"{lake}/order_lines")

    next_day = orders.where("dt = '2024-05-07'").select("order_id", "amount")
    next_day.rdd.map(tuple).toDF("order_id long, amount double").write.parquet(
        f"{lake}/order_frame"
    )


if __name__ == "__main__":
    main(sys.argv[1])
