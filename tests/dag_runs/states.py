"""States of a task's run, each with the events that it is to give and what a Marquez then shows.

A state is a function of :class:`Runs`, which runs a DAG of one task in Airflow, with a spark-submit
that writes recorded events, and hands what Airflow sends to a Marquez: the model's, or a real one.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "tests"
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
WRITTEN = ["/lake/revenue", "/lake/staging/enriched_orders"]
"""What ``staging_chain`` reads and writes."""

DAYS = [datetime(2024, 5, day, tzinfo=UTC) for day in range(1, 31)]


class Sent(NamedTuple):
    """An event, as far as it is compared."""

    kind: str
    inputs: list[str]
    outputs: list[str]


class Shown(NamedTuple):
    """What Marquez shows of the job after an event."""

    inputs: list[str]
    outputs: list[str]
    state: str


class Runs:
    """A task, its runs, and the Marquez that hears of them."""

    def __init__(
        self, marquez: Any, name: str, spark_submit: Any, run_dag: Any, events_of: Any, prefix: str
    ) -> None:
        self.marquez = marquez
        self.spark_submit = spark_submit
        self.name = name
        self._run_dag, self._events_of = run_dag, events_of
        self._prefix = prefix
        self._seen = 0
        self._dags = itertools.count()
        self.events: list[dict[str, Any]] = []
        """Those of the latest run."""

    def dag(self, **arguments: Any) -> Any:
        """Make a DAG of one task called ``task``."""
        from airflow.sdk import DAG

        from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

        with DAG(self.name, schedule="@daily", start_date=DAYS[0], catchup=False) as dag:
            SparkLineageSubmitOperator(
                task_id="task", application="job.py", **{"observe": False, **arguments}
            )
        return dag

    def run(self, day: datetime | None = DAYS[0], dag: Any = None, **arguments: Any) -> list[Sent]:
        """Run the task and hand its events to Marquez."""
        self._run_dag(dag or self.dag(**arguments), day)
        return [sent for sent, _ in self.told()]

    def told(self, task: str = "task") -> list[tuple[Sent, Shown]]:
        """Hand new events of the task to Marquez; give them, and what it shows after each."""
        job = f"{self.name}.{task}"
        every = self._events_of(job, 0)
        self.events, self._seen = every[self._seen :], len(every)
        told = []
        for event in self.events:
            self.marquez.receive(self._private(event))
            page = self.marquez.job(self._prefix + NAMESPACE, job)
            told.append((_sent(event), Shown(*page)))
        return told

    def run_and_show(
        self, day: datetime | None = DAYS[0], dag: Any = None, **arguments: Any
    ) -> list[tuple[Sent, Shown]]:
        """Run the task; give its events, and what Marquez shows of its job after each."""
        self._run_dag(dag or self.dag(**arguments), day)
        return self.told()

    def dataset(self, name: str) -> Any:
        """Show a dataset's page."""
        return self.marquez.dataset("file", self._prefix + name)

    def _private(self, event: dict[str, Any]) -> dict[str, Any]:
        return event


def _sent(event: dict[str, Any]) -> Sent:
    return Sent(
        event["eventType"],
        [d["name"] for d in event["inputs"]],
        [d["name"] for d in event["outputs"]],
    )


STATES: list[Callable[[Runs], None]] = []


def state(function: Callable[[Runs], None]) -> Callable[[Runs], None]:
    STATES.append(function)
    return function


@state
def the_first_run_and_the_second(runs: Runs) -> None:
    runs.spark_submit.does("staging_chain")
    first = runs.run_and_show()
    assert first == [
        (Sent("START", [], []), Shown([], [], "RUNNING")),
        (Sent("COMPLETE", READ, WRITTEN), Shown(READ, WRITTEN, "COMPLETED")),
    ]
    second = runs.run_and_show(DAYS[1])
    assert second == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("COMPLETE", READ, WRITTEN), Shown(READ, WRITTEN, "COMPLETED")),
    ]


@state
def a_failure_after_a_success(runs: Runs) -> None:
    runs.spark_submit.does("staging_chain")
    runs.run()
    runs.spark_submit.does(exit=1)
    assert runs.run_and_show(DAYS[1]) == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("FAIL", READ, WRITTEN), Shown(READ, WRITTEN, "FAILED")),
    ]
