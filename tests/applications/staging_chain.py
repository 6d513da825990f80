"""A day's revenue by way of a staging folder: the demo in small.

What it is for: composing column lineage over two actions, and finding that the staging folder is
no input. Its schema is inferred, which starts RDD jobs that are no actions.

Truth
  inputs         orders (dt=2024-05-06), customers, rates (month=2024-05)
  intermediates  staging/enriched_orders
  outputs        revenue (dt=2024-05-06)
  columns        revenue.segment <- customers.segment (identity)
                 revenue.revenue <- orders.amount, rates.rate (aggregation of a transformation)
                 both depend on orders.amount and rates.currency (filters), orders.customer_id
                 and customers.customer_id (join), customers.segment (grouping)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Enrich the day's orders into the staging folder, then aggregate what is there."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.read.parquet(f"{lake}/orders/dt=2024-05-06").where("amount > 0")
    customers = spark.read.parquet(f"{lake}/customers")
    rates = spark.read.parquet(f"{lake}/rates/month=2024-05").where("currency = 'EUR'")
    (
        orders.join(customers, "customer_id")
        .crossJoin(rates)
        .select(
            "order_id",
            "segment",
            (functions.col("amount") * functions.col("rate")).alias("amount_eur"),
        )
        .write.mode("overwrite")
        .parquet(f"{lake}/staging/enriched_orders")
    )

    (
        spark.read.parquet(f"{lake}/staging/enriched_orders")
        .groupBy("segment")
        .agg(functions.sum("amount_eur").alias("revenue"))
        .write.mode("overwrite")
        .parquet(f"{lake}/revenue/dt=2024-05-06")
    )


if __name__ == "__main__":
    main(sys.argv[1])
