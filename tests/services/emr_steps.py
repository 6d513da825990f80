"""A cluster of Amazon EMR that passes steps on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.emr import SparkLineageEmrStepsOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import emr_double, record_events
from tests.cluster.submitting import Submitter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest
    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark


def step(application: str, *arguments: str, conf: Mapping[str, str]) -> dict[str, Any]:
    """Give the step of an application."""
    path = f"file://{record_events.APPLICATIONS}/{application}.py"
    words = ["spark-submit", *record_events.conf_options(dict(conf)), path, *arguments]
    command = {"Jar": "command-runner.jar", "Args": words}
    return {"Name": application, "ActionOnFailure": "CONTINUE", "HadoopJarStep": command}


class StepsSubmitter(Submitter):
    """Adds applications as steps to a cluster."""

    def __init__(self, cluster: str) -> None:
        super().__init__()
        self._cluster = cluster

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of a step; it asks EMR for the end."""
        return self.of_steps(step(application, *arguments, conf=conf or {}), **options)

    def of_steps(self, *steps: dict[str, Any], **options: Any) -> BaseOperator:
        """Make the operator of several steps."""
        return SparkLineageEmrStepsOperator(
            job_flow_id=self._cluster,
            steps=list(steps),
            wait_for_completion=True,
            waiter_delay=1,
            waiter_max_attempts=180,
            **{"task_id": "job", **options},
        )


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[StepsSubmitter]:
    """Give what adds steps to this cluster, which runs one after the other."""
    monkeypatch.setattr(releases, "EMR", (releases.Release("emr-7.5.0.*", behind.version),))
    waiting, drivers = [], {}

    def state(step):
        running = [driver.state("RUNNING", "", "") for driver in drivers.values()]
        if waiting and not any(running):
            started = waiting.pop(0)
            drivers[started.id] = behind.start(started.args[1:])
        if step.id not in drivers:
            return "PENDING"
        return drivers[step.id].state("RUNNING", "COMPLETED", "FAILED")

    with emr_double.cluster(monkeypatch, waiting.append, state) as cluster:
        yield StepsSubmitter(cluster.cluster)
