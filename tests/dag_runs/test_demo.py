"""``sparklineage demo``, as it is: with Airflow and Spark, twice in one folder."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from airflow_provider_sparklineage.plugins.history.catalog import catalog_of
from airflow_provider_sparklineage.plugins.history.health import health
from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
from tests.history.test_page import ALL

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.long,
]

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 1200
RUNS = [
    ("example_catch_wrong_partition", "manual__2013-01-08T00:00:00+00:00", "failed"),
    ("example_report_flight_delays", "manual__2013-01-07T00:00:00+00:00", "success"),
    ("example_report_flight_delays", "manual__2013-01-08T00:00:00+00:00", "success"),
]


class Demo(NamedTuple):
    """What a demo has printed, and what it has left."""

    out: str
    log: str
    runs: list
    history: str
    troubles: dict
    events: int


def run(folder):
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    settings = {"capture_output": True, "text": True, "check": False, "timeout": _TIMEOUT_S}
    done = subprocess.run([*command, "demo", str(folder)], env=environment, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    store = folder / "airflow" / "sparklineage" / "history"
    shown = subprocess.run(
        [*command, "history", "show", "--store", store], env=environment, **settings
    )
    with closing(sqlite3.connect(folder / "airflow" / "airflow.db")) as database:
        runs = database.execute(
            "SELECT dag_id, run_id, state, start_date, end_date FROM dag_run ORDER BY 1, 2"
        ).fetchall()
    events = (folder / "lineage.ndjson").read_text().splitlines()
    log = (folder / "demo.log").read_text()
    return Demo(done.stdout, log, runs, shown.stdout, troubles_in(store), len(events))


def troubles_in(store):
    """Give what the first view of the page says, by the end of the dataset's name."""
    history = OpenedHistory(str(store))
    found = health(catalog_of(history), history, ALL)
    history.close()
    return {one["short"]: one["counts"] for one in found["datasets"]}


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "my demo"
    return [run(folder), run(folder)]


def test_it_ends_with_the_tab_and_the_way_to_start_the_server(demos):
    for demo in demos:
        assert re.search(
            r"^\[8/8\] 2013-01-08 carrier_delays … failed after \d+ s$", demo.out, re.M
        )
        assert "avg_visibility  double   weather.visib (aggregation)" in demo.out
        end = demo.out.splitlines()[-5:]
        assert end[1].endswith("airflow standalone")
        assert end[3].endswith("/tasks/daily_delays/plugin/spark-lineage")


def test_the_page_opens_on_the_partition_that_the_last_task_wrote_wrongly(demos):
    for demo in demos:
        assert demo.troubles == {"carrier_delays": {"m": 1}}


def test_its_runs_took_as_long_as_they_took(demos):
    for demo in demos:
        assert [run[:3] for run in demo.runs] == RUNS
        for *_, start, end in demo.runs:
            took = datetime.fromisoformat(end) - datetime.fromisoformat(start)
            assert timedelta(0) < took < timedelta(days=1)


def test_a_second_one_has_the_same_runs_and_not_twice_as_many(demos):
    first, second = demos
    assert "7 runs of 4 jobs" in first.history
    assert without_times(second.history) == without_times(first.history)
    assert second.events == first.events


def without_times(text):
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", text)


def test_the_log_has_no_error_for_lineage_that_is_not_there(demos):
    for demo in demos:
        assert "XCom not found" not in demo.log
