"""The queries of docs/history, as anybody may write them, find what the commands answer."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.queries.datasets import dataset_of
from airflow_provider_sparklineage.history.queries.drift import drift
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import TABLES
from tests.conftest import GOLDEN

pytest.importorskip("duckdb", reason="DuckDB is not in this environment: it is what asks a history")

EXAMPLES = GOLDEN.parents[1] / "docs" / "history"
NAMES = sorted(file.stem for file in EXAMPLES.glob("*.sql"))
LONGEST = 50
"""Lines of one of them: what is longer nobody reads."""


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    """Build the month of which one day was written anew, and give its history open."""
    from airflow_provider_sparklineage.history.engines.duckdb import History

    store = Store(str(tmp_path_factory.mktemp("store")))
    recorded = [GOLDEN / "history" / f"flights_{part}.ndjson.gz" for part in ("month", "rewritten")]
    build(store, [source_of(str(file)) for file in recorded])
    with History(store) as history:
        yield history


def answer(history, name):
    return history.rows((EXAMPLES / f"{name}.sql").read_text())


def cell(partition):
    return partition and "/".join(f"{name}={value}" for name, value in partition.items())


def instance(step):
    return step.dag_id, step.task_id, step.dag_run_id


def test_each_of_the_four_questions_has_its_query():
    assert NAMES == ["changed", "impact", "stale", "trace"]


@pytest.mark.parametrize("name", NAMES)
def test_a_query_is_short_and_is_sql_of_both_engines(name):
    text = (EXAMPLES / f"{name}.sql").read_text()
    assert text.count("\n") <= LONGEST
    for dialect in ("duckdb", "spark"):
        tables = {one.name for one in sqlglot.parse_one(text, read=dialect).find_all(exp.Table)}
        assert tables & {table.name for table in TABLES}


def test_what_fed_a_column_of_a_day_is_what_trace_answers(flights):
    dataset = dataset_of(flights, "daily_delays")
    hops = trace(flights, dataset, "flight_date=2013-01-10", "avg_dep_delay")

    assert len(hops) > len(NAMES)
    assert [
        (row["depth"], row["name"], row["cell"], row["of_column"], row["job"])
        for row in answer(flights, "trace")
    ] == [
        (hop.depth, hop.dataset.name, cell(hop.partition), hop.column, hop.run and hop.run.job)
        for hop in hops
    ]


def test_what_is_wrong_and_what_to_clear_is_what_impact_answers(flights):
    found = impact(flights, dataset_of(flights, "lake/flights"), "flight_date=2013-01-15")
    rows = answer(flights, "impact")

    assert {(row["name"], row["cell"]) for row in rows} == {
        (hop.dataset.name, cell(hop.partition)) for hop in found.hops
    }
    runs = dict.fromkeys((row["dag_id"], row["task_id"], row["dag_run_id"]) for row in rows)
    assert list(runs) == [instance(step) for step in found.plan.steps]
    through = {
        (row["dag_run_id"], f"{row['in_column']} → {row['out_column'] or 'all columns'}")
        for row in rows
        if row["task_id"] == "weekly_report"
    }
    assert through == {
        (step.dag_run_id, column)
        for step in found.plan.steps
        for reason in step.reasons
        for column in reason.columns
        if step.task_id == "weekly_report"
    }


def test_what_is_built_from_what_was_rewritten_is_what_stale_answers(flights):
    found = stale(flights)
    rows = answer(flights, "stale")

    assert {(row["name"], row["cell"]) for row in rows} == {
        (one.dataset.name, cell(one.partition)) for one in found
    }
    assert {row["replaced_by"] for row in rows} == {one.cause.run.run_id for one in found}


def test_what_changed_since_yesterday_is_what_drift_answers(flights):
    found = drift(flights, "example_report_flight_delays.prepare_flights")
    rows = answer(flights, "changed")

    went = {one.dataset.name for one in found if one.kind == "output_went"}
    assert {(row["what"], row["out_name"]) for row in rows} == {("went", name) for name in went}
    assert [one for one in found if one.column] == []
