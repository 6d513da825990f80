"""An EMR on EKS that passes job runs on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.operators.emr import SparkLineageEmrContainerOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import emr_double
from tests.services.emr_serverless import JobRunSubmitter, starting

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from tests.cluster.submitting import Submitter
    from tests.services.local_spark import LocalSpark

DRIVER = "sparkSubmitJobDriver"


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what starts job runs in this EMR on EKS."""
    monkeypatch.setattr(releases, "EMR", (releases.Release("emr-7.5.0.*", behind.version),))
    start, drivers = starting(behind, DRIVER)

    def state(run):
        return drivers[run.id].state("RUNNING", "COMPLETED", "FAILED")

    with emr_double.containers(monkeypatch, start, state) as service:
        make = partial(
            SparkLineageEmrContainerOperator,
            virtual_cluster_id=service.place,
            release_label="emr-7.5.0-latest",
            name="job",
            poll_interval=1,
        )
        yield JobRunSubmitter(make, DRIVER)
