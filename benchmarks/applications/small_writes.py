"""Fifty small partitioned appends to five tables; writes how long they took, without the start."""

from __future__ import annotations

import sys
import time
from pathlib import Path

WRITES = 50
TABLES = 5


def main(lake: Path) -> None:
    """Make the writes, and note the seconds next to the lake."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    begun = time.perf_counter()
    for number in range(WRITES):
        rows = spark.range(20).selectExpr("id", "id % 2 as region", f"{number} as day").coalesce(1)
        writer = rows.write.mode("append").partitionBy("day", "region")
        writer.parquet(str(lake / f"table{number % TABLES}"))
    seconds = time.perf_counter() - begun
    (lake.parent / "seconds").write_text(str(seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
