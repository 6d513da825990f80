"""Does what could keep a driver from delivering what it captures, and ends as its second name says.

For `tests/spark/test_delivery.py`: the first folder is the lake, next to which `remote` is the
folder to deliver to.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_S = 60
DRIVER = os.getpid()


@atexit.register  # before there is a SparkContext, so what begins with that has a later turn
def stop() -> None:
    """Stop what was not stopped."""
    spark = SparkSession.getActiveSession()
    if spark is not None and os.getpid() == DRIVER:
        spark.stop()


def main(lake: Path) -> None:
    """Run the scenario that the application's name is."""
    spark = SparkSession.builder.getOrCreate()
    SCENARIOS[spark.conf.get("spark.app.name")](spark, lake)
    (lake.parent / "ended").write_text(str(time.monotonic()))


def troubled(spark: SparkSession, lake: Path) -> None:
    """Close, stop, leave and fork what the delivery needs, and end with an exit code."""
    remote = lake.parent / "remote"
    write(spark, lake / "before")
    time.sleep(1)  # a delivery has failed by now: a file is where its folder should be
    remote.unlink()
    # Not only for start.json: on a busy machine the threads would write before the lines are read.
    wait_for(remote, "*/events-00001.ndjson")
    wait_for(remote, "*/observations-00002.ndjson")  # the second has the failed delivery

    spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    os.chdir("/")
    threads = [threading.Thread(target=write, args=(spark, lake / f"thread{n}")) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(remote, "*/events-00002.ndjson")
    wait_for(remote, "*/observations-00003.ndjson")

    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)

    spark.stop()
    again = SparkSession.builder.getOrCreate()
    write(again, lake / "after")
    sys.exit(3)


def killed(spark: SparkSession, lake: Path) -> None:
    """Write, wait until that is delivered, and be killed while writing on."""
    write(spark, lake / "delivered")
    wait_for(lake.parent / "remote", "*/observations-00002.ndjson")
    threading.Thread(target=write, args=(spark, lake / "slow", 10_000_000_000)).start()
    time.sleep(1)
    os.kill(os.getppid(), signal.SIGKILL)  # spark-submit's JVM
    os._exit(1)


def short(spark: SparkSession, lake: Path) -> None:
    """Write once."""
    write(spark, lake / "only")


SCENARIOS: dict[str, Callable[[SparkSession, Path], None]] = {
    scenario.__name__: scenario for scenario in (troubled, killed, short)
}


def write(spark: SparkSession, folder: Path, rows: int = 10) -> None:
    """Write some rows."""
    spark.range(rows).write.parquet(str(folder))


def wait_for(folder: Path, pattern: str) -> None:
    """Wait until there is such a file, or for long."""
    until = time.monotonic() + LONG_S
    while not [*folder.glob(pattern)] and time.monotonic() < until:
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
