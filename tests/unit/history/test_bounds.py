"""The bound of a question: it ends in time, wherever it is, and others can be asked after it."""

from __future__ import annotations

import tempfile
import threading
import time

import pytest

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.bounds import Bound
from airflow_provider_sparklineage.history.engines import duckdb
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.exceptions import HistoryError, LimitError
from tests.unit.history.worlds import add_facts, at, event, lines, write

SLOW = "SELECT count(*) FROM range(1000000) AS a(n), range(1000000) AS b(m) WHERE n * m % 7 = 3"
"""Takes hours: it counts a product of a million rows by a million."""
LARGE = "SELECT n, md5(CAST(n AS VARCHAR)) AS text FROM range(3000000) AS a(n) ORDER BY text"
MOST_S = 5  # on a busy machine


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path))
    add_facts(store, lines([event("load", at(1), write("dt=1"))]))
    return Store.open(str(tmp_path))


def test_a_query_that_takes_too_long_is_given_up_and_the_next_is_answered(store):
    with History(store) as history:
        begun = time.monotonic()
        with (
            pytest.raises(LimitError, match=r"longer than 0\.2 s, and was given up\. Ask for less"),
            bounds.within(Bound.of(0.2, "Ask for less.")),
        ):
            history.rows(SLOW)
        assert time.monotonic() - begun < MOST_S
        assert history.rows("SELECT run_id FROM runs") == [{"run_id": "load"}]
        with bounds.within(Bound.of(60, "")):
            assert history.rows("SELECT run_id FROM runs") == [{"run_id": "load"}]


def test_no_thread_is_left_after_a_query(store):
    with History(store) as history, bounds.within(Bound.of(60, "")):
        history.rows("SELECT 1")
    assert "sparklineage-bound" not in [thread.name for thread in threading.enumerate()]


def test_nothing_is_asked_after_the_end(store):
    with History(store) as history, pytest.raises(LimitError), bounds.within(Bound.of(0, "")):
        history.rows("SELECT 1")


def test_an_inner_block_without_a_bound_has_none():
    with bounds.within(Bound.of(60, "")):
        with bounds.within(None):
            assert bounds.left() is None
        assert 0 < bounds.left() <= 60


def test_a_query_that_takes_too_much_memory_is_given_up_and_the_next_is_answered(
    store, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with History(store, memory_limit="20MB") as history:
        with pytest.raises(LimitError, match=r"more memory than it may\. Ask for one dataset"):
            history.rows(LARGE)
        assert history.rows("SELECT run_id FROM runs") == [{"run_id": "load"}]


def test_an_answer_of_too_many_rows_is_given_up(store, monkeypatch):
    monkeypatch.setattr(duckdb, "MOST_ROWS", 10)
    with History(store) as history, pytest.raises(LimitError, match="Ask for one dataset"):
        history.rows("SELECT n FROM range(11) AS a(n)")


def test_a_wrong_query_is_no_question_of_limits(store):
    with History(store) as history, pytest.raises(HistoryError) as raised:
        history.rows("SELECT nothing")
    assert not isinstance(raised.value, LimitError)
