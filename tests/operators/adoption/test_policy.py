"""The policy: what Airflow asks about each task of a file, and what it must never break."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib import metadata

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, TaskGroup

from airflow_provider_sparklineage.operators.adoption import adopting, policy
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow


class Shop(SparkSubmitOperator):
    pass


def tasks():
    SparkSubmitOperator(task_id="load", application="job.py")
    with TaskGroup("week"):
        Shop(task_id="merge", application="job.py")
        Shop.partial(task_id="each").expand(application=["a.py", "b.py"])
    SparkLineageSubmitOperator(task_id="ours", application="job.py")
    BashOperator(task_id="bash", bash_command="true")


def adopted(of):
    found = {name: getattr(task, "operator_class", type(task)) for name, task in of.items()}
    return {name for name, cls in found.items() if getattr(cls, "is_adopted", False)}


ALL = {"load", "week.merge", "week.each"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        pytest.param("off", set(), id="off"),
        pytest.param("", set(), id="nothing"),
        pytest.param("all", ALL, id="all"),
        pytest.param('[{"task_id": "week.*"}]', {"week.merge", "week.each"}, id="group"),
        pytest.param('[{"operator": "*.Shop"}]', {"week.merge", "week.each"}, id="class"),
        pytest.param('[{"tags": "sp*"}]', ALL, id="tag"),
        pytest.param('[{"dag_id": "shop"}, {"task_id": "load", "exclude": true}]',
                     ALL - {"load"}, id="but one"),
        pytest.param('[{"dag_id": "other"}]', set(), id="another DAG"),
    ],
)  # fmt: skip
def test_tasks_are_adopted_by_the_rules(parsed, value, names):
    assert adopted(parsed(tasks, value, tags=["spark"])) == names


def test_without_configuration_nothing_is_adopted(parsed, monkeypatch):
    with DAG("shop", schedule=None) as dag:
        tasks()
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__ADOPT", raising=False)
    for task in dag.tasks:
        policy.task_policy(task)
    assert adopted(dag.task_dict) == set()


def test_what_is_adopted_once_stays_as_it_is(parsed):
    found = parsed(tasks)
    kept = {name: getattr(task, "operator_class", type(task)) for name, task in found.items()}
    for task in found.values():
        policy.task_policy(task)
    again = {name: getattr(task, "operator_class", type(task)) for name, task in found.items()}
    assert again == kept


@pytest.mark.parametrize(
    "value", ["ture", "- dag_id: [", "/no/such.yaml", "- dag_id: a\n  exclud: true", "%(x)s"]
)
def test_rules_that_cannot_be_read_adopt_nothing_and_say_so_once(parsed, caplog, value):
    caplog.set_level(logging.WARNING)
    policy._Latest.problem = ""
    assert adopted(parsed(tasks, value)) == set()
    parsed(tasks, value)
    assert len([r for r in caplog.records if "adopt" in r.name]) == 1


def test_a_task_that_fails_when_it_is_looked_at_is_left_alone(parsed, caplog, monkeypatch):
    def broken(task):
        msg = "looked at"
        raise RuntimeError(msg)

    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(adopting, "adopt", broken)
    policy._Latest.problem = ""
    assert adopted(parsed(tasks)) == set()
    assert "is left without lineage (RuntimeError: looked at)" in caplog.text
    policy.task_policy(object())
    policy.task_policy(None)


def test_the_configuration_is_read_once_for_a_dag_and_never_for_one_without_spark(
    parsed, monkeypatch
):
    reads = []
    configured = policy.configured
    monkeypatch.setattr(policy, "configured", lambda: reads.append(1) or configured())
    parsed(tasks)
    assert len(reads) == 1
    parsed(tasks)
    assert len(reads) == 2
    parsed(lambda: [BashOperator(task_id=f"t{n}", bash_command="true") for n in range(9)])
    assert len(reads) == 2


LOAD = "from airflow_provider_sparklineage.operators.adoption import policy"
IMPORTS = """
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
"""
ASK = """
with DAG("shop", schedule=None):
    policy.task_policy(SparkSubmitOperator(task_id="a", application="a.py"))
"""


def imported(code, before=""):
    """Give our modules that some code imports, in a process of its own."""
    new = "print(*({*sys.modules} - before))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{before}\nbefore = {{*sys.modules}}\n{code}\n{new}"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = done.stdout.splitlines()[-1].split() if done.stdout.strip() else []
    return {m.partition(".")[2] for m in found if m.startswith("airflow_provider_sparklineage")}


def test_the_policy_imports_next_to_nothing():
    """As every process of Airflow does, when it starts."""
    light = {"operators", *(f"operators.adoption{m}" for m in ("", ".kinds", ".policy"))}
    assert imported(LOAD, before="import airflow.policies") <= light


@pytest.mark.parametrize(("value", "imports"), [("off", False), ("all", True)])
def test_while_adoption_is_off_no_more_is_imported_for_a_task_of_spark(adopt, value, imports):
    adopt(value)
    assert bool(imported(ASK, before=f"import airflow.settings\n{LOAD}\n{IMPORTS}")) is imports


FILE = """
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

class Own(SparkSubmitOperator):
    pass

with DAG("shop", schedule=None):
    Own(task_id="load", application="job.py")
    Own.partial(task_id="each").expand(application=["a.py"])
"""


@pytest.mark.smoke
@pytest.mark.parametrize(("value", "names"), [("all", {"load", "each"}), ("off", set())])
def test_airflow_asks_about_each_task_of_a_file(parse, value, names):
    assert adopted(parse(FILE, value).task_dict) == names


def test_the_package_names_the_policy_to_airflow():
    [found] = [e for e in metadata.entry_points(group="airflow.policy") if e.name == "sparklineage"]
    assert found.load() is policy
