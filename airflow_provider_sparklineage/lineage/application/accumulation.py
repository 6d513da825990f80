"""Events of a spark-submit to a :class:`SparkApplication`: accumulated by run id, then repaired.

The listener reports one action (a SQL execution) in two to ten events, none of them complete,
in an order that threads can shuffle. So what is kept of a run is a join over its events, the same
for every order and every repetition of them:

=====================  ==========================================================================
what                   which value stays
=====================  ==========================================================================
datasets, locations    the union over all events of the run; once full is full
a facet of a dataset   the one of the latest event that has it non-empty
``version`` and        those of the earliest event: later ones may be after the run's own write
statistics of inputs
``outputStatistics``   the latest before the end: COMPLETE may give those of another action
properties             all values: they are the session's, and change while it runs
outcome                FAIL is sticky (Spark's listener sends COMPLETE after FAIL for one run)
=====================  ==========================================================================

What the listener reports wrongly is repaired (:mod:`.repairs`). Of what does not fit in memory
(:mod:`.room`), facets go first: datasets are known without them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import field

from airflow_provider_sparklineage.lineage.application.dataset_reports import (
    ORDER,
    DatasetReports,
    KeptReports,
    Rank,
)
from airflow_provider_sparklineage.lineage.application.room import Room
from airflow_provider_sparklineage.model.terms import Frozen, Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.events import (
        ExceptionFacet,
        SparkEvent,
    )


class ActionState(StrEnum):
    """How an action ended, as far as its events show."""

    COMPLETE = "complete"
    FAILED = "failed"
    UNFINISHED = "unfinished"


class Action(Frozen, frozen=True):
    """One SQL execution, or one RDD job that read or wrote data."""

    run_id: str
    job_name: str
    job_type: str
    started: datetime
    ended: datetime | None
    state: ActionState
    inputs: tuple[ActionDataset, ...]
    outputs: tuple[ActionDataset, ...]
    sql: str = ""
    properties: Mapping[str, frozenset[str]] = field(default_factory=dict)
    error: str = ""
    """Class and error condition of the exception that it failed by; empty if not known."""
    witness: Witness = Witness.LISTENER
    """The observer's where the listener reported no such action, or not of these datasets."""
    moved: Mapping[DatasetName, DatasetName] = field(default_factory=dict)
    """Datasets under the listener's name, where rules name them otherwise."""

    @property
    def label(self) -> str:
        """The physical node of the job name, for messages: ``execute_insert_into_…``."""
        return self.job_name.split(".", 2)[1] if "." in self.job_name else self.job_name


class SparkApplication(Frozen, frozen=True):
    """All that one spark-submit reported, actions in the order of their start."""

    run_id: str
    namespace: str
    job_name: str
    actions: tuple[Action, ...]
    last_event: datetime | None = None
    begun: bool = False
    """Whether its start is among the events."""
    finished: bool = False
    """Whether its end is, or, of several SparkContexts one after the other, that of each."""
    events: int = 0
    foreign_events: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How much of what there was no room for in memory."""
    application_id: str = ""
    spark_version: str = ""
    listener_version: str = ""


def accumulate(events: Iterable[SparkEvent], run_id: str) -> SparkApplication:
    """Make one application of events in any order.

    :param run_id: OpenLineage run id of the application; events of other applications are counted
        and left
    """
    runs: dict[str, _Run] = {}
    own = _ApplicationRun(run_id)
    room = Room()
    inputs = KeptReports(room, is_input=True)
    outputs = KeptReports(room, is_input=False)
    for event in events:
        if event.run.run_id == run_id:
            own.add(event)
        elif event.parent_run_id == run_id:
            # Of a driver on YARN the application's own START does not say what its id is.
            own.identify(event)
            run = runs.get(event.run.run_id)
            if run is None:
                if not room.action(len(event.inputs or ()) + len(event.outputs or ())):
                    continue
                run = runs[event.run.run_id] = _Run(event.run.run_id, room, inputs, outputs)
            run.add(event)
        else:
            own.foreign += 1
    actions = sorted((r.action() for r in runs.values()), key=lambda a: (a.started, a.run_id))
    last_events = [own.last, *(r.last for r in runs.values())]
    return SparkApplication(
        run_id=run_id,
        namespace=own.namespace,
        job_name=own.job_name,
        actions=tuple(actions),
        last_event=max((at for at in last_events if at is not None), default=None),
        begun=bool(own.starts),
        finished=bool(own.ends) and len(own.ends) >= len(own.starts),
        events=own.events + sum(r.events for r in runs.values()),
        foreign_events=own.foreign,
        left_out=dict(room.left_out),
        application_id=own.application_id,
        spark_version=own.spark_version,
        listener_version=own.listener_version,
    )


# --- one run --------------------------------------------------------------------------------------


class _Run:
    """The events of one action so far, joined."""

    def __init__(self, run_id: str, room: Room, inputs: KeptReports, outputs: KeptReports) -> None:
        self.run_id = run_id
        self._room = room
        self.events = 0
        self._first: Rank | None = None
        self._job: tuple[Rank, str] | None = None
        self._job_type = ""
        self._ended: datetime | None = None
        self._failed = False
        self._sql = ""
        self._error = ""
        self._properties: dict[str, set[str]] = {}
        self._inputs = DatasetReports(inputs)
        self._outputs = DatasetReports(outputs)

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        rank = event.event_time, ORDER.get(event.event_type or "OTHER", 1)
        if self._first is None or rank < self._first:
            self._first = rank
        # The job's name gets its output suffix once the output is known: the latest is fullest.
        job = rank, event.job.name
        if self._job is None or job > self._job:
            self._job = job
        self._job_type = max(self._job_type, event.job_type)
        if event.event_type in ("COMPLETE", "FAIL", "ABORT"):
            self._ended = max(self._ended or event.event_time, event.event_time)
            self._failed = self._failed or event.event_type != "COMPLETE"
        facets = event.job.facets
        if facets and facets.sql:
            self._sql = max(self._sql, self._room.statement(facets.sql.query or ""))
        run_facets = event.run.facets
        if run_facets and run_facets.exception:
            self._error = max(self._error, _kind(run_facets.exception))
        if run_facets and run_facets.spark_properties:
            for key, value in (run_facets.spark_properties.properties or {}).items():
                self._properties.setdefault(key, set()).add(str(value))
        self._inputs.add(event.inputs, rank)
        self._outputs.add(event.outputs, rank)

    @property
    def last(self) -> datetime | None:
        """When its latest event was."""
        return self._job[0][0] if self._job else None

    def action(self) -> Action:
        first, job = self._first, self._job
        if first is None or job is None:
            msg = f"run {self.run_id} has no events"
            raise ValueError(msg)
        state = ActionState.COMPLETE
        if self._failed:
            state = ActionState.FAILED
        elif self._ended is None:
            state = ActionState.UNFINISHED
        return Action(
            run_id=self.run_id,
            job_name=job[1],
            job_type=self._job_type,
            started=first[0],
            ended=self._ended,
            state=state,
            inputs=self._inputs.datasets(),
            outputs=self._outputs.datasets(),
            sql=self._sql,
            properties={k: frozenset(v) for k, v in sorted(self._properties.items())},
            error=self._error,
        )


_CLASS = re.compile(r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?=[:\s]|$)", re.ASCII)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]*\](?=\s|$)")


def _kind(exception: ExceptionFacet) -> str:
    """Name the class of an exception, and Spark's error condition: the rest can hold anything."""
    message, trace = exception.message or "", exception.stack_trace or ""
    found = _CLASS.match(trace) or _CLASS.match(message), _CONDITION.match(message)
    return " ".join(part[0] for part in found if part)


class _ApplicationRun:
    """The application's own START and COMPLETE, joined."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events = 0
        self.foreign = 0
        self.last: datetime | None = None
        # By their times: an event that comes twice is one.
        self.starts: set[datetime] = set()
        self.ends: set[datetime] = set()
        self.namespace = ""
        self.job_name = ""
        self.application_id = ""
        self.spark_version = ""
        self.listener_version = ""

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        self.last = max(self.last or event.event_time, event.event_time)
        if event.event_type == "START":
            self.starts.add(event.event_time)
        elif event.event_type in ("COMPLETE", "FAIL", "ABORT"):
            self.ends.add(event.event_time)
        self.namespace = max(self.namespace, event.job.namespace)
        self.job_name = max(self.job_name, event.job.name)
        self.identify(event)

    def identify(self, event: SparkEvent) -> None:
        """Take what an event of the application or of an action of it knows of the application."""
        facets: Any = event.run.facets
        if facets and facets.application_details:
            found = facets.application_details.application_id or ""
            self.application_id = max(self.application_id, found)
        if facets and facets.processing_engine:
            self.spark_version = max(self.spark_version, facets.processing_engine.version or "")
            found = facets.processing_engine.adapter_version or ""
            self.listener_version = max(self.listener_version, found)
