"""The oracle of the history in worlds so small that everybody sees the answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.history.ledger import Access, Edge, Ledger, Run, Table, cell
from tests.history.oracle import Hop, Oracle, Stale, Wanted
from tests.history.simulation import world

RAW, DAILY, REPORT = Table("raw", ("dt",)), Table("daily", ("dt",)), Table("report")
REGIONAL = Table("regional", ("dt", "region"))
FIRST, SECOND, THIRD = (cell(dt=f"2024-10-0{day}") for day in (1, 2, 3))


def at(hour: int) -> datetime:
    return datetime(2024, 10, 4, hour, tzinfo=UTC)


def part(table: Table, *cells, mode: str = "") -> Access:
    return Access(table, "cells", cells, mode)


def run(name: str, hours: tuple[int, int], reads=(), writes=(), **more) -> Run:
    return Run(name, "job", at(hours[0]), at(hours[1]), tuple(reads), tuple(writes), **more)


def oracle(*runs: Run) -> Oracle:
    tables = {one.table.name: one.table for run in runs for one in (*run.reads, *run.writes)}
    return Oracle(Ledger(list(tables.values()), list(runs)))


LOAD = run("load", (0, 1), writes=[part(RAW, FIRST, mode="overwrite")])
MAKE = run("make", (2, 3), [part(RAW, FIRST)], [part(DAILY, FIRST, mode="overwrite")])
SUM = run("sum", (4, 5), [Access(DAILY)], [Access(REPORT, mode="overwrite")])
LOAD_AGAIN = run("load again", (6, 7), writes=[part(RAW, FIRST, mode="overwrite")])
LOAD_NEXT = run("load next", (6, 7), writes=[part(RAW, SECOND, mode="overwrite")])


def test_a_trace_goes_from_run_to_run_and_ends_where_nothing_was_read():
    assert oracle(LOAD, MAKE, SUM).trace(REPORT) == {
        Hop(0, "report", None, None, "sum"): True,
        Hop(1, "daily", FIRST, None, "make"): True,
        Hop(2, "raw", FIRST, None, "load"): True,
    }


def test_a_trace_names_what_was_read_though_nobody_wrote_it():
    assert oracle(MAKE).trace(DAILY, FIRST) == {
        Hop(0, "daily", FIRST, None, "make"): True,
        Hop(1, "raw", FIRST, None, None): True,
    }


def test_a_read_gets_the_version_that_was_there_when_its_run_began():
    assert Hop(1, "raw", FIRST, None, "load") in oracle(LOAD, MAKE, LOAD_AGAIN).trace(DAILY, FIRST)


def test_what_was_appended_since_the_last_overwrite_is_there_together():
    more = run("more", (1, 2), writes=[part(RAW, FIRST, mode="append")])
    asked = oracle(LOAD, more, MAKE)
    assert {v.change.run.id for v in asked.content(RAW, Wanted("cells", FIRST))} == {"load", "more"}


def test_a_failed_try_wrote_nothing():
    failed = run("failed", (1, 2), writes=[part(RAW, FIRST, mode="overwrite")], state="FAIL")
    assert Hop(1, "raw", FIRST, None, "load") in oracle(LOAD, failed, MAKE).trace(DAILY, FIRST)


def test_a_cell_that_was_replaced_is_of_its_full_load_no_more_and_others_still_are():
    full = run("full", (0, 1), writes=[Access(RAW, mode="overwrite")])
    again = run("again", (1, 2), writes=[part(RAW, FIRST, mode="overwrite")])
    asked = oracle(full, again)
    assert asked.trace(RAW, FIRST) == {Hop(0, "raw", FIRST, None, "again"): True}
    assert asked.trace(RAW, SECOND) == {Hop(0, "raw", SECOND, None, "full"): True}


def test_an_overwritten_range_leaves_open_which_version_is_there():
    some = Access(RAW, "range", mode="overwrite", actual=(FIRST, SECOND))
    asked = oracle(LOAD, run("some", (1, 2), writes=[some]))
    assert asked.trace(RAW, FIRST) == {
        Hop(0, "raw", FIRST, None, "load"): False,
        Hop(0, "raw", FIRST, None, "some"): False,
    }
    assert asked.trace(RAW, FIRST, as_of=at(1)) == {Hop(0, "raw", FIRST, None, "load"): True}


def test_a_read_of_a_day_reads_all_of_its_regions():
    eu, us = (cell(dt="2024-10-01", region=region) for region in ("eu", "us"))
    load = run("load", (0, 1), writes=[part(REGIONAL, eu, us, mode="overwrite")])
    make = run("make", (2, 3), [part(REGIONAL, FIRST)], [part(DAILY, FIRST, mode="overwrite")])
    assert oracle(load, make).trace(DAILY, FIRST) == {
        Hop(0, "daily", FIRST, None, "make"): True,
        Hop(1, "regional", eu, None, "load"): True,
        Hop(1, "regional", us, None, "load"): True,
    }


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        pytest.param((Edge(DAILY, "key", RAW, "id"),), {"id"}, id="its own edge"),
        pytest.param((Edge(DAILY, None, RAW, "id"),), {"id"}, id="a condition of all columns"),
        pytest.param((Edge(DAILY, "amount", RAW, "id"),), set(), id="of another column"),
        pytest.param((), {None}, id="nothing known of columns"),
    ],
)
def test_a_trace_of_a_column_follows_its_edges(edges, found):
    make = run("make", (2, 3), MAKE.reads, MAKE.writes, edges=edges)
    hops = oracle(LOAD, make).trace(DAILY, FIRST, "key")
    assert {hop.column for hop in hops if hop.depth == 1} == found


def test_impact_is_what_is_there_that_any_version_was_made_into():
    assert oracle(LOAD, MAKE, SUM, LOAD_AGAIN).impact(RAW, FIRST) == {
        Hop(1, "daily", FIRST, None, "make"): True,
        Hop(2, "report", None, None, "sum"): True,
    }


def test_impact_goes_on_through_what_was_replaced_meanwhile():
    emptied = run("emptied", (6, 7), writes=[part(DAILY, FIRST, mode="drop")])
    assert oracle(LOAD, MAKE, SUM, emptied).impact(RAW, FIRST) == {
        Hop(2, "report", None, None, "sum"): True
    }


def test_what_was_made_of_a_rewritten_cell_is_stale_and_so_is_what_was_made_of_that():
    assert oracle(LOAD, MAKE, SUM, LOAD_AGAIN).stale() == {
        Stale("daily", FIRST, "make", is_direct=True): "load again",
        Stale("report", None, "sum", is_direct=False): "load again",
    }


def test_a_table_that_grows_makes_nothing_stale():
    whole = run("whole", (2, 3), [Access(RAW)], [Access(REPORT, mode="overwrite")])
    assert oracle(LOAD, whole, LOAD_NEXT).stale() == {}


def test_nothing_is_stale_once_all_was_made_again():
    again = run("make again", (8, 9), MAKE.reads, MAKE.writes)
    sum_again = run("sum again", (10, 11), SUM.reads, SUM.writes)
    assert oracle(LOAD, MAKE, SUM, LOAD_AGAIN, again, sum_again).stale() == {}


@pytest.mark.parametrize("seed", range(24))
def test_what_a_run_found_is_what_lay_there_and_more_only_where_that_is_not_certain(seed):
    ledger = world(seed)
    asked = Oracle(ledger)
    for one in ledger.runs:
        for access in one.reads:
            if access.extent not in ("cells", "all"):
                continue
            wanted = [Wanted("cells", each) for each in access.cells] or [Wanted()]
            found = [
                (v, v.is_certain(w)) for w in wanted for v in asked.found(one, access.table, w)
            ]
            lay = set().union(*ledger.fed[one.id, access.table.name].values())
            assert lay <= {version.change.run.id for version, _ in found}
            # A whole write counts for all cells, and it is not known which it had rows of.
            assert {v.change.run.id for v, sure in found if sure and v.change.cell} <= lay
