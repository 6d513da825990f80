"""What it costs to build the history on Spark: a million events, in two cores, and how that grows.

And what it costs to merge events into a history that is there, in each format.

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
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.spark_jobs import BUILD_HISTORY
from benchmarks import history_events
from benchmarks.measuring import Growth
from benchmarks.results import Result
from tests.record_events import CONNECTOR_CONF, Spark

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (30_000, 100_000, 300_000, 1_000_000)
MERGES = (1, 20_000)
IN_LAKEHOUSES = (100_000, 1_000_000)
MEMORY = "6g"
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": MEMORY,
    "spark.sql.shuffle.partitions": "16",
    "spark.ui.enabled": "false",
}
_ROOT = Path(__file__).parents[1]


class _Format(NamedTuple):
    """A format of tables, and where the tables are in a folder."""

    name: str
    folder: Path

    @property
    def store(self) -> str:
        return "lakehouse.history" if self.name == "iceberg" else str(self.folder / "history")

    @property
    def options(self) -> list[str]:
        conf = dict(CONF)
        if self.name != "parquet":
            spark = Spark.of(Path(sys.executable).with_name("spark-submit"))
            conf["spark.jars.packages"] = str(spark.package(self.name))
            of_connector = CONNECTOR_CONF[self.name].items()
            conf |= {key: value.format(lake=self.folder) for key, value in of_connector}
        conf["spark.local.dir"] = str(self.folder)
        return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]

    def seconds(self, count: int, first: int = 0) -> float:
        """Add events to the tables; give the seconds that it takes."""
        file = self.folder / "events.ndjson"
        history_events.write(file, count, first)
        job = [str(BUILD_HISTORY), file.as_uri(), "--store", self.store, "--format", self.name]
        env = os.environ | {"PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": sys.executable}
        begun = time.monotonic()
        command = ["spark-submit", *self.options, *job]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        seconds = time.monotonic() - begun
        assert f"{count} of them new" in done.stdout
        file.unlink()
        return seconds

    def files(self) -> dict[Path, int]:
        """Give the files of the tables, and their bytes."""
        return {file: file.stat().st_size for file in self.folder.rglob("*.parquet")}


def measured() -> Iterator[Result]:
    """Measure builds from one file of events, what they leave on disk, and merges."""
    yield from of_format("parquet", SIZES)
    for name in ("delta", "iceberg"):
        yield from of_format(name, IN_LAKEHOUSES)


def of_format(name: str, sizes: tuple[int, ...]) -> Iterator[Result]:
    """Measure builds of several sizes, and merges into each, in a format."""
    seconds: dict[int, list[float]] = {count: [] for count in (0, *MERGES)}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            tables = _Format(name, Path(folder))
            seconds[0].append(tables.seconds(size))
            details = f"{size / seconds[0][-1]:,.0f} events/s; "
            details += f"{sum(tables.files().values()) / 1e6:,.0f} MB on disk"
            yield Result(f"{name}: build from {size:,} events", seconds[0][-1], None, details, " s")
            first = size
            for count in MERGES:
                before = tables.files()
                seconds[count].append(tables.seconds(count, first))
                first += count
                new = {file: size for file, size in tables.files().items() if file not in before}
                details = f"{len(new)} files written, {sum(new.values()) / 1e6:,.1f} MB"
                yield Result(
                    f"{name}: merge {count:,} into {size:,} events",
                    seconds[count][-1],
                    None,
                    details,
                    " s",
                )
    for count, of_count in seconds.items():
        what = f"merges of {count:,}" if count else "builds"
        growth = Growth(sizes, tuple(of_count))
        yield Result(
            f"{name}: growth of {what} with the events (exponent)",
            growth.exponent,
            1.1,
            str(growth),
        )
