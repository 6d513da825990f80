"""What the tasks before a task wrote in the same run: their XComs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from airflow.sdk import DAG, BaseOperator, task_group

from airflow_provider_sparklineage.operators.attempt import other_runs
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow


def kept(task_id):
    """Make an event as a run keeps it."""
    capture = {"_schemaURL": "urn:airflow-provider-sparklineage:facet:capture:1-0-0"}
    return {
        "eventType": "COMPLETE",
        "run": {"runId": "1", "facets": {"sparkLineage_capture": capture}},
        "job": {"namespace": "tests", "name": f"shop.{task_id}"},
        "inputs": [],
        "outputs": [],
    }


class TaskInstance:
    """One whose run has XComs."""

    def __init__(self, **pushed):
        self._pushed = pushed
        self.asked = []

    def xcom_pull(self, *, task_ids, key):  # of one map index, Airflow would log an error
        assert key == "sparklineage"
        self.asked.append(task_ids)
        return self._pushed.get(task_ids)


def chain(*task_ids):
    """Make a DAG of tasks one after the other, and of one that has no lineage; give the last."""
    with DAG("shop", schedule=None):
        tasks = [SparkLineageSubmitOperator(task_id=t, application="job.py") for t in task_ids]
        other = BaseOperator(task_id="other")
        for before, after in pairwise(tasks):
            before >> after
        other >> tasks[-1]
    return tasks[-1]


def found(ti, task):
    return [
        event["job"]["name"].removeprefix("shop.") for event in other_runs.upstream_events(ti, task)
    ]


def test_the_nearest_come_first_and_only_tasks_with_lineage_are_asked():
    ti = TaskInstance(a=kept("a"), b=kept("b"), z=kept("z"))
    assert found(ti, chain("a", "z", "report")) == ["z", "a"]
    assert ti.asked == ["z", "a"]


def test_a_task_without_an_event_has_none():
    ti = TaskInstance(a={"encoding": "of tomorrow"}, z=kept("z"))
    assert found(ti, chain("a", "b", "z", "report")) == ["z"]


def test_tasks_of_a_mapped_group_are_not_asked_as_they_have_an_event_for_each_index():
    with DAG("shop", schedule=None):
        report = SparkLineageSubmitOperator(task_id="report", application="job.py")

        @task_group
        def shops(name):
            SparkLineageSubmitOperator(task_id="a", application=name)

        shops.expand(name=["north.py", "south.py"]) >> report
    ti = TaskInstance(**{"shops.a": kept("a")})
    assert found(ti, report) == []
    assert ti.asked == []


def test_so_many_are_asked_and_no_more(monkeypatch):
    ti = TaskInstance()
    assert found(ti, chain(*"abcdefghi", "report")) == []
    assert len(ti.asked) == other_runs.MAX_UPSTREAM_TASKS
    monkeypatch.setattr(other_runs, "UPSTREAM_TIMEOUT_S", -1.0)
    ti = TaskInstance(a=kept("a"))
    assert found(ti, chain("a", "report")) == []
    assert ti.asked == []


def test_a_task_with_none_before_it_asks_nothing():
    ti = TaskInstance()
    assert found(ti, chain("report")) == []
    assert ti.asked == []


def test_an_airflow_that_does_not_answer_is_as_good_as_none():
    assert other_runs.upstream_events(object(), chain("a", "report")) == ()
    assert other_runs.upstream_events(TaskInstance(), object()) == ()
