"""What Airflow is asked: for the last successful run, and how it has ended this one."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.event import pipeline, stored
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.operators.attempt import other_runs, prepare
from airflow_provider_sparklineage.operators.attempt.prepare import ended_as
from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.unit.event.test_size import wide

pytestmark = pytest.mark.airflow


def kept(run_id, state="COMPLETE", *, has_datasets=True, missing=()):
    """Make an event as a run keeps it."""
    capture = {"_schemaURL": "urn:airflow-provider-sparklineage:facet:capture:1-0-0"}
    capture["degradations"] = [{"code": code, "message": code} for code in missing]
    dataset = {"namespace": "file", "name": f"/of/{run_id}", "facets": {}}
    return {
        "eventType": state,
        "run": {"runId": run_id, "facets": {"sparkLineage_capture": capture}},
        "job": {"namespace": "tests", "name": "shop.revenue"},
        "inputs": [dataset] if has_datasets else [],
        "outputs": [],
    }


EVERY = {
    **{run_id: kept(run_id) for run_id in ("a", "b", "c", "now", "index 0", "index 4")},
    "failed": kept("failed", "FAIL"),
    "cut": kept("cut", missing=["detail_dropped"]),
    **{run_id: kept(run_id, has_datasets=False) for run_id in ("idle", "idle too")},
    "unreadable": {"encoding": "of tomorrow"},
}
DAYS = [datetime(2024, 5, day, tzinfo=UTC) for day in range(1, 10)]


class TaskInstance(SimpleNamespace):
    """Answers of Airflow on a task: its successful runs by date, and the XComs that there are.

    :param runs: ids of successful runs of each map index, the earliest first, on one day each
    :param pushed: events by run id
    :param prior: the last run of all that failed, whose XCom has been pushed last
    :param siblings: events of other map indexes of this run, in their order
    """

    def __init__(self, runs=(), *, others=None, pushed=(), prior=None, siblings=(), at=9, **of_try):
        of_try = {"map_index": -1, "try_number": 1} | of_try
        super().__init__(dag_id="shop", task_id="revenue", run_id="now", asked=[], **of_try)
        self.missed = []
        self.task = SimpleNamespace(dag_id="shop", task_id="revenue")
        self._runs = {self.map_index: runs, **(others or {})}
        self._pushed, self._prior, self._siblings = pushed, prior, siblings
        self._at = datetime(2024, 5, at, tzinfo=UTC)

    def xcom_pull(self, *, task_ids, key, map_indexes=None, include_prior_dates=False, run_id=None):
        assert (task_ids, key) == ("revenue", "sparklineage")
        assert map_indexes is None or map_indexes in self._runs
        self.asked.append("prior" if include_prior_dates else f"XCom {run_id}")
        pushed = (*self._pushed, self._prior)
        value = EVERY.get(self._prior if include_prior_dates else run_id)
        value = value if include_prior_dates or run_id in pushed else None
        if value is None and map_indexes is not None:
            self.missed.append(self.asked[-1])  # Airflow logs an error
        return value

    def get_previous_ti(self, *, state, logical_date, map_index):
        if state == "failed":
            self.asked.append("failed")
            failed = SimpleNamespace(run_id=self._prior, try_number=2, map_index=map_index)
            return failed if self._prior else None
        assert state == "success"
        before = logical_date or self._at
        self.asked.append(f"before {before.year}" if before.year > 2024 else "before")
        runs = zip(DAYS, self._runs.get(map_index, ()), strict=False)
        for date, run_id in sorted(runs, reverse=True):
            if date < before and run_id != "-":
                return SimpleNamespace(
                    run_id=run_id, try_number=2, map_index=map_index, logical_date=date
                )
        return None

    def get_dr_count(self, dag_id):
        assert dag_id == "shop"
        self.asked.append("runs")
        others = {run_id for runs in self._runs.values() for run_id in runs}
        return 1 + len(others | ({self._prior} - {None}))

    def sibling(self, _sequence, index):
        self.asked.append("siblings")
        assert isinstance(index, slice), "Airflow logs an error for one that is not there"
        return [EVERY[run_id] for run_id in self._siblings[index]]


class Archive:
    """What an archive has of runs, by their ids and the numbers of their tries."""

    def __init__(self, *kept, takes_s=0.0):
        self._kept, self._takes_s = dict(kept), takes_s
        self.asked = []

    def within(self, timeout_s):
        self.asked.append(timeout_s)
        return self

    def read(self, task):
        time.sleep(self._takes_s)
        assert (task.dag_id, task.task_id) == ("shop", "revenue")
        if (task.run_id, task.try_number) not in self._kept:
            msg = "There is no event of this try."
            raise ArchiveError(msg)
        return EVERY[self._kept[task.run_id, task.try_number]]


@pytest.fixture
def known(mocker):
    """Ask for what is known before a try: ids of the last successful run, and of what stands in."""

    def ask(ti, archive=None, *, is_dated=True):
        mocker.patch(
            "airflow.sdk.execution_time.lazy_sequence.LazyXComSequence.__getitem__",
            autospec=True,
            side_effect=getattr(ti, "sibling", None),
        )
        found = other_runs.last_known(ti, archive, is_dated=is_dated)
        if found.event is not None:  # of which of the two it is
            run_ids = {found.last.run_id, found.stand_in.run_id}
            assert found.event["run"]["runId"] in run_ids
        return tuple(run.run_id or None for run in (found.last, found.stand_in))

    return ask


ALL = tuple(EVERY)


@pytest.mark.parametrize(
    ("ti", "archive", "found"),
    [
        pytest.param(TaskInstance("ab", pushed=ALL), None, "b", id="the run before"),
        pytest.param(TaskInstance("abc", pushed=ALL, at=2), None, "a", id="of runs before"),
        pytest.param(
            TaskInstance("--ab", pushed=ALL, at=1),
            None,
            "b",
            id="a backfill before all: the latest",
        ),
        pytest.param(
            TaskInstance("ab", pushed=ALL, map_index=3), None, "b", id="the run before of its index"
        ),
        pytest.param(
            TaskInstance("ab"), Archive((("b", 2), "b")), "b", id="no XCom is left: the archive"
        ),
        pytest.param(
            TaskInstance(("a", "cut"), pushed=ALL),
            Archive((("cut", 2), "c")),
            "c",
            id="the XCom had no room for all: the archive",
        ),
        pytest.param(
            TaskInstance(("a", "cut"), pushed=ALL),
            Archive(),
            "cut",
            id="the archive has no more than the XCom",
        ),
        pytest.param(
            TaskInstance(("a", "gone"), pushed=ALL),
            Archive(),
            "a",
            id="nothing is left of the run before: the one before that",
        ),
        pytest.param(
            TaskInstance(("a", "failed"), pushed=ALL), None, "a", id="one marked as successful"
        ),
        pytest.param(
            TaskInstance(("a", "unreadable"), pushed=ALL), None, "a", id="one that cannot be read"
        ),
        pytest.param(
            TaskInstance(("a", "idle", "idle too"), pushed=ALL),
            None,
            "a",
            id="the run before did nothing: the one before that",
        ),
        pytest.param(
            TaskInstance(try_number=2),
            Archive((("now", 1), "now")),
            "now",
            id="a clear of the only run: its try before",
        ),
        pytest.param(
            TaskInstance(try_number=3),
            Archive((("now", 1), "now"), (("now", 2), "failed")),
            "now",
            id="a retry after a clear of the only run: the try that succeeded",
        ),
        pytest.param(
            TaskInstance("a", pushed=ALL, try_number=2),
            Archive((("now", 1), "failed")),
            "a",
            id="a retry: the run before",
        ),
    ],
)
def test_the_last_successful_run_is_found_in_airflow(known, ti, archive, found):
    assert known(ti, archive) == (found, None)


@pytest.mark.parametrize(
    ("ti", "found"),
    [
        pytest.param(TaskInstance(prior="a"), "a", id="what was pushed last"),
        pytest.param(TaskInstance(prior="a", map_index=3), "a", id="of its map index"),
        pytest.param(
            TaskInstance("a", prior="failed", pushed=ALL),
            "a",
            id="the last run failed: the last successful one",
        ),
        pytest.param(
            TaskInstance("a", prior="unreadable", pushed=ALL), "a", id="one that cannot be read"
        ),
    ],
)
def test_runs_without_a_date_have_the_order_of_their_xcoms(known, ti, found):
    assert known(ti, is_dated=False) == (found, None)


@pytest.mark.parametrize(
    ("ti", "archive", "stand_in"),
    [
        pytest.param(TaskInstance(), Archive(), None, id="the first run: nothing"),
        pytest.param(
            TaskInstance(map_index=5, siblings=["index 0", "index 4"]),
            None,
            "index 4",
            id="the first run of a mapped task: the index before it",
        ),
        pytest.param(
            TaskInstance(map_index=5, siblings=["failed"], others={0: "a"}, pushed=ALL),
            None,
            "a",
            id="an index that is new: another's last run",
        ),
        pytest.param(
            TaskInstance(map_index=0, others={-1: "a"}, pushed=ALL),
            None,
            "a",
            id="mapped from now on: the last run of the task",
        ),
        pytest.param(
            TaskInstance(others={0: "a"}, pushed=ALL), None, "a", id="no longer mapped: its index"
        ),
        pytest.param(
            TaskInstance(prior="failed"), None, "failed", id="only failures: the last of them"
        ),
        pytest.param(
            TaskInstance(try_number=2),
            Archive((("now", 1), "failed")),
            "failed",
            id="a retry of the first run: the try before",
        ),
        pytest.param(
            TaskInstance(prior="idle", try_number=2),
            Archive((("now", 1), "idle")),
            None,
            id="only runs that did nothing",
        ),
        pytest.param(
            SimpleNamespace(map_index=None, run_id="now"), None, None, id="Airflow does not answer"
        ),
    ],
)
def test_where_there_is_no_successful_run_something_stands_in_for_it(known, ti, archive, stand_in):
    assert known(ti, archive) == (None, stand_in)


@pytest.mark.parametrize(
    ("ti", "asked"),
    [
        pytest.param(
            TaskInstance("ab", pushed=ALL), ["before", "XCom b"], id="a run like all others"
        ),
        pytest.param(
            TaskInstance(),
            ["before", "before 9999", "before 9999", "failed"],
            id="the first run of all",
        ),
        pytest.param(
            TaskInstance(map_index=5, siblings=["index 4"]),
            ["before", "before 9999", "siblings"],
            id="the first run of a mapped task",
        ),
        pytest.param(
            TaskInstance("a", map_index=5, siblings=["index 4"]),
            ["before", "XCom a", "before", "before 9999", "siblings"],
            id="a run is asked once",
        ),
    ],
)
def test_little_is_asked(known, ti, asked):
    known(ti)
    assert ti.asked == asked


@pytest.mark.parametrize(
    ("ti", "is_dated"),
    [
        pytest.param(TaskInstance(), True, id="the first run of all"),
        pytest.param(TaskInstance(), False, id="the first run of all, without a date"),
        pytest.param(TaskInstance(map_index=0), True, id="the first run of a mapped task"),
        pytest.param(TaskInstance(prior="gone"), True, id="the run before failed without lineage"),
        pytest.param(TaskInstance("a"), True, id="the run before had no lineage"),
    ],
)
def test_airflow_logs_no_error_for_lineage_that_is_not_there(known, ti, is_dated):
    assert known(ti, is_dated=is_dated) == (None, None)
    assert ti.missed == []


def test_of_many_runs_of_which_nothing_is_left_a_few_are_asked(known):
    ti = TaskInstance([f"gone {n}" for n in range(8)], pushed=ALL)
    known(ti)
    assert len([asked for asked in ti.asked if asked.startswith("XCom")]) == 3


def test_a_large_event_of_the_last_run_is_in_memory_as_it_was_sent(monkeypatch):
    event = event_of(wide(), ReadReport(), header=HEADER)
    limit = len(json.dumps(event)) // 3
    of_last = other_runs.EarlierLineage(last=stored.last_run(event), event=event)
    monkeypatch.setattr(other_runs, "last_known", lambda *_args, **_more: of_last)
    options = {"max_event_bytes": str(limit), "backend": "generic"}
    settings = resolve(Source(Origin.CONFIGURATION, options))
    prepared = prepare.prepared(settings, None, {"ti": SimpleNamespace()})
    for known in (prepared.known, prepared.sent):
        assert known.event == pipeline.sendable(event, settings.adaptation) != event
        assert known.last == stored.last_run(known.event)


def test_an_archive_that_does_not_answer_leaves_time_for_airflow(known, monkeypatch):
    monkeypatch.setattr(other_runs, "ARCHIVE_S", 0.05)
    archive = Archive(takes_s=0.1)
    ti = TaskInstance("abc", map_index=5, siblings=["index 4"], try_number=4)
    assert known(ti, archive) == (None, "index 4")
    assert archive.asked == [0.05], "it is asked once, and for so long"


def test_no_more_is_asked_when_time_is_up(known, monkeypatch):
    monkeypatch.setattr(other_runs, "PREVIOUS_RUN_TIMEOUT_S", -1.0)
    archive = Archive((("a", 2), "a"))
    ti = TaskInstance("a", pushed=ALL, prior="a", try_number=2, map_index=3)
    assert known(ti, archive, is_dated=False) == (None, None)
    assert (ti.asked, archive.asked) == ([], [])


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
