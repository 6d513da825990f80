"""What Airflow is asked: for the last successful run, and how it has ended this one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.model.last_run import of_event
from airflow_provider_sparklineage.operators import previous_run
from airflow_provider_sparklineage.operators.previous_run import Last
from airflow_provider_sparklineage.operators.reporting import ended_as

pytestmark = pytest.mark.airflow


def kept(run_id, state="COMPLETE"):
    """Make an event as a run keeps it."""
    capture = {"_schemaURL": "urn:airflow-provider-sparklineage:facet:capture:1-0-0"}
    return {
        "eventType": state,
        "run": {"runId": run_id, "facets": {"sparkLineage_capture": capture}},
        "job": {"namespace": "tests", "name": "shop.revenue"},
        "inputs": [{"namespace": "file", "name": f"/of/{run_id}", "facets": {}}],
        "outputs": [],
    }


class TaskInstance(SimpleNamespace):
    """Answers of Airflow: what runs pushed, and which run was before which."""

    def __init__(self, *, prior=None, pushed=None, before=None, latest=None, map_index=-1):
        super().__init__(
            dag_id="shop", task_id="revenue", run_id="now", map_index=map_index, asked=[]
        )
        self._prior, self._pushed = prior, pushed or {}
        self._before, self._latest = before, latest

    def xcom_pull(self, *, task_ids, key, map_indexes, include_prior_dates=False, run_id=None):
        assert (task_ids, key, map_indexes) == ("revenue", "sparklineage", self.map_index)
        self.asked.append(run_id)
        return self._prior if include_prior_dates else self._pushed.get(run_id)

    def get_previous_ti(self, *, state, logical_date, map_index):
        assert (state, map_index) == ("success", self.map_index)
        run_id = self._before if logical_date is None else self._latest
        return run_id and SimpleNamespace(run_id=run_id, try_number=2)


class Archive:
    """What an archive has of runs."""

    def __init__(self, **kept):
        self._kept = kept

    def within(self, _timeout_s):
        return self

    def read(self, task):
        assert (task.dag_id, task.task_id, task.try_number) == ("shop", "revenue", 2)
        if task.run_id not in self._kept:
            msg = "There is no event of this run."
            raise ArchiveError(msg)
        return self._kept[task.run_id]


EVERY = {"a": kept("a"), "b": kept("b"), "failed": kept("failed", "FAIL")}


@pytest.mark.parametrize(
    ("ti", "archive", "found"),
    [
        pytest.param(TaskInstance(prior=kept("a")), None, "a", id="what was pushed last"),
        pytest.param(TaskInstance(prior=kept("a"), map_index=3), None, "a", id="a mapped task"),
        pytest.param(
            TaskInstance(prior=kept("x", "FAIL"), before="a", pushed=EVERY),
            None,
            "a",
            id="the last run failed: the last successful one",
        ),
        pytest.param(
            TaskInstance(latest="b", pushed=EVERY),
            None,
            "b",
            id="a backfill before all: the latest",
        ),
        pytest.param(
            TaskInstance(before="a"), Archive(**EVERY), "a", id="no XCom is left: the archive"
        ),
        pytest.param(
            TaskInstance(before="gone", latest="b"),
            Archive(**EVERY),
            "b",
            id="neither has the one before",
        ),
        pytest.param(
            TaskInstance(prior={"encoding": "of tomorrow"}, before="a", pushed=EVERY),
            None,
            "a",
            id="a value that cannot be read",
        ),
        pytest.param(
            TaskInstance(before="failed", pushed=EVERY), None, None, id="marked as successful"
        ),
        pytest.param(TaskInstance(), Archive(), None, id="the first run"),
        pytest.param(
            SimpleNamespace(map_index=None, run_id="now"), None, None, id="Airflow does not answer"
        ),
    ],
)
def test_the_last_successful_run_is_found_in_airflow(ti, archive, found):
    is_dated = getattr(ti, "_prior", None) is None
    last = previous_run.last_known(ti, archive, is_dated=is_dated)
    assert last == (Last(of_event(EVERY[found]), EVERY[found]) if found else Last())


def test_a_run_is_asked_once():
    ti = TaskInstance(before="a", latest="a")
    previous_run.last_known(ti, is_dated=True)
    assert ti.asked == ["a"]


def test_no_more_is_asked_when_time_is_up(monkeypatch):
    monkeypatch.setattr(previous_run, "TIMEOUT_S", -1.0)
    ti = TaskInstance(prior=kept("x", "FAIL"), before="a", pushed=EVERY)
    assert previous_run.last_known(ti, is_dated=False) == Last()
    assert ti.asked == [None]


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "removed"])
def test_airflow_reports_how_it_has_ended_a_try(state):
    assert ended_as(state_of(state)) == state


@pytest.mark.parametrize("state", ["running", "restarting", None])
def test_a_try_that_airflow_waits_for_has_not_ended(state):
    assert ended_as(state_of(state)) is None


def test_a_try_of_which_airflow_reports_nothing_has_not_ended():
    assert ended_as(SimpleNamespace(map_index=3)) is None


def state_of(state):
    def get_task_states(*, dag_id, task_ids, run_ids, map_index):
        assert (dag_id, task_ids, run_ids, map_index) == ("shop", ["revenue"], ["now"], None)
        return {"now": {"revenue": state}}

    return SimpleNamespace(
        dag_id="shop",
        task_id="revenue",
        run_id="now",
        map_index=-1,
        get_task_states=get_task_states,
    )
