"""Lays out what the applications of several test modules start from, at the cost of one.

In `recorded` the lake of the recorded applications; next to it the sources of
`partition_checks.py`, of each kind whose connector Spark was given.
"""

import sys
from pathlib import Path

import partition_checks
import prepare_lake
from pyspark.sql import SparkSession


def main(lake: Path) -> None:
    """Write all of it."""
    prepare_lake.main(f"{lake}/recorded")
    partition_checks.prepare(SparkSession.builder.getOrCreate(), lake)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
