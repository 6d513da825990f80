"""An EMR Serverless that passes job runs on to a Spark of this machine."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.emr import SparkLineageEmrServerlessOperator
from airflow_provider_sparklineage.spark.submit import releases
from tests import emr_double, record_events
from tests.cluster.submitting import Submitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pytest
    from airflow.sdk import BaseOperator

    from tests.services.local_spark import Driver, LocalSpark

DRIVER = "sparkSubmit"


class JobRunSubmitter(Submitter):
    """Starts applications as job runs.

    :param make: the operator's class, with the arguments of the service
    :param driver: the key of a Spark application in ``job_driver``
    """

    def __init__(self, make: Callable[..., BaseOperator], driver: str) -> None:
        super().__init__()
        self._make = make
        self._driver = driver

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of an application; it asks EMR for the end."""
        path = f"file://{record_events.APPLICATIONS}/{application}.py"
        flags = shlex.join(record_events.conf_options(dict(conf or {})))
        driver = {"entryPoint": path, "entryPointArguments": list(arguments)}
        if flags:
            driver["sparkSubmitParameters"] = flags
        return self._make(
            job_driver={self._driver: driver},
            execution_role_arn=emr_double.ROLE,
            **{"task_id": "job", **options},
        )


def starting(behind: LocalSpark, driver: str) -> tuple[Callable[..., None], dict[str, Driver]]:
    """Give what starts a job run with spark-submit, and the drivers by the ids of job runs.

    :param driver: the key of a Spark application in ``job_driver``
    """
    drivers = {}

    def start(run):
        given = run.job_driver[driver]
        flags = shlex.split(given.get("sparkSubmitParameters", ""))
        words = [*record_events.conf_options(emr_double.properties(run)), *flags]
        application = [given["entryPoint"], *given.get("entryPointArguments", ())]
        drivers[run.id] = behind.start([*words, *application])

    return start, drivers


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what starts job runs in this EMR Serverless."""
    monkeypatch.setattr(releases, "EMR", (releases.Release("emr-7.5.0.*", behind.version),))
    start, drivers = starting(behind, DRIVER)

    def state(run):
        return drivers[run.id].state("RUNNING", "SUCCESS", "FAILED")

    with emr_double.serverless(monkeypatch, start, state) as service:

        def make(**options: Any) -> BaseOperator:
            defaults = {"application_id": service.place, "waiter_delay": 1}
            return SparkLineageEmrServerlessOperator(
                **{**defaults, "waiter_max_attempts": 180, **options}
            )

        yield JobRunSubmitter(make, DRIVER)
