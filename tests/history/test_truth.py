"""Random histories: tables and queries say exactly what the oracle says.

Of 200 worlds `make test-all` takes all, and a quick run four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.patterns.observed import patterns
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.conftest import long_after
from tests.history.built import Tables, cell_of
from tests.history.oracle import END_OF_TIME, Hop, Oracle, Stale, Wanted, wanted_of
from tests.history.questions import Question, questions
from tests.history.simulation import world

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.queries.sql import Rows
    from tests.history.ledger import Ledger
    from tests.history.oracle import Version

SEEDS = range(settings.default.max_examples if settings.default else 1)
EXACT = range(max(2, len(SEEDS) // 8))
"""Of worlds that are long and exact, as patterns need them."""


def days_of(seed: int) -> int:
    """Give most worlds a few days, and one in twenty more than a month."""
    return 40 if seed % 20 == 9 else 3 + seed % 7


QUESTIONS = 6
"""About each world: a trace and an impact of each."""


class World:
    """A world, what the oracle knows of it, and its tables."""

    def __init__(self, seed: int, ledger: Ledger, tables: Rows) -> None:
        self.seed = seed
        self.ledger = ledger
        self.oracle = Oracle(ledger)
        self.tables = tables

    def rows(self, columns: str, table: str) -> set[tuple[Any, ...]]:
        """Give rows of a table, with cells in place of their texts."""
        found = self.tables.rows(f"SELECT {columns} FROM {table}")
        return {
            tuple(cell_of(v) if k.endswith("cell") else v for k, v in row.items()) for row in found
        }


@pytest.fixture(scope="module", params=long_after(4, SEEDS), ids=lambda seed: f"seed {seed}")
def random_world(request, tmp_path_factory):
    ledger = world(request.param, days_of(request.param))
    tables = Tables(ledger, tmp_path_factory.mktemp("world"), request.param)
    yield World(request.param, ledger, tables)
    tables.close()


def test_runs_and_columns_are_those_that_were(random_world):
    runs, ledger = random_world.ledger.runs, random_world.ledger
    assert random_world.rows("run_id, state, started, ended, try_number", "runs") == {
        (run.id, run.state, _naive(run.started), _naive(run.ended), run.instance and run.try_number)
        for run in runs
    }
    assert random_world.rows("run_id, out_name, out_column, in_name, in_column", "columns") == {
        (run.id, edge.output.name, edge.out_column, edge.input.name, edge.in_column)
        for run in ledger.runs
        for edge in run.edges
    }


def test_changes_are_the_writes_that_count(random_world):
    found = random_world.rows("name, run_id, extent, cell, mode, valid_from", "changes")
    assert found == {
        (one.table.name, one.run.id, _in_tables(one.extent), one.cell, one.mode, _ended(one))
        for one in random_world.oracle.changes
    }


def test_versions_that_were_not_replaced_are_what_is_there(random_world):
    found = random_world.rows(
        "name, run_id, extent, cell, is_certain", "changes WHERE valid_to IS NULL"
    )
    assert found == {
        (table.name, *_version(one), one.is_certain(Wanted()))
        for table in random_world.ledger.tables
        for one in random_world.oracle.content(table, Wanted())
    }


def test_a_read_is_bound_to_what_the_oracle_found_for_it(random_world):
    columns = "reader_run_id, name, extent, cell, version_run_id, version_extent, version_cell"
    assert random_world.rows(f"{columns}, is_certain", "bindings") == {
        (run.id, access.table.name, _in_tables(wanted.extent), wanted.cell, *version)
        for run in random_world.ledger.runs
        for access in run.reads
        for wanted in wanted_of(access)
        for version in _bound(random_world.oracle, run, access.table, wanted)
    }


def test_a_trace_is_what_the_oracle_answers(random_world):
    asked = random_world
    for one in questions(asked.ledger, asked.seed, QUESTIONS):
        expected = asked.oracle.trace(one.table, one.cell, one.column, one.as_of or END_OF_TIME)
        try:
            found = trace(asked.tables, _name(one.table), one.partition, one.column, one.as_of)
        except HistoryError:  # there is no such column, though conditions of all may be known
            assert not _has_column(asked.ledger, one), one
        else:
            assert _answered(found) == expected, one


def test_an_impact_is_what_the_oracle_answers(random_world):
    asked = random_world
    for one in questions(asked.ledger, asked.seed, QUESTIONS):
        expected = asked.oracle.impact(one.table, one.cell, one.column, one.as_of)
        try:
            found = impact(asked.tables, _name(one.table), one.partition, one.column, one.as_of)
        except HistoryError:
            assert not expected, one
        else:
            assert _answered(found.hops) == expected, one


def test_what_is_stale_is_what_the_oracle_answers(random_world):
    found = stale(random_world.tables)
    assert {
        Stale(one.dataset.name, _cell(one.partition), one.run.run_id, one.is_direct): (
            one.cause.run.run_id
        )
        for one in found
    } == random_world.oracle.stale()


def test_a_plan_runs_what_is_stale_again_and_what_is_read_before_what_reads_it(random_world):
    asked = random_world
    found = stale(asked.tables)
    plan = plan_of(asked.tables, found)
    runs = {run.id: run for run in asked.ledger.runs}
    stale_runs = [runs[one.run.run_id] for one in found]
    steps = {(s.dag_id, s.task_id, s.dag_run_id, s.map_index): s for s in plan.steps}
    instances = {_instance(run) for run in stale_runs if run.instance}
    assert steps.keys() == instances
    assert {one.run_id for one in plan.by_hand} == {r.id for r in stale_runs if not r.instance}
    waves = {key: step.wave for key, step in steps.items()}
    assert [step.wave for step in plan.steps] == sorted(waves.values())
    for key, step in steps.items():
        again = [r for r in runs.values() if r.instance and _instance(r) == key]
        last = max((r for r in again if r.state == "COMPLETE"), key=lambda r: (r.ended, r.id))
        assert step.run_id == last.id
    again = [run for run in stale_runs if run.instance]
    flow = _read(asked.oracle, stale_runs, is_again=True)
    for reader, writers in _read(asked.oracle, again).items():
        for writer in writers:  # who reads each other, then or now, is in no order
            assert waves[writer] < waves[reader] or reader in _all_read(writer, flow)


def _has_column(ledger: Ledger, asked: Question) -> bool:
    """Whether any run wrote or read a column."""
    edges = [edge for run in ledger.runs for edge in run.edges]
    columns = {edge.out_column for edge in edges if edge.output == asked.table}
    columns |= {edge.in_column for edge in edges if edge.input == asked.table}
    return asked.column is None or asked.column in columns


def _read(oracle: Oracle, runs: list[Any], *, is_again: bool = False) -> dict[Any, set[Any]]:
    """Give for each task instance, or run of others, those whose versions some runs read.

    :param is_again: also those whose versions they would read now
    """
    read: dict[Any, set[Any]] = {_instance(run): set() for run in runs}
    for run in runs:
        writers = {one.run.id for one in oracle.bound(run)}
        if is_again:
            # Of what names no cells, all may be read.
            wanted = (
                (access.table, one if one.cell is not None else Wanted())
                for access in run.reads
                for one in wanted_of(access)
            )
            writers |= {v.change.run.id for each in wanted for v in oracle.content(*each)}
        read[_instance(run)] |= {_instance(one) for one in runs if one.id in writers}
    return {one: others - {one} for one, others in read.items()}


def _all_read(one: Any, read: dict[Any, set[Any]]) -> set[Any]:
    found: set[Any] = set()
    waiting = [one]
    while waiting:
        new = read[waiting.pop()] - found
        found |= new
        waiting += new
    return found


RULES = {
    "same": ("same", None, None),
    "yesterday": ("offset", -1, -1),
    "window": ("window", -2, 0),
    "month": ("period", None, None),
    "days": ("parts", None, None),
    "whole": ("whole", None, None),
}
"""Of the simulation, and as patterns are named, with the first and the last day."""


@pytest.fixture(params=long_after(1, EXACT), ids=lambda seed: f"seed {seed}")
def exact_world(request, tmp_path):
    ledger = world(request.param, days=40, is_exact=True)
    tables = Tables(ledger, tmp_path, request.param)
    yield World(request.param, ledger, tables)
    tables.close()


def test_patterns_are_the_rules_of_the_tasks_and_exceptions_the_runs_that_broke_them(exact_world):
    ledger, tables = exact_world.ledger, exact_world.tables
    runs = {run.id: run for run in ledger.runs}
    for table in ledger.tables:
        for one in patterns(tables, _name(table)):
            rule = ledger.rules[one.job, one.input.name, table.name]
            if (rule, table.dims) == ("yesterday", ("month",)):
                continue  # by the day that it runs, which is no rule between months and days
            kind, first, last = RULES[rule]
            assert one.kind == kind, one
            if first is not None:
                of_day = next(each for each in one.rules if each.kind == kind)
                assert (of_day.first, of_day.last) == (first, last)
            broke = {
                run.id
                for run in runs.values()
                if run.job == one.job and run.state == "COMPLETE" and _breaks(ledger, run, table)
            }
            exceptions = {each.run.run_id for each in one.exceptions}
            if rule in ("same", "yesterday", "window"):
                assert exceptions == broke, one
            elif rule != "days":  # of a month, when it is not over, those of any day may be there
                assert exceptions <= broke, one
            assert one.support == one.seen - len(exceptions)


def _breaks(ledger: Any, run: Any, table: Any) -> bool:
    """Whether a run read other days than its rule says, or wrote all days and read one."""
    written = [one for one in run.claimed() if one.table == table]
    is_whole = bool(table.dims) and written[:1] != [] and written[0].extent == "all"
    return bool(written) and (run.id in ledger.breaking or is_whole)


def _answered(hops: Any) -> dict[Hop, bool]:
    return {
        Hop(
            one.depth,
            one.dataset.name,
            _cell(one.partition),
            one.column,
            one.run and one.run.run_id,
        ): one.is_certain
        for one in hops
    }


def _cell(partition: dict[str, str] | None) -> Any:
    return None if partition is None else tuple(sorted(partition.items()))


def _name(table: Any) -> DatasetName:
    return DatasetName(table.namespace, table.name)


def _instance(run: Any) -> tuple[Any, ...]:
    one = run.instance
    if one is None:
        return (run.id,)
    return one.dag_id, one.task_id, one.dag_run_id, one.map_index


def _bound(oracle: Oracle, run: Any, table: Any, wanted: Wanted) -> list[tuple[Any, ...]]:
    """Give the versions of a cell; a read of more is bound when it is asked."""
    found = oracle.found(run, table, wanted) if wanted.cell is not None else []
    nobody = (None, None, None, True)
    return [(*_version(one), one.is_certain(wanted)) for one in found] or [nobody]


def _version(one: Version) -> tuple[Any, ...]:
    return one.change.run.id, _in_tables(one.change.extent), one.change.cell


def _in_tables(extent: str) -> str:
    return "partition" if extent == "cells" else extent


def _naive(time: Any) -> Any:
    return time.replace(tzinfo=None)


def _ended(one: Any) -> Any:
    return _naive(one.run.ended)
