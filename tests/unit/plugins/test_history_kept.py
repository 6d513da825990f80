"""What the page works out once: by whom, how often, and for how long it is kept."""

from __future__ import annotations

import threading
from typing import NamedTuple

import pytest

from airflow_provider_sparklineage.plugins.history import opened
from airflow_provider_sparklineage.plugins.history.opened import AnswerCache


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
