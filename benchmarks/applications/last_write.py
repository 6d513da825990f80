"""Writes many partitions and ends; writes down when that was, on the clock of all processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def main(lake: Path) -> None:
    """Make the one write; the application's name is the number of its partitions."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    partitions = int(spark.conf.get("spark.app.name"))
    rows = spark.range(partitions).selectExpr("cast(id as string) as value", "id as p")
    rows.write.partitionBy("p").text(str(lake / "table"))
    (lake.parent / "ended").write_text(str(time.monotonic()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
