"""Rules for some tasks: what their globs are for."""

import pytest

from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.task_rules import TaskNames, TaskRule, is_like

TASK = TaskNames("sales", "etl.load", ("shop.Own", "Own"), ("daily", "spark"))


@pytest.mark.parametrize(
    ("globs", "matches"),
    [
        pytest.param({"dag_id": ("sales",)}, True, id="a name"),
        pytest.param({"dag_id": ("Sales",)}, False, id="in another case"),
        pytest.param({"dag_id": ("sale",)}, False, id="a part of a name"),
        pytest.param({"dag_id": ("s*",), "task_id": ("etl.*",)}, True, id="globs of two keys"),
        pytest.param({"dag_id": ("s*",), "task_id": ("load",)}, False, id="one key is not"),
        pytest.param({"task_id": ("x", "etl.{load,merge}")}, True, id="one of several"),
        pytest.param({"operator": ("Own",), "tags": ("spark",)}, True, id="one value of several"),
        pytest.param({"tags": ("weekly",)}, False, id="no value"),
    ],
)
def test_a_rule_is_for_tasks_with_a_value_for_each_key(globs, matches):
    assert TaskRule(tuple(globs.items())).matches(TASK) is matches


@pytest.mark.parametrize(
    ("glob", "value", "matches"),
    [
        pytest.param("a.b", "a.b", True, id="a dot"),
        pytest.param("a.b", "axb", False, id="a dot is no sign"),
        pytest.param("a\\*", "a*", True, id="an escaped star"),
        pytest.param("a[", "a[", True, id="a bracket alone"),
        pytest.param("[ab]", "b", True, id="a set"),
        pytest.param("", "", True, id="nothing"),
    ],
)
def test_names_and_globs_are_of_one_language(glob, value, matches):
    assert is_like(glob, value) is matches


def test_names_are_compared_and_not_translated(monkeypatch):
    """A task compares those of all rules before its job starts."""
    monkeypatch.setattr(task_rules, "compiled", lambda glob: pytest.fail(glob))
    assert not is_like("sales_400", "sales")
