"""A plan is cleared wave after wave."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.cli.history import questions
from airflow_provider_sparklineage.model.exceptions import UnusableInputError


class Airflow:
    """Runs what is cleared, each in so many looks at it, with the state that it is to have."""

    def __init__(self, states=None, looks=0):
        self.states_of = states or {}
        self.looks = looks
        self.done = []

    def clear(self, keys):
        self.done.append(tuple(keys))
        self.waiting = self.looks

    def states(self, keys):
        self.waiting -= 1
        return {} if self.waiting >= 0 else {k: self.states_of.get(k, "success") for k in keys}


def test_a_wave_is_cleared_when_the_one_before_has_succeeded(capsys):
    pauses, airflow = [], Airflow(looks=2)
    assert questions.run([["a", "b"], ["c"]], airflow, pauses.append) == 0
    assert airflow.done == [("a", "b"), ("c",)]
    assert len(pauses) == 4
    assert "All have succeeded" in capsys.readouterr().err


@pytest.mark.parametrize("state", ["failed", "skipped", "upstream_failed", "removed"])
def test_what_does_not_succeed_ends_it(capsys, state):
    airflow = Airflow({"b": state})
    assert questions.run([["a", "b"], ["c"], ["d"]], airflow) == 1
    assert airflow.done == [("a", "b")]
    assert capsys.readouterr().err.splitlines()[2:] == [
        f"{state}  b",
        "not cleared, as it comes after  c",
        "not cleared, as it comes after  d",
        "Have that succeed in Airflow first. The runs after it are stale then and can be cleared: "
        "sparklineage history build, then sparklineage stale --clear",
    ]


def test_a_person_who_does_not_want_to_wait_learns_what_is_left(capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    assert questions.run([["a"], ["b"]], Airflow(looks=9), interrupted) == 1
    printed = capsys.readouterr().err
    assert "The cleared task instances go on in Airflow.\nnot at its end  a\n" in printed
    assert "not cleared, as it comes after  b" in printed


def test_nothing_is_cleared_where_nobody_can_be_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(UnusableInputError, match="--yes clears without asking"):
        questions.clear([object()], yes=False)


def test_a_plan_without_steps_is_done(capsys):
    assert questions.clear([], yes=False) == 0
    assert capsys.readouterr().out == "There is nothing to clear.\n"
