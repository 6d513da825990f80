"""Writes one output and is killed in the middle of the second, as an out-of-memory killer does it.

What it is for: the events simply stop. There is no end of the second action and none of the
application, and the last line may be torn. The second action has read customers by then.

Truth of the failed task
  inputs         orders (dt=2024-05-06), customers
  intermediates  none
  outputs        good_orders, written as a whole
                 slow_customers: attempted, nothing committed
  columns        good_orders.order_id <- orders.order_id (identity)
                 good_orders.amount <- orders.amount (identity)
"""

import os
import signal
import sys
import threading
import time

from pyspark.sql import SparkSession, functions
from pyspark.sql.types import StringType


@functions.udf(StringType())
def slow(name: str) -> str:
    """Take longer than the application lives."""
    time.sleep(20)
    return name


def main(lake: str) -> None:
    """Write the orders, begin to write the customers, kill the JVM."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.read.schema("order_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    orders.write.parquet(f"{lake}/good_orders")

    customers = spark.read.schema("customer_id long, name string").parquet(f"{lake}/customers")
    slow_customers = customers.select("customer_id", slow("name").alias("name"))
    threading.Thread(
        target=slow_customers.write.parquet, args=[f"{lake}/slow_customers"], daemon=True
    ).start()
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)
    # The listener is behind the scheduler; what it reports of the second action must be there.
    time.sleep(3)

    # spark-submit's JVM is the parent of this process.
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
