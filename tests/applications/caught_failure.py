"""A write that fails and is caught, then a good write to another place: spark-submit ends with 0.

What it is for: the outputs of failed actions are not outputs of a successful task.

Truth
  inputs         orders (dt=2024-05-06)
  intermediates  none
  outputs        lenient_orders, as a whole; not strict_orders, where nothing was committed
  columns        lenient_orders.order_id <- orders.order_id (identity)
                 lenient_orders.amount <- orders.amount (transformation)
"""

import contextlib
import sys

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Try the strict way, fall back on the lenient one."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.schema("order_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    amount = functions.col("amount")

    strict = functions.when(amount < 0, functions.raise_error(functions.lit("negative"))).otherwise(
        amount
    )
    # Which of the two it is depends on how deep in the JVM the task's error is found.
    with contextlib.suppress(PySparkException, Py4JJavaError):
        orders.select("order_id", strict.alias("amount")).write.parquet(f"{lake}/strict_orders")

    lenient = functions.greatest(amount, functions.lit(0.0))
    orders.select("order_id", lenient.alias("amount")).write.parquet(f"{lake}/lenient_orders")


if __name__ == "__main__":
    main(sys.argv[1])
