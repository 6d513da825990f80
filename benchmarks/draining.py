"""What the observer costs at the end of a job whose last action writes many partitions.

Measured is the time from the end of the job's ``main`` to the end of ``spark-submit``. With the
observer, Python waits then until the write is looked at; with the listener alone, Spark does until
the listener has reported it. The rest is the end of Python and of the JVM.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import Growth
from benchmarks.results import Result
from tests.record_events import Spark
from tests.spark import submissions

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION = Path(__file__).parent / "applications" / "last_write.py"
SIZES = (250, 500, 1000, 2000)
PAIRS = 3
_MISSED = (
    "all folders must be listed to know whose files are in them, which is half of the look; and "
    "the first look of a job runs code that its JVM has not compiled"
)


def measured() -> Iterator[Result]:
    """Measure the largest write in pairs, and how a look at such a write grows."""
    spark = Spark.of(Path(sys.executable).with_name("spark-submit"))
    ends, looks, alone = [], [], []
    for _ in range(PAIRS):
        alone.append(_end_of(spark, SIZES[-1], observe=False)[0])
        end, look = _end_of(spark, SIZES[-1], observe=True)
        ends.append(end)
        looks.append(look)
    smaller = [
        min(_end_of(spark, size, observe=True)[1] for _ in range(PAIRS - 1)) for size in SIZES[:-1]
    ]
    growth = Growth(SIZES, (*smaller, min(looks)))
    details = (
        f"from the end of main to the end of the process, best of {PAIRS}; with the listener alone "
        f"{min(alone):.2f} s; of it the look at the write, by partitions: {growth}, "
        f"exponent {growth.exponent:.2f}"
    )
    name = f"last write of {SIZES[-1]:,} partitions, drained at exit"
    yield Result(name, min(ends), 0.35, details, " s", _MISSED)


def _end_of(spark: Spark, partitions: int, *, observe: bool) -> tuple[float, float]:
    """Seconds from the end of main to that of the process, and those of the look at the write.

    Both processes read the same clock: since the machine's start.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        submissions.submit(
            spark,
            APPLICATION,
            work,
            listener=spark.listener,
            observe=observe,
            conf={"spark.app.name": str(partitions)},
        )
        end = time.monotonic() - float((work / "ended").read_text())
        return end, _look(work, partitions) if observe else 0.0


def _look(work: Path, partitions: int) -> float:
    """Seconds of the look at the write, all of whose partitions must be known exactly."""
    lines = (work / "observations.ndjson").read_text().splitlines()
    [record] = [r for r in map(json.loads, lines) if r.get("writes")]
    [write] = record["writes"]
    found = len(write["layouts"][0]["partitions"])
    if (write["how"], found) != ("exact", partitions) or "errors" in record:
        message = f"{found} of {partitions} partitions are known, {write['how']}"
        raise ValueError(message)
    return float(record["observer_ms"]) / 1000
