"""A Dataproc that runs the jobs of workflows, one after another, on a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip(
    "airflow.providers.google", reason="Airflow's provider for Google is not installed"
)

from airflow_provider_sparklineage.operators.dataproc import SparkLineageDataprocWorkflowOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import dataproc_double
from tests.cluster.submitting import Submitter
from tests.services.dataproc_job import IMAGE, spark_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark


class WorkflowSubmitter(Submitter):
    """Instantiates workflows: of one application, or of those in ``more``."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        more: tuple[str, ...] = (),
        **options: Any,
    ) -> BaseOperator:
        jobs = [
            {"step_id": name, "pyspark_job": spark_of(name, arguments) | {"properties": {**conf}}}
            for name in (application, *more)
        ]
        software = {"software_config": {"image_version": IMAGE}}
        placement = {"managed_cluster": {"cluster_name": "c1", "config": software}}
        template = {"id": "shop", "placement": placement, "jobs": jobs}
        return SparkLineageDataprocWorkflowOperator(
            template=template, region="eu", task_id="job", **options
        )


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what instantiates workflows in this Dataproc."""
    waiting: list[tuple[Any, ...]] = []
    drivers = []

    def state() -> str:
        now = drivers[-1].state("RUNNING", "DONE", "ERROR") if drivers else "DONE"
        if now != "DONE" or not waiting:
            return now
        drivers.append(behind.start_with(*waiting.pop(0)))
        return "RUNNING"

    monkeypatch.setattr(releases, "DATAPROC", (releases.Release(IMAGE, behind.version),))
    with dataproc_double.dataproc(
        monkeypatch, does=lambda *parts: waiting.append(parts), now=state
    ):
        yield WorkflowSubmitter()
