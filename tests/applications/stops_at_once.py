"""Reads a Delta table again and again, and stops its SparkContext at once.

What it is for: OpenLineage's listener runs a Spark job to count the files of a Delta table. If it
lags behind when the context stops, Spark waits for the listener, and the listener for its job,
which a context that stops does not run any more.
"""

import sys

from pyspark.sql import SparkSession

READS = 12


def main(lake: str) -> None:
    """Write a table, and write sums of it to other tables, faster than the listener follows."""
    spark = SparkSession.builder.getOrCreate()
    spark.range(100).write.format("delta").save(f"{lake}/numbers")
    for number in range(READS):
        rows = spark.read.format("delta").load(f"{lake}/numbers").where(f"id > {number}")
        rows.groupBy().sum("id").write.format("noop").mode("overwrite").save()
        rows.write.format("delta").mode("append").save(f"{lake}/copy{number % 3}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
