"""A Serverless for Apache Spark that passes batches on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip(
    "airflow.providers.google", reason="Airflow's provider for Google is not installed"
)

from airflow_provider_sparklineage.operators.dataproc import SparkLineageDataprocBatchOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests.cluster.submitting import Submitter
from tests.services.dataproc_job import passing_on, spark_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark

VERSION = "tests"
"""The label of the local Spark's release."""


class BatchSubmitter(Submitter):
    """Creates batches of applications."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        runtime = {"version": VERSION, "properties": dict(conf or {})}
        batch = {"pyspark_batch": spark_of(application, arguments), "runtime_config": runtime}
        return SparkLineageDataprocBatchOperator(batch=batch, region="eu", task_id="job", **options)


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what creates batches of this service."""
    monkeypatch.setattr(
        releases, "DATAPROC_SERVERLESS", (releases.Release(VERSION, behind.version),)
    )
    with passing_on(behind, monkeypatch, "SUCCEEDED", "FAILED"):
        yield BatchSubmitter()
