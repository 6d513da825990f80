"""AWS Glue without Spark: moto keeps the runs of jobs, and lets a driver deliver."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moto.glue.models import FakeJob

from tests.emr_double import aws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest


@contextmanager
def glue(
    monkeypatch: pytest.MonkeyPatch,
    does: Callable[[Any, Any], object],
    now: Callable[[Any], str] = lambda _: "SUCCEEDED",
) -> Iterator[list[Any]]:
    """Give the runs that are started; a job is made by the operator that starts its run.

    :param does: is called with each job, and the run of it that is started
    :param now: gives the state of a run, whenever Glue is asked for it
    """
    runs = []
    start, get = FakeJob.start_job_run, FakeJob.get_job_run

    def start_job_run(self, *args, **kwargs):
        run_id = start(self, *args, **kwargs)
        run = self.job_runs[-1]
        run._transitions = []  # else moto would end it
        runs.append(run)
        does(self, run)
        return run_id

    def get_job_run(self, *args, **kwargs):
        run = get(self, *args, **kwargs)
        run.status = now(run)
        return run

    monkeypatch.setattr(FakeJob, "start_job_run", start_job_run)
    monkeypatch.setattr(FakeJob, "get_job_run", get_job_run)
    with aws(monkeypatch):
        yield runs
