"""What it takes to compare the schedules of 200 DAGs with a year of their runs."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from airflow import sdk

from airflow_provider_sparklineage.cli.schedule import waited_for
from airflow_provider_sparklineage.history.queries.schedule import against_runs
from airflow_provider_sparklineage.model.locations import Locator
from benchmarks.measuring import in_turns
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DAGS, DAYS, READ = 200, 365, 7

_TABLES = {
    "runs": f"""
SELECT 'run-' || dag || '-' || day AS run_id, 'airflow' AS namespace, 'dag' || dag AS dag_id,
    'report' AS task_id, 'asset__' || strftime(dt, '%Y-%m-%d') AS dag_run_id, -1 AS map_index,
    1 AS try_number, strftime(dt, '%Y-%m-%d') AS partition_key, 'COMPLETE' AS state, dt AS started,
    dt + INTERVAL 1 DAY AS ended
FROM (SELECT dag, day, TIMESTAMP '2024-01-01' + to_days(day::INTEGER) AS dt
    FROM range({DAGS}) AS a(dag), range({DAYS}) AS b(day))
""",
    "accesses": f"""
SELECT run_id, started AS accessed_at, 'read' AS side, 's3://lake' AS namespace,
    'orders/' || dag_id AS name, 'partition' AS extent,
    'dt=' || strftime(started::DATE + n::INTEGER, '%Y-%m-%d') AS partition, FALSE AS is_failed,
    FALSE AS is_expected, 'both' AS evidence
FROM runs, range({READ}) AS r(n)
""",
}


class _Tables:
    """The tables of a history, as files of Parquet that DuckDB reads."""

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect()
        for name, rows in _TABLES.items():
            file = folder / f"{name}.parquet"
            self._connection.execute(f"COPY ({rows}) TO '{file}'")
            self._connection.execute(f"CREATE VIEW {name} AS FROM '{file}'")

    def rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        found = self._connection.execute(query, parameters)
        names = [one[0] for one in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def measured() -> Iterator[Result]:
    """Measure it once with the right schedules, and once with schedules that differ in each run."""
    with tempfile.TemporaryDirectory() as folder:
        history = _Tables(Path(folder))
        right, wrong = (
            partial(_compare, history, {f"dag{n}": _timetable(n, window) for n in range(DAGS)})
            for window in (sdk.WeekWindow(), sdk.DayWindow())
        )
        assert right() == 0
        assert wrong() == DAGS
        seconds = in_turns(right, wrong, runs=3)
    what = f"{DAGS} schedules and {DAGS * DAYS:,} runs"
    yield Result(what, seconds[0], 2, "all as they should be", unit=" s")
    yield Result(what, seconds[1], 2, "all of them wrong", unit=" s")


def _timetable(number: int, window: Any) -> Any:
    """Make a schedule that waits for seven days from the key on, or for the hours of a day."""
    mapper = sdk.RollupMapper(
        upstream_mapper=sdk.StartOfDayMapper(input_format="%Y-%m-%d"), window=window
    )
    asset = sdk.Asset(f"s3://lake/orders/dag{number}")
    return sdk.PartitionedAssetTimetable(assets=asset, default_partition_mapper=mapper)


def _compare(history: _Tables, timetables: Mapping[str, Any]) -> int:
    return len(against_runs(history, waited_for(timetables, Locator()).waited).mismatches)
