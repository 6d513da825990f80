"""Random histories: tables and queries say exactly what the oracle says.

Of 200 worlds `make test-matrix` takes all, and a quick run a dozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.history.built import Tables, cell_of
from tests.history.oracle import Oracle, Wanted, wanted_of
from tests.history.simulation import world

if TYPE_CHECKING:
    from tests.history.ledger import Ledger
    from tests.history.oracle import Version

SEEDS = range(settings.default.max_examples if settings.default else 1)


def _days(seed: int) -> int:
    """Give most worlds a few days, and one in twenty more than a month."""
    return 40 if seed % 20 == 9 else 3 + seed % 7


class World:
    """A world, what the oracle knows of it, and its tables."""

    def __init__(self, seed: int, ledger: Ledger, tables: Tables) -> None:
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


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def random_world(request, tmp_path_factory):
    ledger = world(request.param, _days(request.param))
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
