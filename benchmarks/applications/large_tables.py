"""Reads 10,000 partitions of one table, and appends to another one that has 100,000."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SELECTED = 10_000
DIRECTORIES = 100_000


def main(lake: Path) -> None:
    """Make both tables without Spark, then read or append to each with one query."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    one_row = spark.range(1).coalesce(1)
    one_row.write.parquet(str(lake / "row"))
    [row] = (lake / "row").glob("*.parquet")
    for number in range(SELECTED):
        partition = lake / "large" / f"p={number}"
        partition.mkdir(parents=True)
        os.link(row, partition / row.name)
    for number in range(DIRECTORIES):
        (lake / "huge" / f"p={number}").mkdir(parents=True)

    large = spark.read.schema("id long, p int").parquet(str(lake / "large"))
    large.where("p >= 0 and id < 0").write.format("noop").mode("overwrite").save()
    added = one_row.selectExpr("id", "-1 as p")
    added.write.mode("append").partitionBy("p").parquet(str(lake / "huge"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
