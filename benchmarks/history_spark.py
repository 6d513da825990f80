"""What it costs to build the history on Spark: a million events, in two cores, and how that grows.

And what it costs to merge events into a history that is there.

By the clock, with the start of the session in it, as somebody waits for it; each build in an
application of its own. Events are those of :mod:`.history_events`, 12.5 KB on average.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.spark_jobs import BUILD_HISTORY
from airflow_provider_sparklineage.history.store import Store
from benchmarks import history_events
from benchmarks.measuring import Growth
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (30_000, 100_000, 300_000, 1_000_000)
MERGED_INTO = SIZES[1]
MERGES = (1, 20_000)
MEMORY = "6g"
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": MEMORY,
    "spark.sql.shuffle.partitions": "16",
    "spark.ui.enabled": "false",
}
_ROOT = Path(__file__).parents[1]


def measured() -> Iterator[Result]:
    """Measure builds from one file of events, and what they leave on disk."""
    with tempfile.TemporaryDirectory() as name:
        seconds = []
        for size in SIZES:
            store = Path(name, f"store-{size}")
            seconds.append(_seconds(Path(name), store, size))
            yield _built(size, seconds[-1], store)
            if size == MERGED_INTO:
                yield from merged(Path(name), store, size)
        growth = Growth(SIZES, tuple(seconds))
        yield Result("its growth with the events (exponent)", growth.exponent, 1.1, str(growth))


def merged(folder: Path, store: Path, size: int) -> Iterator[Result]:
    """Merge events into a history of so many events."""
    for count in MERGES:
        before = Store.open(str(store)).manifest
        seconds = _seconds(folder, store, count, size)
        after = Store.open(str(store)).manifest
        assert after.rows["events"] == before.rows["events"] + count
        details = f"{before.rows['accesses']:,} accesses in {len(before.files())} files, of which "
        details += f"{len(after.files() - before.files())} were written anew"
        yield Result(f"merge {count:,} into {size:,} events", seconds, None, details, " s")
        size += count


def _built(size: int, seconds: float, store: Path) -> Result:
    rows = Store.open(str(store)).manifest.rows
    size_mb = sum(file.stat().st_size for file in store.rglob("*.parquet")) / 1e6
    details = f"{size / seconds:,.0f} events/s; {rows['accesses']:,} accesses, "
    details += f"{rows['columns']:,} edges of columns; {size_mb:,.0f} MB in the store"
    return Result(f"build from {size:,} events on local[2]", seconds, None, details, " s")


def _seconds(folder: Path, store: Path, size: int, first: int = 0) -> float:
    file = folder / "events.ndjson"
    history_events.write(file, size, first)
    options = [part for key, value in CONF.items() for part in ("--conf", f"{key}={value}")]
    options += ["--conf", f"spark.local.dir={folder}"]
    command = ["spark-submit", *options, str(BUILD_HISTORY), file.as_uri(), "--store", str(store)]
    env = os.environ | {"PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": sys.executable}
    begun = time.monotonic()
    subprocess.run(command, env=env, check=True, capture_output=True)
    seconds = time.monotonic() - begun
    file.unlink()
    return seconds
