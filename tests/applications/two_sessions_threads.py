"""Two threads, each with a session of its own, write two outputs at the same time.

What it is for: the events of two actions interleave, out of order, and the statistics in COMPLETE
may be missing, or be those of the other action. Each output has its own input, and only that. Both
sessions set the overwrite mode, one to dynamic; only the RUNNING of a job's start knows it.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  none
  outputs        order_copy (811 bytes), customer_copy (787 bytes), both as a whole
  columns        order_copy.order_id <- orders.order_id (identity)
                 order_copy.amount <- orders.amount (identity)
                 customer_copy.customer_id <- customers.customer_id (identity)
                 customer_copy.name <- customers.name (identity)
                 nothing of one copy comes from the other's input
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

ORDERS = "order_id long, amount double"
CUSTOMERS = "customer_id long, name string"


def main(lake: str) -> None:
    """Start both copies together and wait for both."""
    spark = SparkSession.builder.getOrCreate()
    together = threading.Barrier(2)

    def copy(source: str, schema: str, target: str, overwrite_mode: str) -> None:
        session = spark.newSession()
        session.conf.set("spark.sql.sources.partitionOverwriteMode", overwrite_mode)
        frame = session.read.schema(schema).parquet(f"{lake}/{source}")
        together.wait()
        frame.write.parquet(f"{lake}/{target}")

    with ThreadPoolExecutor(max_workers=2) as threads:
        copies = [
            threads.submit(copy, "orders/dt=2024-05-06", ORDERS, "order_copy", "dynamic"),
            threads.submit(copy, "customers", CUSTOMERS, "customer_copy", "static"),
        ]
    for finished in copies:
        finished.result()


if __name__ == "__main__":
    main(sys.argv[1])
