"""States of a task's run, each with the events that it is to give and what a Marquez then shows.

A state is a function of :class:`Runs`, which runs a DAG in Airflow, with a spark-submit that writes
recorded events, and hands what Airflow sends to a Marquez: the model's, or a real one.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from tests.observed_writes import written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMESPACE = "tests"
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
WRITTEN = ["/lake/revenue", "/lake/staging/enriched_orders"]
"""What ``staging_chain`` reads and writes."""
REVENUE = "/lake/revenue"

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


Seen = list[tuple[Sent, Shown]]

GOOD: Seen = [
    (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
    (Sent("COMPLETE", READ, WRITTEN), Shown(READ, WRITTEN, "COMPLETED")),
]
"""A run like the one before it."""


class Runs:
    """A task, its runs, and the Marquez that hears of them."""

    def __init__(
        self, marquez: Any, name: str, spark_submit: Any, run_dag: Any, events_of: Any
    ) -> None:
        self.marquez = marquez
        self.spark_submit = spark_submit
        self.name = name
        self.events: list[dict[str, Any]] = []
        """Those of the latest run."""
        self.texts: list[Any] = []
        """What the page of ``REVENUE`` says in words after each of them."""
        self._run_dag, self._events_of = run_dag, events_of
        self._seen: dict[str, int] = {}

    def dag(self, *tasks: str, mapped: Any = None, **arguments: Any) -> Any:
        """Make a DAG of tasks one after the other, of one called ``task`` if none are named."""
        from airflow.sdk import DAG

        from airflow_provider_sparklineage.operators.spark_submit import (
            SparkLineageSubmitOperator as Operator,
        )

        given = {"application": "job.py", "observe": False, **arguments}
        with DAG(self.name, schedule="@daily", start_date=DAYS[0], catchup=False) as dag:
            before = None
            for task_id in tasks or ("task",):
                if mapped is not None:
                    Operator.partial(task_id=task_id, **given).expand(application_args=mapped)
                    continue
                task = Operator(task_id=task_id, **given)
                if before is not None:
                    before >> task
                before = task
        return dag

    def run(self, day: datetime | None = DAYS[0], dag: Any = None, **arguments: Any) -> Seen:
        """Run the DAG; give the task's events, and what Marquez shows of its job after each."""
        self._run_dag(dag or self.dag(**arguments), day)
        return self.send_new_events()

    def send_new_events(self, task: str = "task", at_least: int = 0) -> Seen:
        """Hand new events of a task to Marquez; give them, and what it shows after each."""
        job = f"{self.name}.{task}"
        seen = self._seen.get(job, 0)
        every = self._events_of(job, seen + at_least)
        self.events, self._seen[job] = every[seen:], len(every)
        shown, self.texts = [], []
        for event in self.events:
            self.marquez.receive(event)
            self.texts.append(self.marquez.texts("file", REVENUE))
            shown.append((_sent(event), Shown(*self.marquez.job(NAMESPACE, job))))
        return shown

    def dataset(self, name: str = REVENUE) -> Any:
        """Show a dataset's page."""
        return self.marquez.dataset("file", name)

    def job_text(self) -> Any:
        """Show what the page of the task's job begins with."""
        return self.marquez.job_text(NAMESPACE, f"{self.name}.task")

    def codes(self) -> list[str]:
        """Give the codes of what is missing from the last event, and why."""
        capture = self.events[-1]["run"]["facets"]["sparkLineage_capture"]
        return [d["code"] for d in capture["degradations"]]

    def good_run(self, day: datetime | None = DAYS[0], **arguments: Any) -> Seen:
        """Run the task with a job that reads and writes its tables."""
        self.spark_submit.does("staging_chain")
        return self.run(day, **arguments)


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


# --- ends of a run --------------------------------------------------------------------------------


@state
def the_first_run_and_the_second(runs: Runs) -> None:
    assert runs.good_run() == [
        (Sent("START", [], []), Shown([], [], "RUNNING")),
        (Sent("COMPLETE", READ, WRITTEN), Shown(READ, WRITTEN, "COMPLETED")),
    ]
    first = runs.dataset()
    assert first.versions == 1
    assert ("revenue", "/lake/orders", "amount") in first.edges
    assert runs.good_run(DAYS[1]) == GOOD
    # One version for each run, and the columns are what they were.
    assert runs.dataset() == first._replace(versions=2)


@state
def a_failure_after_a_success(runs: Runs) -> None:
    runs.good_run()
    before = runs.dataset()
    runs.spark_submit.does(exit=1)
    assert runs.run(DAYS[1]) == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("FAIL", READ, WRITTEN), Shown(READ, WRITTEN, "FAILED")),
    ]
    assert "last_known" in runs.codes()
    # The page shows the last good run; START and FAIL are one version in the history.
    assert runs.dataset() == before._replace(versions=2)
    assert runs.good_run(DAYS[2]) == GOOD
    assert runs.dataset() == before._replace(versions=3)


@state
def a_failure_of_the_first_run(runs: Runs) -> None:
    runs.spark_submit.does(exit=1)
    assert runs.run(reads=["/lake/declared"]) == [
        (Sent("START", ["/lake/declared"], []), Shown([], [], "RUNNING")),
        (Sent("FAIL", ["/lake/declared"], []), Shown(["/lake/declared"], [], "FAILED")),
    ]


@state
def a_failure_of_an_action(runs: Runs) -> None:
    runs.spark_submit.does("failing_action", exit=1)
    _, (failed, shown) = runs.run()
    assert failed == Sent("FAIL", ["/lake/orders"], ["/lake/checked_orders", "/lake/good_orders"])
    assert shown == Shown(failed.inputs, failed.outputs, "FAILED")
    outputs = {d["name"]: d["facets"] for d in runs.events[-1]["outputs"]}
    assert outputs["/lake/checked_orders"].keys() == {"dataSource"}
    assert "columnLineage" in outputs["/lake/good_orders"]


@state
def what_pages_say(runs: Runs) -> None:
    runs.good_run(doc_md="Revenue by customer.")
    before_first, first = runs.texts
    assert before_first is None
    assert f"ritten by {runs.name}.task, 20" in first.text
    revenue = "= sum((amount * rate)), from orders.amount, rates.rate"
    assert first.columns["revenue"] == revenue
    # Nothing was observed, so nobody knows of which partitions.
    wrote = ": wrote revenue, enriched_orders (partitions not known); "
    assert f"{wrote}read customers (partitions not known), orders" in runs.job_text()
    assert f"revenue {revenue}" in runs.job_text()
    assert runs.job_text().endswith("\n\n—\n\nRevenue by customer.")
    # A failure has written nothing, and the page says what was written last, at START already.
    runs.spark_submit.does(exit=1)
    runs.run(DAYS[1], doc_md="Revenue by customer.")
    assert runs.texts == [first, first]
    assert "(the run failed): no read or write was seen" in runs.job_text()
    runs.good_run(DAYS[2], doc_md="Revenue by customer.")
    of_start, second = runs.texts
    assert of_start == first
    assert second.columns == first.columns


@state
def what_pages_say_of_a_table_that_the_next_task_reads(runs: Runs) -> None:
    def read_only(_context: Any) -> None:
        runs.spark_submit.does("writes_nothing")

    runs.spark_submit.does("staging_chain")
    dag = runs.dag("one", "two", reads=[REVENUE], on_success_callback=read_only)
    runs._run_dag(dag, DAYS[0])
    runs.send_new_events("one")
    [*_, written] = runs.texts
    assert f"ritten by {runs.name}.one, 20" in written.text
    # Marquez would take the texts away when an event names the table and has none.
    runs.send_new_events("two")
    assert runs.texts == [written, written]


@state
def a_retry(runs: Runs) -> None:
    runs.good_run()
    before = runs.dataset()
    runs.spark_submit.does(exit=1)
    seen = runs.run(
        DAYS[1],
        retries=1,
        retry_delay=timedelta(0),
        on_retry_callback=lambda _context: runs.spark_submit.does("staging_chain"),
    )
    assert [sent for sent, _ in seen] == [
        Sent("START", READ, WRITTEN),
        Sent("FAIL", READ, WRITTEN),
        Sent("START", READ, WRITTEN),
        Sent("COMPLETE", READ, WRITTEN),
    ]
    assert [shown for _, shown in seen] == [
        Shown(READ, WRITTEN, state) for state in ("RUNNING", "FAILED", "RUNNING", "COMPLETED")
    ]
    assert len({event["run"]["runId"] for event in runs.events}) == 2
    # One for each try: neither has two.
    assert runs.dataset() == before._replace(versions=3)


@state
def a_skip(runs: Runs) -> None:
    from airflow.providers.common.compat.sdk import AirflowSkipException

    def skip(_context: Any) -> None:
        raise AirflowSkipException

    runs.good_run()
    before = runs.dataset()
    assert runs.run(DAYS[1], pre_execute=skip) == GOOD
    assert runs.codes() == ["not_submitted"]
    assert runs.dataset().columns == before.columns
    assert runs.dataset().edges == before.edges


@state
def an_execution_timeout(runs: Runs) -> None:
    runs.good_run()
    runs.spark_submit.does("staging_chain", sleep=60)
    assert runs.run(DAYS[1], execution_timeout=timedelta(seconds=2)) == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("FAIL", READ, WRITTEN), Shown(READ, WRITTEN, "FAILED")),
    ]
    assert "last_known" not in runs.codes()


@state
def on_kill_of_a_successful_task(runs: Runs) -> None:
    runs.good_run()
    # As when what follows the task's success takes longer than [core] task_success_overtime.
    assert runs.good_run(DAYS[1], on_success_callback=lambda c: c["task"].on_kill()) == GOOD


# --- ended by a person ----------------------------------------------------------------------------


def _marked(runs: Runs, as_state: str) -> Seen:
    """Run the task, and end it while its job runs as Airflow does when a person marks it."""

    def mark(context: Any) -> None:
        from airflow.models.taskinstance import TaskInstance
        from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
        from airflow.utils.session import create_session
        from airflow.utils.state import TaskInstanceState
        from sqlalchemy import select
        from sqlalchemy.orm import joinedload

        ti = context["ti"]
        while not runs.spark_submit.ran:
            time.sleep(0.05)
        with create_session() as session:
            stored = session.scalars(
                select(TaskInstance)
                .where(TaskInstance.id == ti.id)
                .options(joinedload(TaskInstance.dag_run))
            ).one()
            stored.state = TaskInstanceState(as_state)
            session.flush()
            listener: Any = get_openlineage_listener()
            if as_state == "success":
                listener.on_task_instance_success(previous_state=None, task_instance=stored)
            else:
                listener.on_task_instance_failed(
                    previous_state=None, task_instance=stored, error="marked"
                )
        context["task"].on_kill()

    def begin(context: Any) -> None:
        threading.Thread(target=mark, args=(context,), daemon=True).start()

    runs.spark_submit.does("staging_chain", sleep=60)
    runs._run_dag(runs.dag(pre_execute=begin), DAYS[1])
    return runs.send_new_events(at_least=2)


@state
def marked_as_success_while_it_runs(runs: Runs) -> None:
    runs.good_run()
    runs.spark_submit.forgets()
    assert _marked(runs, "success") == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("COMPLETE", [], []), Shown(READ, WRITTEN, "COMPLETED")),
    ]


@state
def marked_as_failed_while_it_runs(runs: Runs) -> None:
    runs.good_run()
    runs.spark_submit.forgets()
    assert _marked(runs, "failed") == [
        (Sent("START", READ, WRITTEN), Shown(READ, WRITTEN, "RUNNING")),
        (Sent("FAIL", [], []), Shown(READ, WRITTEN, "FAILED")),
    ]


# --- kinds of runs --------------------------------------------------------------------------------


@state
def mapped_tasks(runs: Runs) -> None:
    runs.spark_submit.does("staging_chain")
    mapped = [["a"], ["b"]]
    assert runs.run(dag=runs.dag(mapped=mapped)) == [
        (Sent("START", [], []), Shown([], [], "RUNNING")),
        GOOD[1],
        *GOOD,  # START has what the index before it has drawn
    ]
    assert runs.run(DAYS[1], dag=runs.dag(mapped=mapped)) == GOOD * 2
    assert len({event["run"]["runId"] for event in runs.events}) == 2


def _of_two_jobs(runs: Runs, **arguments: Any) -> Any:
    """Make a DAG of two map indexes with tables of their own; either may run first."""

    def choose(context: Any) -> None:
        runs.spark_submit.does(("staging_chain", "failing_action")[context["ti"].map_index])

    return runs.dag(mapped=[["a"], ["b"]], pre_execute=choose, **arguments)


@state
def map_indexes_that_write_different_tables(runs: Runs) -> None:
    _, (one, _), (start, shown), (other, after) = runs.run(dag=_of_two_jobs(runs))
    assert one.outputs != other.outputs
    assert start == one._replace(kind="START")
    assert shown == Shown(one.inputs, one.outputs, "RUNNING")
    # What START has named stays in the graph of this run, and goes with the next of this index.
    assert after.outputs == sorted({*one.outputs, *other.outputs})
    for sent, shown in runs.run(DAYS[1], dag=_of_two_jobs(runs)):
        if sent.kind == "START":  # takes nothing out of the graph, whichever index drew it
            assert shown == after._replace(state="RUNNING")
        else:
            assert shown == Shown(sent.inputs, sent.outputs, "COMPLETED")
        after = shown


@state
def declared_outputs_of_a_map_index_are_not_those_of_another(runs: Runs) -> None:
    dag = _of_two_jobs(runs, writes=["/lake/good_orders"])
    _, (one, _), (start, _), (other, after) = runs.run(dag=dag)
    assert start == Sent("START", one.inputs, ["/lake/good_orders"])
    assert after.outputs == other.outputs


@contextmanager
def _cleared() -> Iterator[None]:
    """Let ``dag.test()`` run again what it has run, as Airflow does when a person clears it."""
    from airflow.models import dagrun
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    def found(*, dag: Any, logical_date: Any, session: Any, **_: Any) -> Any:
        run = session.scalar(
            select(dagrun.DagRun).where(
                dagrun.DagRun.dag_id == dag.dag_id, dagrun.DagRun.logical_date == logical_date
            )
        )
        run.state, run.dag = DagRunState.RUNNING, dag
        session.commit()
        return run

    with mock.patch.object(dagrun, "get_or_create_dagrun", found):
        yield


@state
def a_clear_of_the_only_run(runs: Runs) -> None:
    runs.good_run()
    with _cleared():
        assert runs.good_run() == GOOD
    assert runs.dataset().versions == 2


@state
def a_clear_of_the_only_run_of_a_mapped_task(runs: Runs) -> None:
    runs.spark_submit.does("staging_chain")
    dag = runs.dag(mapped=[["a"], ["b"]])
    runs.run(dag=dag)
    with _cleared():
        assert runs.run(dag=dag) == GOOD * 2


@state
def a_task_that_is_mapped_from_now_on(runs: Runs) -> None:
    runs.good_run()
    assert runs.run(DAYS[1], dag=runs.dag(mapped=[["a"], ["b"]])) == GOOD * 2
    assert runs.good_run(DAYS[2]) == GOOD


@state
def a_run_after_failures_alone(runs: Runs) -> None:
    runs.spark_submit.does("failing_action", exit=1)
    _, (failed, _) = runs.run()
    assert failed.outputs == ["/lake/checked_orders", "/lake/good_orders"]
    (start, shown), (complete, after) = runs.good_run(DAYS[1])
    assert start == failed._replace(kind="START")
    assert shown == Shown(failed.inputs, failed.outputs, "RUNNING")
    assert complete == Sent("COMPLETE", READ, WRITTEN)
    assert after.outputs == [*failed.outputs, *WRITTEN]
    assert runs.good_run(DAYS[2])[-1] == GOOD[-1]


@state
def a_retry_of_the_first_run(runs: Runs) -> None:
    runs.spark_submit.does("failing_action", exit=1)
    _, (failed, _), (start, shown), _ = runs.run(
        retries=1,
        retry_delay=timedelta(0),
        on_retry_callback=lambda _context: runs.spark_submit.does("staging_chain"),
    )
    assert start == failed._replace(kind="START")
    assert shown == Shown(failed.inputs, failed.outputs, "RUNNING")


@state
def a_backfill_of_earlier_dates(runs: Runs) -> None:
    runs.good_run(DAYS[9])
    assert runs.good_run(DAYS[2]) == GOOD


@contextmanager
def undated(partition_key: str | None = None) -> Iterator[None]:
    """Let ``dag.test()`` keep earlier runs without a logical date: it takes all of them for one."""
    from airflow.models import dagrun
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType

    def made(*, dag: Any, session: Any, **kwargs: Any) -> Any:
        run = dag.create_dagrun(
            run_type=DagRunType.MANUAL, state=DagRunState.RUNNING, session=session, **kwargs
        )
        run.partition_key = partition_key
        session.commit()
        return run

    with mock.patch.object(dagrun, "get_or_create_dagrun", made):
        yield


@state
def runs_without_a_logical_date(runs: Runs) -> None:
    with undated():
        runs.good_run(None)
        assert runs.good_run(None) == GOOD


@state
def runs_of_a_partition(runs: Runs) -> None:
    arguments = {
        "writes": ["/lake/revenue/dt={{ partition_key }}"],
        "partition_key_dimensions": ["dt"],
    }
    with undated("2024-05-06"):
        runs.good_run(None, **arguments)
        assert runs.good_run(None, **arguments) == GOOD
    assert runs.dataset().partitions == "dt=2024-05-06"


# --- what the job did -----------------------------------------------------------------------------


@state
def a_job_that_wrote_another_partition_than_expected(runs: Runs) -> None:
    declared = {"observe": True, "writes": ["/lake/revenue/dt={{ ds }}"]}
    text = "wrote the expected partitions"
    for day, written_day, success in ((DAYS[0], DAYS[1], False), (DAYS[1], DAYS[1], True)):
        runs.spark_submit.does("staging_chain", observations=written(f"{written_day:%Y-%m-%d}"))
        assert runs.run(day, **declared)[-1][0].kind == "COMPLETE"
        assert runs.dataset().assertions == {text: success}
        [test] = runs.events[-1]["run"]["facets"]["test"]["tests"]
        assert test["status"] == ("pass" if success else "fail")


@state
def a_job_that_wrote_nothing(runs: Runs) -> None:
    runs.good_run()
    before = runs.dataset()
    runs.spark_submit.does("writes_nothing")
    (start, _), (complete, shown) = runs.run(DAYS[1])
    assert start == Sent("START", READ, WRITTEN)
    assert complete.outputs == []
    # What START has named stays in the graph of this run, and goes with the next.
    assert shown.outputs == WRITTEN
    assert runs.dataset().columns == before.columns
    (start, _), (_, shown) = runs.run(DAYS[2])
    assert start == Sent("START", complete.inputs, [])
    assert shown == Shown(complete.inputs, [], "COMPLETED")


@state
def a_declared_dataset_that_was_not_accessed(runs: Runs) -> None:
    declared = {"reads": ["/lake/plans"], "writes": ["/lake/audit", REVENUE]}
    inputs, outputs = sorted([*READ, "/lake/plans"]), sorted([*WRITTEN, "/lake/audit"])
    first = runs.good_run(**declared)
    assert [sent for sent, _ in first] == [
        Sent("START", ["/lake/plans"], ["/lake/audit", REVENUE]),
        Sent("COMPLETE", inputs, outputs),
    ]
    # Nobody knew the schema of what was declared: START and COMPLETE are two versions, once.
    assert (runs.dataset().versions, runs.dataset("/lake/audit").versions) == (2, 1)
    columns = runs.dataset().columns
    second = runs.good_run(DAYS[1], **declared)
    assert [sent for sent, _ in second] == [
        Sent("START", inputs, outputs),
        Sent("COMPLETE", inputs, outputs),
    ]
    assert second[-1][1] == Shown(inputs, outputs, "COMPLETED")
    assert (runs.dataset().versions, runs.dataset("/lake/audit").versions) == (3, 2)
    # A table that is declared and for once not written keeps its columns.
    runs.spark_submit.does("writes_nothing")
    runs.run(DAYS[2], **declared)
    assert runs.dataset().columns == columns
    assert runs.dataset().versions == 4


@state
def two_tasks_that_write_the_same_table(runs: Runs) -> None:
    runs.spark_submit.does("staging_chain")
    runs._run_dag(runs.dag("one", "two"), DAYS[0])
    for task in ("one", "two"):
        assert runs.send_new_events(task)[-1][1] == Shown(READ, WRITTEN, "COMPLETED")
    assert runs.dataset().versions == 2
    runs._run_dag(runs.dag("one", "two"), DAYS[1])
    for task in ("one", "two"):
        assert runs.send_new_events(task) == GOOD
    assert runs.dataset().versions == 4
