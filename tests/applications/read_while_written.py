"""Reads a ledger while another thread of the application appends to it, and again afterwards.

What it is for: an action resolves to what was finished before it began. The first report cannot
hold what the append was still writing; the second one does.

Truth
  inputs         orders (dt=2024-05-06), ledger_path
  intermediates  none: the ledger held entries of an earlier application
  outputs        ledger_path (appended to), reports/meanwhile, reports/afterwards
  columns        ledger_path.order_id <- orders.order_id, ledger_path.amount <- orders.amount
                 reports/meanwhile.total <- ledger_path.amount (aggregation), not orders.amount
                 reports/afterwards.total <- ledger_path.amount and orders.amount (aggregation)
"""

import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession, functions

LEDGER = "order_id long, amount double"
PATIENCE_SECONDS = 120


def wait_for(file: Path) -> None:
    """Wait until there is a file, and not for ever."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not file.exists():
        if time.monotonic() > until:
            message = f"{file} did not come"
            raise TimeoutError(message)
        time.sleep(0.05)


def main(lake: str) -> None:
    """Hold the append until the first report is written."""
    spark = SparkSession.builder.getOrCreate()
    writing, reported = Path(lake, "writing"), Path(lake, "reported")

    @functions.udf("boolean")
    def once_reported(_: int) -> bool:
        writing.touch()
        wait_for(reported)
        return True

    def append() -> None:
        orders = spark.read.schema(LEDGER).parquet(f"{lake}/orders/dt=2024-05-06")
        held = orders.where(once_reported("order_id"))
        held.write.mode("append").parquet(f"{lake}/ledger_path")

    def report(name: str) -> None:
        ledger = spark.read.schema(LEDGER).parquet(f"{lake}/ledger_path")
        total = ledger.agg(functions.sum("amount").alias("total"))
        total.write.mode("overwrite").parquet(f"{lake}/reports/{name}")

    appending = threading.Thread(target=append)
    appending.start()
    wait_for(writing)
    report("meanwhile")
    reported.touch()
    appending.join()
    report("afterwards")


if __name__ == "__main__":
    main(sys.argv[1])
