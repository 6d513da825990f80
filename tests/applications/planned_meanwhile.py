"""One thread runs a query that Spark plans for six seconds; another one writes ten times meanwhile.

What it is for: Spark 4 stamps the start of an execution, plans it and reports it then. In the event
file this start stands after the ends of other writes, which are seconds later. Nobody put a clock
back, and each read and write has its partitions. A plan of thousands of expressions takes as long;
here an expression over rows that are in the query itself sleeps, and Spark evaluates it to plan.

Truth
  inputs         orders (dt=2024-05-06), sales_session (dt=2024-05-04)
  intermediates  none
  outputs        planned, as a whole, and small (day=0 to day=9)
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

SLEEPS = "select reflect('java.lang.Thread', 'sleep', 6000L) as slept from values (1) as row(n)"


def main(lake: str) -> None:
    """Write what is planned, and the small ones at the same time."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.parquet(f"{lake}/orders").where("dt = '2024-05-06'")
    planned = orders.select("order_id", "amount").crossJoin(spark.sql(SLEEPS))
    sales = spark.read.parquet(f"{lake}/sales_session").where("dt = '2024-05-04'")
    sales.write.parquet(f"{lake}/small/day=0")  # the first one takes longest
    together = threading.Barrier(2)

    def plan() -> None:
        together.wait()
        planned.write.parquet(f"{lake}/planned")

    def write() -> None:
        together.wait()
        for day in range(1, 10):
            sales.write.parquet(f"{lake}/small/day={day}")

    with ThreadPoolExecutor(max_workers=2) as threads:
        both = [threads.submit(plan), threads.submit(write)]
    for finished in both:
        finished.result()


if __name__ == "__main__":
    main(sys.argv[1])
