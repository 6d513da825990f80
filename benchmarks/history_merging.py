"""What it costs to merge events into a large history: one, two hundred days of them, and of skew.

Events are as :mod:`.history_events` makes them, ten accesses each, of a hundred tasks. Builds run
in processes of their own.
"""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from benchmarks import history_events
from benchmarks.building import Build, build
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (100_000, 1_000_000)
MANY = 20_000
SINGLE = 40
"""So many single events follow, so that parts of the facts are joined, too."""
GOAL_ONE, GOAL_MANY, GOAL_MB, GOAL_PLAN = 2, 30, 1000, 1
RUNS = 5
DAYS_BEFORE = 9
"""The plan is for a partition of so many days before the last."""


def measured() -> Iterator[Result]:
    """Measure both sizes, and both without and with a table that all runs read."""
    for size in SIZES:
        for is_skewed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                yield from of(Path(folder), size, is_skewed=is_skewed)


def of(folder: Path, size: int, *, is_skewed: bool) -> Iterator[Result]:
    """Build a history of so many events, and merge others into it."""
    store, place = folder / "store", size
    named = f"{size:,} events{', all read one table' if is_skewed else ''}: "

    def merged(count: int, first: int | None = None) -> Build:
        nonlocal place
        file = folder / f"events-{place}.ndjson"
        history_events.write(file, count, place if first is None else first, is_skewed=is_skewed)
        place += count
        built = build(store, file)
        file.unlink()
        assert built.new == count
        return built

    yield _result(f"{named}build", merged(size, 0))
    place = size
    yield _disk(named, store)
    yield _result(f"{named}merge the event of a task", merged(1, place + 1), GOAL_ONE)
    yield _result(f"{named}merge that of the first task", merged(1, place + 99), GOAL_ONE)
    place += 100
    yield _result(f"{named}merge {MANY:,}", merged(MANY), GOAL_MANY)
    singles = [merged(1) for _ in range(SINGLE)]
    yield _result(f"{named}slowest of {SINGLE} that follow", max(singles), GOAL_ONE)
    yield _disk(named, store)
    yield from _asked(named, store, place)


def _result(name: str, build: Build, goal: float | None = None) -> Result:
    details = f"{build.cpu_s:.1f} s of CPU, {build.peak_mb:.0f} MB at the peak"
    return Result(name, build.seconds, goal, details, " s")


def _disk(named: str, store: Path) -> Result:
    manifest = Store.open(str(store)).manifest
    files = sum(map(len, manifest.tables.values()))
    details = f"{files} files of tables, {manifest.rows['accesses']:,} accesses"
    retired = sum(
        file.stat().st_size for one in manifest.retired for file in _files(store / one.name)
    )
    size = sum(file.stat().st_size for file in store.rglob("*.parquet")) - retired
    details += f"; and {retired / 1e6:,.0f} MB to be removed in an hour"
    return Result(f"{named}on disk", size / 1e6, None, details, " MB")


def _files(name: Path) -> list[Path]:
    return [name] if name.is_file() else [*name.rglob("*.parquet")]


def _asked(named: str, store: Path, events: int) -> Iterator[Result]:
    table = DatasetName("s3://lake", "warehouse/table_7")
    day = str(history_events.day_of(SIZES[0] // 2))
    with History(Store.open(str(store))) as history:
        seconds = _seconds(lambda: trace(history, table, f"dt={day}", depth=3))
        yield Result(f"{named}trace", seconds, None, "three hops", " s")
        late = f"dt={history_events.day_of(events) - timedelta(DAYS_BEFORE)}"
        begun = time.perf_counter()
        plan = impact(history, table, late).plan
        seconds = time.perf_counter() - begun
        details = (
            f"{len(plan.steps)} steps; tasks that ran {events // history_events.TASKS:,} times"
        )
        yield Result(f"{named}impact with its plan", seconds, GOAL_PLAN, details, " s")


def _seconds(question: Callable[[], object]) -> float:
    seconds = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        question()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
