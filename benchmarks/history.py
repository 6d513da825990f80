"""What questions to the history cost: of a year with ten million accesses, in Parquet files."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.queries.datasets import dataset_of
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.datasets import DatasetName
from benchmarks import history_world
from benchmarks.measuring import Growth
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sized

ACCESSES = 10_000_000
SIZES = (ACCESSES // 20, ACCESSES // 10, ACCESSES // 4, ACCESSES)
RUNS = 5
_CELL, _DAY = "dt=2024-06-01/region=r3", "dt=2024-06-01"
_MART, _RAW = (DatasetName(history_world.NAMESPACE, f"warehouse/{n}_1") for n in ("mart", "raw"))


def measured() -> Iterator[Result]:
    """Measure questions on a year of tables, of 50 columns each, three hops deep."""
    with tempfile.TemporaryDirectory() as name:
        histories = {size: _history(Path(name, str(size)), size) for size in SIZES}
        yield from asked(histories[ACCESSES])
        growth = Growth.of(SIZES, lambda size: lambda: stale(histories[size]))
        yield Result("exponent of stale, by accesses", growth.exponent, 1.1, str(growth))


def _history(folder: Path, accesses: int) -> History:
    return History(history_world.store_of(folder, accesses))


def asked(history: History) -> Iterator[Result]:
    """Measure each question, by the clock: DuckDB uses all cores; the files are in memory."""
    yield _result("trace a partition", lambda: trace(history, _MART, _CELL), 0.1)
    yield _result("trace a column of it", lambda: trace(history, _MART, _CELL, "c7"), 0.1)
    yield _result("trace a day, ten partitions", lambda: trace(history, _MART, _DAY), 0.1)
    yield _result("trace a column of all days", lambda: trace(history, _MART, None, "c7"))
    hops = lambda: impact(history, _RAW, _CELL, "c7", is_planned=False).hops  # noqa: E731
    yield _result("impact of a column", hops)
    yield _result("find a dataset by the end of its name", lambda: dataset_of(history, "mart_1"))
    yield _result("stale, of all datasets", lambda: stale(history), 2)


def _result(name: str, question: Callable[[], Sized], goal: float | None = None) -> Result:
    seconds, found = [], 0
    for _ in range(RUNS):
        begun = time.perf_counter()
        found = len(question())
        seconds.append(time.perf_counter() - begun)
    worst = max(seconds)
    details = f"best of {RUNS} (worst {worst:.2f} s); {found:,} results"
    return Result(name, min(seconds), goal, details, " s")
