"""The history of a month of the flights example, as a real Airflow and a real Spark made it.

Somebody wrote one day of the flights anew afterwards (``record_flights.py``).
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from airflow_provider_sparklineage.history.queries.datasets import dataset_of
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from tests.conftest import GOLDEN

pytest.importorskip("duckdb", reason="DuckDB is not in this environment: it is what asks a history")

DAY = date(2013, 1, 15)
WEEKS = [str(DAY + timedelta(days)) for days in range(7)]
BUILT_FROM_IT = [("daily_delays", "2013-01-15"), *(("weekly_report", week) for week in WEEKS)]


@pytest.fixture(scope="module")
def after(tmp_path_factory):
    """Build the history up to a part of the recording, and give it open."""
    from airflow_provider_sparklineage.history.engines.building import build
    from airflow_provider_sparklineage.history.engines.duckdb import History

    opened = []

    def opened_after(*parts):
        store = Store(str(tmp_path_factory.mktemp("store")))
        for part in parts:
            build(store, [source_of(str(GOLDEN / "history" / f"flights_{part}.ndjson.gz"))])
        opened.append(History(store))
        return opened[-1]

    yield opened_after
    for history in opened:
        history.close()


@pytest.fixture(scope="module")
def rewritten(after):
    return after("month", "rewritten")


def partitions(found):
    return [(Path(one.dataset.name).name, *one.partition.values()) for one in found]


def instances(plan):
    return [(step.task_id, step.dag_run_id) for step in plan.steps]


def test_nothing_is_stale_after_a_month(after):
    assert stale(after("month")) == []


def test_what_was_built_from_the_day_that_was_written_anew_is_stale_and_nothing_else(rewritten):
    found = stale(rewritten)

    assert partitions(found) == BUILT_FROM_IT
    assert {one.cause.partition["flight_date"] for one in found} == {str(DAY)}
    assert {one.is_certain for one in found} == {True}
    assert instances(plan_of(rewritten, found)) == BUILT_FROM_IT


def test_what_is_downstream_of_a_day_is_what_to_clear(rewritten):
    flights = dataset_of(rewritten, "lake/flights")
    found = impact(rewritten, flights, f"flight_date={DAY}", None)

    assert instances(found.plan) == BUILT_FROM_IT


def test_nothing_is_stale_once_the_plan_has_run(after):
    assert stale(after("month", "rewritten", "cleared")) == []


def test_a_report_of_a_week_is_traced_to_its_seven_days(rewritten):
    report = dataset_of(rewritten, "weekly_report")
    hops = trace(rewritten, report, "week_ending=2013-01-17", "avg_dep_delay", None, 1)

    made_of = [hop for hop in hops if hop.column == "dep_delay"]
    days = [str(date(2013, 1, 11) + timedelta(day)) for day in range(7)]
    assert [hop.partition["flight_date"] for hop in made_of] == days
    assert {hop.transformations[0].subtype for hop in made_of} == {"AGGREGATION"}
