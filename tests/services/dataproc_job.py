"""A Dataproc that passes the jobs of its clusters on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip(
    "airflow.providers.google", reason="Airflow's provider for Google is not installed"
)

from airflow_provider_sparklineage.operators.dataproc import SparkLineageDataprocSubmitOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import dataproc_double
from tests.cluster.submitting import Submitter
from tests.record_events import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark

IMAGE = "tests"
"""The label of the local Spark's release."""


class JobSubmitter(Submitter):
    """Submits applications as jobs of a cluster, which reads those of the tests from here."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        job = {"placement": {"cluster_name": "c1"}}
        job["pyspark_job"] = spark_of(application, arguments) | {"properties": dict(conf or {})}
        return SparkLineageDataprocSubmitOperator(job=job, region="eu", task_id="job", **options)


def spark_of(application: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    """Give the part of a job or batch that names its application."""
    path = application if "/" in application else f"file://{APPLICATIONS}/{application}.py"
    return {"main_python_file_uri": path, "args": list(arguments)}


@contextmanager
def passing_on(
    behind: LocalSpark, monkeypatch: pytest.MonkeyPatch, succeeded: str, failed: str
) -> Iterator[Any]:
    """Give a double of Dataproc that passes on what it is given.

    :param succeeded: the state of what has succeeded
    :param failed: the state of what has failed
    """
    drivers = []

    def start(*parts: Any) -> None:
        drivers.append(behind.start_with(*parts))

    def state() -> str:
        return drivers[-1].state("RUNNING", succeeded, failed)

    with dataproc_double.dataproc(monkeypatch, does=start, now=state) as double:
        yield double


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what submits jobs to this Dataproc."""
    monkeypatch.setattr(releases, "DATAPROC", (releases.Release(IMAGE, behind.version),))
    with passing_on(behind, monkeypatch, "DONE", "ERROR") as double:
        double.image = IMAGE
        yield JobSubmitter()
