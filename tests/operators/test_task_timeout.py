"""Airflow's execution_timeout, which may fire at any step once Spark has ended."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_sparklineage.lineage import bundle as bundles
from airflow_provider_sparklineage.operators.attempt import collect, publish, submit, task_try
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow

FILES = {str(Path(module.__file__)) for module in (collect, bundles, publish)}


class _Firing:
    """Fires once, at the n-th call of a function of the steps after the job."""

    def __init__(self, number):
        self.number = number
        self.calls = 0
        self.has_fired = False

    def __call__(self, frame, what, _):
        if what == "call" and frame.f_code.co_filename in FILES and not self.has_fired:
            self.calls += 1
            if self.calls == self.number:
                self.has_fired = True
                raise AirflowTaskTimeout


@pytest.fixture
def ended(spark_submit, execute, monkeypatch):
    """Execute a task whose timeout fires at the n-th call; give its event, and whether it fired."""
    finish = task_try.Try.finish

    def ended(number, failing=lambda: None):
        firing = _Firing(number)

        def finish_in_time(*args):
            failing()
            sys.setprofile(firing)
            try:
                finish(*args)
            finally:
                sys.setprofile(None)

        monkeypatch.setattr(task_try.Try, "finish", finish_in_time)
        spark_submit.does(events="staging_chain")
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
        execute(task)
        return task.get_openlineage_facets_on_complete(None), firing.has_fired

    yield ended
    gc.enable()  # the timeout may have fired where that was about to be done


def codes(event):
    return [d["code"] for d in event.run_facets["sparkLineage_capture"].degradations]


def test_a_timeout_at_any_step_leaves_the_task_green_and_an_event(ended):
    number, cut = 1, 0
    while True:
        event, has_fired = ended(number)
        if not has_fired:
            break
        assert event.outputs or "collection_cut" in codes(event), number
        cut += not event.outputs
        number += 1
    assert number > 12
    assert cut > 3


def test_a_timeout_while_collecting_gives_up_leaves_an_event_too(ended, monkeypatch):
    def failing():
        monkeypatch.setattr(bundles, "lineage_of_try", lambda *_: 1 / 0)

    number = 1
    while True:
        event, has_fired = ended(number, failing)
        found = codes(event)
        if not has_fired:
            break
        assert {"collection_cut", "merge_failed"} & set(found), number
        number += 1
    assert number > 6


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_garbage_is_collected_again_once_the_job_is_set_up_however_that_ends(
    spark_submit, execute, monkeypatch, strict, fails
):
    seen = []

    def injected(*given):
        seen.append(gc.isenabled())
        return 1 / 0 if fails else inject(*given)

    inject = submit.submittable
    monkeypatch.setattr(submit, "submittable", injected)
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", strict=strict)
    with pytest.raises(ZeroDivisionError) if fails and strict else nullcontext():
        execute(task)
    assert seen == [False]
    assert gc.isenabled()


def test_garbage_is_collected_again_after_the_merge_however_it_ends(
    spark_submit, execute, monkeypatch
):
    seen = []
    monkeypatch.setattr(bundles, "accumulate", lambda *_: seen.append(gc.isenabled()) or 1 / 0)
    execute(SparkLineageSubmitOperator(task_id="revenue", application="job.py"))
    assert seen == [False]
    assert gc.isenabled()
