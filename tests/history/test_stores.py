"""Stores of simulated worlds and of the flights example: how they are built changes nothing."""

from __future__ import annotations

import gzip
import json

import pytest

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import ACCESSES, BINDINGS, CHANGES, COLUMNS, RUNS
from tests.conftest import GOLDEN
from tests.history import events
from tests.history.built import Tables
from tests.history.simulation import world

SEEDS = (3, 4, 5)
FLIGHTS = GOLDEN / "history"
LAKE = "/flights/lake"


def contents(rows):
    """Give all rows of all tables, without the files that they were read from."""
    found = {}
    for table in (RUNS, ACCESSES, COLUMNS, CHANGES, BINDINGS):
        names = ", ".join(f'"{one.name}"' for one in table.columns if one.name != "source")
        found[table.name] = sorted(map(repr, rows.rows(f"SELECT {names} FROM {table.name}")))
    return found


def store_of(folder, *files):
    """Build a store, file after file."""
    store = Store(str(folder))
    for file in files:
        build(store, [source_of(str(file))])
    return store


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_of_an_archive_has_the_tables_of_its_events(seed, tmp_path):
    ledger = world(seed)
    events.write_archive(ledger, tmp_path / "archive")
    store = store_of(tmp_path / "store", tmp_path / "archive")
    with History(store) as history:
        assert contents(history) == contents(Tables(ledger, tmp_path, seed=1))


@pytest.mark.parametrize("seed", SEEDS)
def test_events_that_come_late_in_no_order_and_twice_change_nothing(seed, tmp_path):
    ledger, sent = world(seed), tmp_path / "sent.ndjson"
    events.write_stream(ledger, sent, seed)
    lines = sent.read_text().splitlines(keepends=True)
    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    first.write_text("".join(lines[len(lines) // 2 :]))
    second.write_text("".join(lines[: len(lines) * 2 // 3]))
    with History(store_of(tmp_path / "store", first, second)) as history:
        assert contents(history) == contents(Tables(ledger, tmp_path, seed=0))


# --- the flights example --------------------------------------------------------------------------


@pytest.fixture
def flights(tmp_path):
    """Build a store of some of the recorded files of the flights example."""

    def flights(*names):
        files = []
        for name in names:
            files.append(tmp_path / f"{name}.ndjson")
            files[-1].write_bytes(gzip.decompress((FLIGHTS / f"{files[-1].name}.gz").read_bytes()))
        return History(store_of(tmp_path / "store", *files))

    return flights


DAYS = [f"2013-01-{day}" for day in range(15, 22)]


def test_of_flights_nothing_is_stale_after_a_month(flights):
    with flights("flights_month") as history:
        assert stale(history) == []


def test_a_day_of_flights_that_was_rewritten_makes_its_delays_and_weeks_stale(flights):
    with flights("flights_month", "flights_rewritten") as history:
        found = {(one.dataset.name, json.dumps(one.partition)) for one in stale(history)}
        assert found == {
            (f"{LAKE}/daily_delays", json.dumps({"flight_date": "2013-01-15"})),
            *((f"{LAKE}/weekly_report", json.dumps({"week_ending": day})) for day in DAYS),
        }


def test_the_plan_runs_the_day_and_the_weeks_again_which_do_not_read_each_other(flights):
    with flights("flights_month", "flights_rewritten") as history:
        found = stale(history)
        plan = plan_of(history, found)
        assert {step.run_id for step in plan.steps} == {one.run.run_id for one in found}
        assert [step.wave for step in plan.steps] == [0] * 8
        assert plan.by_hand == ()


def test_once_these_have_run_again_nothing_is_stale(flights):
    with flights("flights_month", "flights_rewritten", "flights_cleared") as history:
        assert stale(history) == []
