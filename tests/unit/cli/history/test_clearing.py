"""A plan is cleared wave after wave."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.cli.history import clearing
from airflow_provider_sparklineage.history.queries.answers import ByHand, Plan, Step
from airflow_provider_sparklineage.model.exceptions import UnusableInputError


class Airflow:
    """Runs what is cleared, each in so many looks at it, with the state that it is to have."""

    namespace = "prod"
    STRANDED = "stranded: its DAG run was closed"

    def __init__(self, states=None, looks=0, stranded=0, closing=0):
        self.states_of = states or {}
        self.looks = looks
        self.stranded = stranded
        self.looks_while_closing = closing
        self.done = []

    def obstacles(self, _):
        return {}

    def closing(self, _):
        self.looks_while_closing -= 1
        return {"dag run"} if self.looks_while_closing >= 0 else set()

    def clear(self, keys):
        self.done.append(tuple(keys))
        self.waiting = self.looks

    def states(self, keys):
        self.waiting -= 1
        if self.waiting >= 0:
            return {}
        states = {k: self.states_of.get(k, "success") for k in keys}
        if self.stranded > 0:
            self.stranded -= 1
            states[keys[0]] = self.STRANDED
        return states


def step(task, namespace="prod", wave=0, runs=(), map_index=-1):
    return Step("dag", task, "1", map_index, "", None, wave, (), namespace, True, runs)


def test_a_wave_is_cleared_when_the_one_before_has_succeeded(capsys):
    pauses, airflow = [], Airflow(looks=2)
    assert clearing.run([["a", "b"], ["c"]], airflow, pauses.append) == 0
    assert airflow.done == [("a", "b"), ("c",)]
    assert len(pauses) == 4
    assert capsys.readouterr().err.splitlines()[3:] == [
        *("success  a", "success  b", "success  c"),
        "All have succeeded. Bring the history up to date: sparklineage history build",
    ]


def test_a_task_instance_whose_dag_run_was_closed_is_cleared_again(capsys):
    airflow = Airflow(stranded=1)
    assert clearing.run([["a", "b"]], airflow, lambda _: None) == 0
    assert airflow.done == [("a", "b"), ("a",)]
    assert "cleared again, as Airflow had just closed its DAG run  a" in capsys.readouterr().err


def test_a_task_instance_that_is_stranded_again_and_again_ends_it(capsys):
    airflow = Airflow(stranded=9)
    assert clearing.run([["a"], ["b"]], airflow, lambda _: None) == 1
    assert airflow.done == [("a",)] * 3
    assert "stranded: its DAG run was closed  a" in capsys.readouterr().err


def test_a_wave_waits_for_dag_runs_that_are_about_to_be_closed(capsys):
    pauses, airflow = [], Airflow(closing=3)
    assert clearing.run([["a"]], airflow, pauses.append) == 0
    assert len(pauses) == 3
    assert "Waiting until Airflow's scheduler has closed the DAG runs dag run" in (
        capsys.readouterr().err
    )


def test_each_minute_says_what_is_waited_for(capsys):
    assert clearing.run([["a", "b"]], Airflow(looks=61), lambda _: None) == 0
    assert capsys.readouterr().err.count("Waiting for a, b") == 2


def test_tasks_of_another_airflow_are_left_out(capsys):
    pytest.importorskip("airflow.models", reason="keys of task instances take Airflow")
    steps = [step("a"), step("a", "staging"), step("b", wave=1)]
    waves, is_left_out = clearing.possible(steps, Airflow())
    assert [[key.task_id for key in wave] for wave in waves] == [["a"], ["b"]]
    assert is_left_out
    assert "namespace is 'staging'; here it is 'prod'" in capsys.readouterr().err


def test_each_map_index_is_cleared():
    pytest.importorskip("airflow.models", reason="keys of task instances take Airflow")
    waves, _ = clearing.possible([step("a", map_index=n) for n in range(3)], Airflow())
    assert [key.map_index for key in waves[0]] == [0, 1, 2]


def test_a_plan_that_lacks_a_run_is_not_cleared():
    plan = Plan((step("a", runs=("1", "2")),), (ByHand("b", "3", None, 0),))
    assert plan.without(["1", "2", "3"]) == set()
    with pytest.raises(UnusableInputError, match="it lacks 4"):
        clearing.clear(plan, ["1", "4"], yes=True)


@pytest.mark.parametrize("state", ["failed", "skipped", "upstream_failed", "removed"])
def test_what_does_not_succeed_ends_it(capsys, state):
    airflow = Airflow({"b": state})
    assert clearing.run([["a", "b"], ["c"], ["d"]], airflow) == 1
    assert airflow.done == [("a", "b")]
    assert capsys.readouterr().err.splitlines()[2:] == [
        "success  a",
        f"{state}  b",
        "not cleared, as it comes after  c",
        "not cleared, as it comes after  d",
        "Have that succeed in Airflow first. The runs after it are stale then and can be cleared: "
        "sparklineage history build, then sparklineage stale --clear",
    ]


def test_a_person_who_does_not_want_to_wait_learns_what_is_left(capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    assert clearing.run([["a"], ["b"]], Airflow(looks=9), interrupted) == 1
    printed = capsys.readouterr().err
    assert "The cleared task instances go on in Airflow.\nnot at its end  a\n" in printed
    assert "not cleared, as it comes after  b" in printed


def test_nothing_is_cleared_where_nobody_can_be_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(UnusableInputError, match="--yes clears without asking"):
        clearing.clear(Plan((step("a"),)), (), yes=False)


def test_a_plan_without_steps_is_done(capsys):
    assert clearing.clear(Plan(), (), yes=False) == 0
    assert capsys.readouterr().out == "There is nothing to clear.\n"
