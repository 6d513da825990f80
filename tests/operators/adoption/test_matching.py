"""Rules and globs that are for no task, and tasks with several rules."""

import pytest

from airflow_provider_sparklineage.cli.adoption_survey import Matches
from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.task_rules import TaskNames, TaskRule

pytestmark = pytest.mark.airflow

SALES = [TaskNames("sales", task_id, ("x.Submit", "Submit"), ("spark",)) for task_id in "abc"]
OLD = TaskNames("old", "a", ("x.Other",))
TASKS = [*SALES, OLD]


def rules(*by_key):
    return [
        TaskRule(tuple((key, tuple(globs)) for key, globs in keys.items()), line)
        for line, keys in enumerate(by_key, start=1)
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"dag_id": ["s*"], "task_id": ["a"]}, [], id="for a task"),
        pytest.param({"dag_id": ["s*", "old"]}, [], id="each glob for one"),
        pytest.param(
            {"dag_id": ["sales", "legacy_*"]},
            ["Rule 1 (line 1): no DAG with a Spark operator is like 'legacy_*'."],
            id="one glob of two",
        ),
        pytest.param(
            {"dag_id": ["old"], "task_id": ["a", "b"]},
            ["Rule 1 (line 1): no task of a Spark operator is like 'b'."],
            id="a glob that is for tasks of other DAGs",
        ),
        pytest.param(
            {"dag_id": ["gone"], "task_id": ["a"]},
            ["Rule 1 (line 1) is for no task: no DAG with a Spark operator is like 'gone'."],
            id="no DAG",
        ),
        pytest.param(
            {"operator": ["y.*"], "tags": ["daily"]},
            [
                "Rule 1 (line 1) is for no task: no Spark operator is like 'y.*'; no tag of a DAG "
                "with a Spark operator is like 'daily'."
            ],
            id="neither operator nor tag",
        ),
        pytest.param(
            {"dag_id": ["old"], "tags": ["spark"]},
            ["Rule 1 (line 1) is for no task: no task has all that it asks for."],
            id="each key for others",
        ),
    ],
)
def test_what_is_for_no_task_is_named(keys, expected):
    assert [*Matches.of(rules(keys), TASKS).unmatched(TASKS)] == expected


def test_of_no_tasks_each_rule_is_for_none():
    (text,) = Matches.of(rules({"dag_id": ["*"]}), []).unmatched([])
    assert text == "Rule 1 (line 1) is for no task: no DAG with a Spark operator is like '*'."


def test_tasks_with_several_rules_are_named_by_those_rules():
    matches = Matches.of(rules({"task_id": ["a"]}, {"dag_id": ["sales"]}, {"dag_id": ["*"]}), TASKS)
    a, b, c = SALES
    assert matches.numbers() == {a: [0, 1, 2], b: [1, 2], c: [1, 2], OLD: [0, 2]}
    assert [*matches.doubled({*SALES})] == [
        "Rule 1 (line 1) acts for sales.a, and never rule 2 (line 2) or rule 3 (line 3).",
        "Rule 2 (line 2) acts for sales.b, sales.c, and never rule 3 (line 3).",
    ]


def test_many_tasks_are_counted():
    tasks = [TaskNames("d", f"t{n}") for n in range(9)]
    (text,) = Matches.of(rules({"dag_id": ["d"]}, {"task_id": ["t*"]}), tasks).doubled({*tasks})
    assert "acts for d.t0, d.t1, d.t2 and 6 more, and never" in text


def test_a_rule_looks_only_at_tasks_of_its_dags(monkeypatch):
    """Of 400 DAGs with 400 rules, each for one: work that grows with both is seconds."""
    asked = []
    matches = TaskRule.matches
    monkeypatch.setattr(TaskRule, "matches", lambda *args: asked.append(args) or matches(*args))
    tasks = [TaskNames(f"d{n}", f"t{m}") for n in range(20) for m in range(5)]
    found = Matches.of(rules(*({"dag_id": [f"d{n}"]} for n in range(20))), tasks)
    assert [len(of_rule) for of_rule in found.tasks] == [5] * 20
    assert len(asked) == len(tasks)


def test_globs_of_a_rule_are_compiled_once_for_all_dags():
    """More globs than are kept compiled would be compiled for each task anew."""
    compiled = task_rules.compiled
    compiled.cache_clear()
    size = compiled.cache_parameters()["maxsize"] + 10
    tasks = [TaskNames(f"d{n}", "t") for n in range(5)]
    Matches.of(rules(*({"dag_id": [f"x{n}*"]} for n in range(size))), tasks)
    assert compiled.cache_info().misses == size
