"""A cached join, used by one output as a temporary view and by another as a frame.

What it is for: column lineage through cached data and view names; both outputs come from the same
two inputs, and the view is no dataset.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  none
  outputs        segment_totals, order_names, both as a whole
  columns        segment_totals.segment <- customers.segment (identity)
                 segment_totals.amount <- orders.amount (aggregation)
                 order_names.order_id <- orders.order_id (identity)
                 order_names.name <- customers.name (identity)
                 all depend on orders.amount (filter), orders.customer_id and customers.customer_id
                 (join); those of segment_totals on customers.segment (grouping)
"""

import sys

from pyspark.sql import SparkSession


def main(lake: str) -> None:
    """Join and cache once, write twice."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, customer_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    customers = spark.read.schema("customer_id long, name string, segment string").parquet(
        f"{lake}/customers"
    )
    paid_orders = orders.where("amount > 0").join(customers, "customer_id").cache()

    paid_orders.createOrReplaceTempView("paid_orders")
    spark.sql(
        "SELECT segment, sum(amount) AS amount FROM paid_orders GROUP BY segment"
    ).write.parquet(f"{lake}/segment_totals")

    paid_orders.select("order_id", "name").write.parquet(f"{lake}/order_names")


if __name__ == "__main__":
    main(sys.argv[1])
