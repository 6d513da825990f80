"""Runs, and which of their events says what they read and wrote."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.unit.history.worlds import at, edge, event, read, tables, write


@pytest.fixture
def made(tmp_path):
    return lambda *events: tables(tmp_path, events)


def minute(number):
    return datetime(2024, 10, 15, 0, number)  # noqa: DTZ001  # as the tables have it: UTC, no zone


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "state"),
    [
        (["START"], "RUNNING"),
        (["START", "RUNNING"], "RUNNING"),
        (["OTHER"], "RUNNING"),
        (["START", "COMPLETE"], "COMPLETE"),
        (["START", "FAIL"], "FAIL"),
        (["START", "ABORT"], "ABORT"),
        (["FAIL", "COMPLETE"], "COMPLETE"),
        (["COMPLETE", "RUNNING"], "COMPLETE"),
    ],
    ids=" then ".join,
)
def test_the_last_event_that_ends_a_run_says_how(made, types, state):
    events = [event("r", at(n), event_type=one) for n, one in enumerate(types)]
    assert made(*events)("state", "runs") == [state]


def test_a_run_starts_with_its_start_event(made):
    rows = made(
        event("r", at(2), event_type="START", started=at(1)), event("r", at(5), started=at(1))
    )
    assert rows("started, ended, is_time_certain", "runs") == [(minute(2), minute(5), True)]


def test_without_a_start_event_it_starts_when_the_task_did(made):
    rows = made(event("r", at(5), started=at(1)))
    assert rows("started, is_time_certain", "runs") == [(minute(1), True)]


def test_a_run_of_which_nobody_knows_the_start_starts_with_its_end(made):
    assert made(event("r", at(5)))("started, is_time_certain", "runs") == [(minute(5), False)]


def test_a_clock_that_went_backwards_makes_the_time_uncertain(made):
    rows = made(event("r", at(5), started=at(9)))
    assert rows("started, ended, is_time_certain", "runs") == [(minute(5), minute(5), False)]


def test_what_the_last_event_leaves_out_is_taken_from_another(made):
    rows = made(
        event("r", at(1), event_type="START", dag_id="dag", parent_run_id="p", job="old"),
        event("r", at(2), job="new", try_number=2),
    )
    assert rows("dag_id, parent_run_id, job, try_number", "runs") == [("dag", "p", "new", 2)]


# --- which event counts ---------------------------------------------------------------------------


def test_the_last_event_that_ends_the_run_says_what_it_accessed(made):
    rows = made(
        event("r", at(3), write("dt=1"), started=at(0)),
        event("r", at(1), write("dt=2"), event_type="RUNNING"),
        event("r", at(4), write("dt=3"), event_type="RUNNING"),
    )
    assert rows("cell", "accesses") == ["dt=1"]


def test_each_side_has_its_own_event(made):
    rows = made(
        event("r", at(1), read("dt=1"), event_type="START", is_ours=False),
        event("r", at(3), write("dt=2"), is_ours=False),
    )
    assert rows("side, cell, accessed_at", "accesses") == [
        ("read", "dt=1", minute(1)),
        ("write", "dt=2", minute(3)),
    ]


def test_what_a_start_of_ours_expects_is_kept_and_binds_nothing(made):
    rows = made(
        event("r", at(1), read("dt=1"), write("dt=1"), event_type="START"),
        event("r", at(3)),
        event("s", at(9), read("dt=1"), started=at(8)),
    )
    assert rows("is_expected", "accesses", "run_id = 'r'") == [True, True]
    assert rows("run_id", "changes") == []
    assert rows("reader_run_id, version_run_id", "bindings") == [("s", None)]


def test_what_was_observed_stands_for_what_the_start_expected(made):
    rows = made(
        event("r", at(1), read("dt=9"), event_type="START"), event("r", at(3), read("dt=1"))
    )
    assert rows("cell, is_expected", "accesses") == [("dt=1", False)]


def test_columns_are_of_the_event_that_says_what_was_written(made):
    rows = made(
        event("r", at(2), write("dt=1"), columns=[edge("a", "b")], event_type="RUNNING"),
        event("r", at(3), write("dt=1"), columns=[edge("a", "c"), edge(None, "d")]),
    )
    assert rows("out_column, in_column, ended", "columns") == [
        ("a", "c", minute(3)),
        (None, "d", minute(3)),
    ]


def test_an_order_of_events_is_as_good_as_another(made):
    events = [
        event("r", at(1), read("dt=1"), event_type="START"),
        event("r", at(3), read("dt=2"), write("dt=2")),
        event("q", at(2), write("dt=2"), started=at(0)),
    ]
    forth, back = made(*events), made(*reversed(events))
    for table in ("runs", "accesses", "changes", "bindings"):
        assert forth("*", table) == back("*", table)
