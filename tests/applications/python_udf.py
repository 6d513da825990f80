"""A Python function as a column, and inside of a larger expression.

What it is for: the listener cannot look into Python functions. The column that is one is missing
from the column lineage, and the column that contains one is silently incomplete; `pythonUDF0` in
its description gives it away.

Truth
  inputs         orders (dt=2024-05-06)
  intermediates  none
  outputs        scored_orders, as a whole
  columns        scored_orders.order_id <- orders.order_id (identity)
                 scored_orders.score <- orders.amount (through the Python function)
                 scored_orders.shifted <- orders.amount (through the Python function)
                 scored_orders.shifted <- orders.customer_id (transformation)
"""

import sys

from pyspark.sql import SparkSession, functions
from pyspark.sql.types import DoubleType


@functions.udf(DoubleType())
def score(amount: float) -> float:
    """Stand for anything that is easier to say in Python."""
    return amount / 100


def main(lake: str) -> None:
    """Write a scored column and one that mixes the score with another column."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, customer_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )

    orders.select(
        "order_id",
        score("amount").alias("score"),
        (score("amount") + functions.col("customer_id")).alias("shifted"),
    ).write.parquet(f"{lake}/scored_orders")


if __name__ == "__main__":
    main(sys.argv[1])
