"""What the page works out once: by whom, how often, and for how long it is kept."""

from __future__ import annotations

import tempfile
import threading
from contextlib import closing
from typing import NamedTuple

import pytest

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import LimitError
from airflow_provider_sparklineage.plugins.history import opened
from airflow_provider_sparklineage.plugins.history.opened import AnswerCache, OpenedHistory
from tests.unit.history.test_bounds import SLOW
from tests.unit.history.worlds import add_facts, at, event, lines, write


class State(NamedTuple):
    url: str
    generation: str


def test_a_question_is_worked_out_once():
    known, asked = AnswerCache(), []
    found = [known.answer("stale", lambda: asked.append(1) or ["a"]) for _ in range(3)]
    assert (found, asked) == ([["a"]] * 3, [1])


def test_who_asks_meanwhile_waits_and_one_thing_is_worked_out_at_a_time():
    known, at_once, most, begun = AnswerCache(), [], [], threading.Barrier(4)

    def work_out():
        at_once.append(1)
        most.append(len(at_once))
        threading.Event().wait(0.01)
        at_once.pop()
        return "found"

    def ask(question):
        begun.wait()
        known.answer(question, work_out)

    threads = [threading.Thread(target=ask, args=(n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1]


def test_a_question_that_failed_is_asked_anew():
    known = AnswerCache()
    with pytest.raises(ZeroDivisionError):
        known.answer("stale", lambda: 1 // 0)
    assert known.answer("stale", lambda: "found") == "found"


def test_what_was_asked_for_longest_ago_is_forgotten():
    known, asked = AnswerCache(most=2), []
    for question in (1, 2, 1, 3, 1, 2):
        known.answer(question, lambda question=question: asked.append(question) or question)
    assert asked == [1, 2, 3, 2]


def test_each_state_of_a_store_is_known_by_itself():
    before, after = (opened.cache_of(State("/store", generation)) for generation in "12")
    assert before.answer("stale", lambda: "before") == "before"
    assert after.answer("stale", lambda: "after") == "after"
    assert opened.cache_of(State("/store", "1")) is before


def test_no_request_waits_for_others_beyond_its_own_time():
    known, is_free = AnswerCache(), threading.Event()
    working = threading.Thread(target=known.answer, args=("slow", is_free.wait))
    working.start()
    with (
        pytest.raises(LimitError, match=r"longer than 0\.1 s"),
        bounds.within(bounds.Bound.of(0.1, "")),
    ):
        known.answer("quick", lambda: "found")
    is_free.set()
    working.join()
    assert known.answer("quick", lambda: "found") == "found"


def test_a_request_ends_in_time_and_the_next_is_answered(tmp_path, monkeypatch):
    add_facts(Store(str(tmp_path)), lines([event("load", at(1), write("dt=1"))]))
    monkeypatch.setattr(opened, "SECONDS", 0.2)
    with closing(OpenedHistory(str(tmp_path))) as history, pytest.raises(LimitError):
        history.rows(SLOW)
    monkeypatch.setattr(opened, "SECONDS", 30)
    with closing(OpenedHistory(str(tmp_path))) as history:
        assert history.rows("SELECT run_id FROM runs") == [{"run_id": "load"}]
        assert history.stale(DatasetName("ns", "orders")) == []


LARGE = "SELECT count(*) AS n FROM (SELECT DISTINCT n, repeat('x', 30) FROM range(1000000) AS a(n))"


def test_what_does_not_fit_into_memory_is_in_temporary_files_until_the_request_ends(
    tmp_path, monkeypatch
):
    add_facts(Store(str(tmp_path / "store")), lines([event("load", at(1), write("dt=1"))]))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(opened, "MEMORY", "40MB")
    with closing(OpenedHistory(str(tmp_path / "store"))) as history:
        assert history.rows(LARGE) == [{"n": 1_000_000}]
        assert [*temporary.iterdir()]
    assert not [*temporary.iterdir()]


def test_where_nothing_can_be_written_a_request_ends_when_its_memory_is_full(tmp_path, monkeypatch):
    add_facts(Store(str(tmp_path)), lines([event("load", at(1), write("dt=1"))]))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(opened, "MEMORY", "40MB")
    with closing(OpenedHistory(str(tmp_path))) as history:
        with pytest.raises(LimitError, match="more memory than it may"):
            history.rows(LARGE)
        assert history.rows("SELECT run_id FROM runs") == [{"run_id": "load"}]
