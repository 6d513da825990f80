"""One write of two thousand partitions, each with a file of its own."""

from __future__ import annotations

import sys
from pathlib import Path

PARTITIONS = 2000


def main(lake: Path) -> None:
    """Make the write."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    columns = [f"id * {number} as c{number}" for number in range(10)]
    rows = spark.range(PARTITIONS * 100).selectExpr(*columns, f"id % {PARTITIONS} as part")
    rows.repartition(2, "part").write.partitionBy("part").parquet(str(lake / "many"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
