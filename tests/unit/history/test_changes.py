"""Versions: what a write replaces, adds to, or makes uncertain."""

from __future__ import annotations

import pytest

from tests.unit.history.worlds import at, event, read, tables, write


@pytest.fixture
def versions(tmp_path):
    """Give the versions of writes, each a minute after the one before, by runs a, b, c, …."""

    def versions(*writes, columns="run_id, replaced_by"):
        events = [
            event(chr(ord("a") + n), at(n + 1), *(one if isinstance(one, tuple) else (one,)))
            for n, one in enumerate(writes)
        ]
        return tables(tmp_path, events)(columns, "changes")

    return versions


REPLACING = ["overwrite", "create", "truncate", "drop", "removed"]


@pytest.mark.parametrize("mode", REPLACING)
def test_a_write_replaces_its_cells(versions, mode):
    found = versions(write("dt=1"), write("dt=2"), write("dt=1", mode=mode))
    assert found == [("a", "c"), ("b", None), ("c", None)]


@pytest.mark.parametrize("mode", REPLACING)
def test_a_write_to_the_whole_replaces_every_cell(versions, mode):
    found = versions(write("dt=1"), write(), write("dt=2"), write(mode=mode))
    assert found == [("a", "b"), ("b", "d"), ("c", "d"), ("d", None)]


def test_a_cell_leaves_the_whole_and_other_datasets_alone(versions):
    found = versions(write(), write("dt=1", name="other"), write(name="third"), write("dt=1"))
    assert [by for _, by in found] == [None] * 4


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_write_that_adds_replaces_nothing(versions, mode):
    found = versions(
        write("dt=1"), write("dt=1", mode=mode), columns="run_id, replaced_by, is_certain"
    )
    assert found == [("a", None, True), ("b", None, True)]


@pytest.mark.parametrize("mode", [None, "unknown"])
def test_after_a_write_of_unknown_mode_it_is_uncertain_what_there_is(versions, mode):
    found = versions(
        write("dt=1"), write("dt=1", mode=mode), columns="run_id, is_certain, uncertain_from::TEXT"
    )
    assert found == [("a", False, "2024-10-15 00:02:00"), ("b", True, None)]


@pytest.mark.parametrize(
    "later",
    [write("dt=1", mode="unknown"), write(extent="range", first_partition="dt=1")],
    ids=["a cell", "a range"],
)
def test_after_a_write_to_some_of_it_the_whole_is_uncertain(versions, later):
    found = versions(write(), later, columns="run_id, uncertain_from::TEXT")
    assert found[0] == ("a", "2024-10-15 00:02:00")


def test_what_was_replaced_before_stays_certain(versions):
    found = versions(
        write("dt=1"), write("dt=1"), write("dt=1", mode="unknown"), columns="run_id, is_certain"
    )
    assert found == [("a", True), ("b", False), ("c", True)]


@pytest.mark.parametrize("mode", ["truncate", "drop", "removed"])
@pytest.mark.parametrize("cell", ["dt=1", None])
def test_what_empties_leaves_nothing(versions, mode, cell):
    found = versions(
        write("dt=1"), write(cell, mode=mode), columns="run_id, valid_to = valid_from, replaced_by"
    )
    assert found == [("a", False, "b"), ("b", True, None)]


@pytest.mark.parametrize(
    "fields",
    [{"mode": "alter"}, {"mode": "rename"}, {"is_failed": True}, {"extent": "none"}],
    ids=str,
)
def test_what_writes_no_data_is_no_version(versions, fields):
    assert versions(write("dt=1"), write(**fields)) == [("a", None)]


@pytest.mark.parametrize("state", ["FAIL", "ABORT", "RUNNING"])
def test_only_runs_that_completed_write(tmp_path, state):
    rows = tables(tmp_path, [event("a", at(1), write("dt=1"), event_type=state)])
    assert rows("run_id", "accesses") == ["a"]
    assert rows("run_id", "changes") == []


def test_a_try_that_failed_does_not_replace(tmp_path):
    failed = event("b", at(2), write("dt=1"), event_type="FAIL")
    rows = tables(tmp_path, [event("a", at(1), write("dt=1")), failed])
    assert rows("run_id, replaced_by", "changes") == [("a", None)]


def test_writes_of_one_time_are_in_the_order_of_their_runs(tmp_path):
    events = [event(run, at(1), write("dt=1")) for run in ("b", "c", "a")]
    rows = tables(tmp_path, events)
    assert rows("run_id, replaced_by", "changes") == [("a", "b"), ("b", "c"), ("c", None)]


def test_a_run_that_lists_a_cell_twice_wrote_it_once(versions):
    both = (write("dt=1", mode="append"), write("dt=1"))
    assert versions(both, columns="run_id, mode, replaced_by") == [("a", "overwrite", None)]


def test_a_run_does_not_replace_its_own_cells(versions):
    found = versions((write("dt=1"), write()), columns="cell, replaced_by")
    assert found == [("dt=1", None), (None, None)]


# --- ranges and what is not known -----------------------------------------------------------------


def ranged(first, last, mode="overwrite"):
    return write(extent="range", first_partition=first, last_partition=last, mode=mode)


@pytest.mark.parametrize(
    ("cell", "is_certain"),
    [("dt=03", False), ("dt=05", False), ("dt=06", True), ("dt=02", True), ("dt=004", False)],
)
def test_a_range_makes_the_cells_in_it_uncertain_and_ends_none(versions, cell, is_certain):
    found = versions(
        write(cell), ranged("dt=03", "dt=05"), columns="run_id, replaced_by, is_certain"
    )
    assert found == [("a", None, is_certain), ("b", None, False)]


def test_a_range_that_adds_leaves_its_cells_certain(versions):
    found = versions(
        write("dt=03"), ranged("dt=03", "dt=05", "append"), columns="run_id, is_certain"
    )
    assert found == [("a", True), ("b", False)]


@pytest.mark.parametrize("extent", ["condition", "unknown"])
def test_an_overwrite_of_nobody_knows_what_makes_all_uncertain(versions, extent):
    found = versions(
        *(write("dt=1"), write(), write("dt=2"), write(extent=extent)),
        columns="run_id, replaced_by, is_certain",
    )
    assert found == [("a", "b", True), ("b", None, False), ("c", None, False), ("d", None, False)]


# --- cells of other dimensions --------------------------------------------------------------------


def test_a_coarser_cell_replaces_the_finer_ones_in_it(versions):
    found = versions(write("dt=1/region=eu"), write("dt=2/region=eu"), write("dt=1"))
    assert found == [("a", "c"), ("b", None), ("c", None)]


def test_a_coarser_cell_need_not_name_the_first_dimension(versions):
    found = versions(write("dt=1/region=eu"), write("dt=1/region=us"), write("region=eu"))
    assert found == [("a", "c"), ("b", None), ("c", None)]


def test_a_finer_cell_ends_no_coarser_one(versions):
    assert versions(write("dt=1"), write("dt=1/region=eu")) == [("a", None), ("b", None)]


@pytest.mark.parametrize("text", ["a=b", "ü", "it's", '"', "\\", "%2F", "x y", ";--", "*[?]"])
def test_names_may_have_anything_in_them(versions, text):
    cell = f"dt={text}/region=eu"
    found = versions(write(cell, name=text), write(f"dt={text}", name=text))
    assert found == [("a", "b"), ("b", None)]


def test_a_write_that_arrives_late_takes_its_place(tmp_path):
    events = [event("b", at(2), write("dt=1")), event("r", at(5), read("dt=1"), started=at(4))]
    late = [event("c", at(3), write("dt=1")), event("a", at(1), write("dt=1"))]
    before, after = tables(tmp_path, events), tables(tmp_path, [*events, *late])
    assert before("version_run_id", "bindings") == ["b"]
    assert after("version_run_id", "bindings") == ["c"]
    assert after("run_id, replaced_by", "changes") == [("a", "b"), ("b", "c"), ("c", None)]
