"""Events of a spark-submit to a :class:`SparkApplication`: accumulated by run id, then repaired.

The listener says one action (a SQL execution) in two to ten events, each with a part of the truth,
in an order that threads can shuffle. So what is kept of a run is a join over its events, the same
for every order and every repetition of them:

=====================  ==========================================================================
what                   which value stays
=====================  ==========================================================================
datasets               the union over all events of the run
a facet of a dataset   the one of the latest event that has it non-empty
``version`` of inputs  the one of the earliest event: later ones may already be the run's own write
outcome                FAIL is sticky (Spark's listener sends COMPLETE after FAIL for one run)
=====================  ==========================================================================

What the listener says that is not so is repaired here, once:

- RDD runs without an end are dropped. They are schema inference and file listing, and name one
  arbitrary partition as if it were read.
- Completed RDD runs without outputs whose inputs some SQL run reads anyway are not actions either.
- CREATE TABLE AS SELECT and ``saveAsTable`` come as an outer and an inner execution of one write:
  they become one action with the inner one's lineage, lifecycle and statistics and the outer one's
  identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.spark.events import EventDataset, RawFacets, SparkEvent


class ActionState(StrEnum):
    """How an action ended, as far as its events say."""

    COMPLETE = "complete"
    FAILED = "failed"
    UNFINISHED = "unfinished"


@dataclass(frozen=True)
class ActionDataset:
    """A dataset on one side of an action.

    :param facets: dataset facets, undecoded
    :param side_facets: ``inputFacets`` or ``outputFacets``, undecoded
    :param locations: partition locations that the listener trimmed off the name; None is the whole
        dataset
    """

    name: DatasetName
    facets: Mapping[str, msgspec.Raw]
    side_facets: Mapping[str, msgspec.Raw]
    locations: frozenset[str] | None = None


@dataclass(frozen=True)
class Action:
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
    properties: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def label(self) -> str:
        """The physical node of the job name, for messages: ``execute_insert_into_…``."""
        return self.job_name.split(".", 2)[1] if self.job_name.count(".") else self.job_name


@dataclass(frozen=True)
class SparkApplication:
    """All that one spark-submit reported, actions in the order of their start."""

    run_id: str
    namespace: str
    job_name: str
    actions: tuple[Action, ...]
    last_event: datetime | None = None
    finished: bool = False
    events: int = 0
    foreign_events: int = 0
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
    for event in events:
        if event.run.run_id == run_id:
            own.add(event)
        elif event.parent_run_id == run_id:
            run = runs.get(event.run.run_id)
            if run is None:
                run = runs[event.run.run_id] = _Run(event.run.run_id)
            run.add(event)
        else:
            own.foreign += 1
    actions = sorted((r.action() for r in runs.values()), key=lambda a: (a.started, a.run_id))
    moments = [own.last, *(r.last for r in runs.values())]
    return SparkApplication(
        run_id=run_id,
        namespace=own.namespace,
        job_name=own.job_name,
        actions=tuple(_join_nested_writes(_drop_listings(actions))),
        last_event=max((m for m in moments if m is not None), default=None),
        finished=own.finished,
        events=own.events + sum(r.events for r in runs.values()),
        foreign_events=own.foreign,
        application_id=own.application_id,
        spark_version=own.spark_version,
        listener_version=own.listener_version,
    )


# --- one run --------------------------------------------------------------------------------------

# Within one millisecond the end of a run is later than its start, whatever the order of the lines.
_RANK = {"START": 0, "RUNNING": 1, "OTHER": 1, "FAIL": 2, "ABORT": 2, "COMPLETE": 3}
_Moment = tuple[datetime, int]


def _moment(event: SparkEvent) -> _Moment:
    return event.event_time, _RANK.get(event.event_type, 1)


_EMPTY = (b"null", b"{}", b"[]")


class _Latest:
    """Facets by name, each with the moment that it is from; ties fall to the greater bytes."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, tuple[_Moment, bytes]] = {}

    def add(self, facets: RawFacets | None, moment: _Moment) -> None:
        for name, raw in (facets or {}).items():
            value = bytes(raw)
            if value in _EMPTY:
                continue
            known = self._values.get(name)
            if known is None or (moment, value) > known:
                self._values[name] = (moment, value)

    def facets(self) -> dict[str, msgspec.Raw]:
        return {name: msgspec.Raw(self._values[name][1]) for name in sorted(self._values)}


class _Side:
    """The datasets of one side of a run."""

    def __init__(self, *, is_input: bool) -> None:
        self._is_input = is_input
        self._datasets: dict[DatasetName, _Dataset] = {}

    def add(self, datasets: list[EventDataset] | None, moment: _Moment) -> None:
        by_name: dict[DatasetName, list[EventDataset]] = {}
        for dataset in datasets or ():
            by_name.setdefault(DatasetName(dataset.namespace, dataset.name), []).append(dataset)
        for name, entries in by_name.items():
            known = self._datasets.get(name)
            if known is None:
                known = self._datasets[name] = _Dataset()
            known.add(entries, moment, is_input=self._is_input)

    def datasets(self) -> tuple[ActionDataset, ...]:
        return tuple(self._datasets[name].dataset(name) for name in sorted(self._datasets))


class _Dataset:
    def __init__(self) -> None:
        self._facets = _Latest()
        self._side_facets = _Latest()
        self._version: tuple[_Moment, bytes] | None = None
        self._locations: tuple[_Moment, tuple[str, ...]] | None = None

    def add(self, entries: list[EventDataset], moment: _Moment, *, is_input: bool) -> None:
        locations: set[str] | None = set()
        for entry in entries:
            side = entry.input_facets if is_input else entry.output_facets
            self._facets.add(entry.facets, moment)
            self._side_facets.add(side, moment)
            if is_input and entry.facets and "version" in entry.facets:
                version = (moment, bytes(entry.facets["version"]))
                self._version = min(self._version, version) if self._version else version
            here = _locations(side)
            locations = None if locations is None or here is None else locations | here
        if locations:
            found = (moment, tuple(sorted(locations)))
            self._locations = max(self._locations, found) if self._locations else found

    def dataset(self, name: DatasetName) -> ActionDataset:
        facets = self._facets.facets()
        side = self._side_facets.facets()
        side.pop("subset", None)  # said by ``locations``; facets are made once, at the edge
        if self._version is not None:
            facets["version"] = msgspec.Raw(self._version[1])
        locations = frozenset(self._locations[1]) if self._locations else None
        return ActionDataset(name, facets, side, locations)


class _Condition(msgspec.Struct):
    type: str = ""
    locations: list[str] = []


class _Subset(msgspec.Struct):
    input_condition: _Condition | None = msgspec.field(name="inputCondition", default=None)
    output_condition: _Condition | None = msgspec.field(name="outputCondition", default=None)


def _locations(side_facets: RawFacets | None) -> set[str] | None:
    """Read the locations of a ``subset`` facet; None where the entry is the whole dataset."""
    if not side_facets or "subset" not in side_facets:
        return None
    try:
        subset = msgspec.json.decode(side_facets["subset"], type=_Subset)
    except msgspec.ValidationError:
        return None
    condition = subset.input_condition or subset.output_condition
    if condition is None or condition.type != "location" or not condition.locations:
        return None
    return set(condition.locations)


class _Run:
    """What the events of one action say so far."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events = 0
        self.last: datetime | None = None
        self._first: _Moment | None = None
        self._job: tuple[_Moment, str] | None = None
        self._job_type = ""
        self._ended: datetime | None = None
        self._failed = False
        self._sql = ""
        self._error = ""
        self._properties: dict[str, tuple[_Moment, str]] = {}
        self._inputs = _Side(is_input=True)
        self._outputs = _Side(is_input=False)

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        moment = _moment(event)
        self._first = min(self._first or moment, moment)
        self.last = max(self.last or event.event_time, event.event_time)
        # The job's name gets its output suffix once the output is known: the latest is fullest.
        job = (moment, event.job.name)
        self._job = max(self._job or job, job)
        self._job_type = max(self._job_type, event.job_type)
        if event.event_type in ("COMPLETE", "FAIL", "ABORT"):
            self._ended = max(self._ended or event.event_time, event.event_time)
            self._failed = self._failed or event.event_type != "COMPLETE"
        facets = event.job.facets
        if facets and facets.sql:
            self._sql = max(self._sql, facets.sql.query)
        run_facets = event.run.facets
        if run_facets and run_facets.exception and run_facets.exception.message:
            self._error = max(self._error, run_facets.exception.message)
        if run_facets and run_facets.spark_properties:
            # Session properties as they were when the action began; they may change before it ends.
            for key, value in run_facets.spark_properties.properties.items():
                said = (moment, value)
                self._properties[key] = min(self._properties.get(key, said), said)
        self._inputs.add(event.inputs, moment)
        self._outputs.add(event.outputs, moment)

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
            properties={key: self._properties[key][1] for key in sorted(self._properties)},
            error=self._error,
        )


class _ApplicationRun:
    """What the application's own START and COMPLETE say."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events = 0
        self.foreign = 0
        self.last: datetime | None = None
        self.finished = False
        self.namespace = ""
        self.job_name = ""
        self.application_id = ""
        self.spark_version = ""
        self.listener_version = ""

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        self.last = max(self.last or event.event_time, event.event_time)
        self.finished = self.finished or event.event_type in ("COMPLETE", "FAIL", "ABORT")
        self.namespace = max(self.namespace, event.job.namespace)
        self.job_name = max(self.job_name, event.job.name)
        facets: Any = event.run.facets
        if facets and facets.application_details:
            self.application_id = max(
                self.application_id, facets.application_details.application_id
            )
        if facets and facets.processing_engine:
            self.spark_version = max(self.spark_version, facets.processing_engine.version)
            self.listener_version = max(
                self.listener_version, facets.processing_engine.adapter_version
            )


# --- repairs --------------------------------------------------------------------------------------


def _drop_listings(actions: list[Action]) -> list[Action]:
    """Leave out RDD runs that only list files or infer a schema."""
    read_by_sql = {d.name for a in actions if a.job_type != "RDD_JOB" for d in a.inputs}

    def is_listing(action: Action) -> bool:
        if action.job_type != "RDD_JOB":
            return False
        if action.ended is None:
            return True
        return not action.outputs and {d.name for d in action.inputs} <= read_by_sql

    return [a for a in actions if not is_listing(a)]


# Nodes that run a second SQL execution for the write itself (Spark's class names, snake-cased).
_V1_TABLE_AS_SELECT = re.compile(
    r"\.execute_(create_\w*table_as_select|save_as_v1_table|optimized_create_hive_table)\w*"
)
_V2_TABLE_AS_SELECT = re.compile(r"\.(atomic_)?(create|replace)_table_as_select\b")


def _join_nested_writes(actions: list[Action]) -> list[Action]:
    """Make one action of the two executions, outer and inner, of a CTAS or ``saveAsTable``."""
    joined: list[Action] = []
    taken: set[str] = set()
    for outer in actions:
        if outer.run_id in taken:
            continue
        inner = None
        if makes_table_by_select(outer):
            inner = next(
                (a for a in actions if a.run_id not in taken and _is_inner_write(a, outer)), None
            )
        if inner is None:
            joined.append(outer)
        else:
            taken.add(inner.run_id)
            joined.append(_join(outer, inner))
    return [a for a in joined if a.run_id not in taken]


def _is_inner_write(inner: Action, outer: Action) -> bool:
    if inner.run_id == outer.run_id or inner.started < outer.started:
        return False
    if outer.ended is not None and (inner.ended is None or inner.ended > outer.ended):
        return False
    # The outer execution may know no output (Spark 4.1 wraps saveAsTable so).
    outputs = {d.name for d in outer.outputs}
    return bool(inner.outputs) and (not outputs or outputs == {d.name for d in inner.outputs})


def makes_table_by_select(action: Action) -> bool:
    """Whether an action is CREATE or REPLACE TABLE AS SELECT, or a saveAsTable."""
    return bool(
        _V1_TABLE_AS_SELECT.search(action.job_name) or _V2_TABLE_AS_SELECT.search(action.job_name)
    )


def replaces_v2_table(action: Action) -> bool:
    """Whether an action created or replaced a whole table of a DataSource V2 catalog."""
    return bool(_V2_TABLE_AS_SELECT.search(action.job_name))


def _join(outer: Action, inner: Action) -> Action:
    of_outer = {d.name: d for d in outer.outputs}
    outputs = []
    for dataset in inner.outputs:
        wrapper = of_outer.get(dataset.name)
        if wrapper is None:
            outputs.append(dataset)
            continue
        around = dict(wrapper.facets)
        if not replaces_v2_table(outer):
            # The outer execution says CREATE also of an append: the inner one's lifecycle is true.
            around.pop("lifecycleStateChange", None)
        facets = {**around, **dataset.facets}
        if "symlinks" in around:
            facets["symlinks"] = around["symlinks"]
        sides = {**wrapper.side_facets, **dataset.side_facets}
        outputs.append(replace(dataset, facets=facets, side_facets=sides))
    inputs = {d.name: d for d in (*outer.inputs, *inner.inputs)}
    failed = ActionState.FAILED in (outer.state, inner.state)
    return replace(
        outer,
        state=ActionState.FAILED if failed else outer.state,
        inputs=tuple(inputs[name] for name in sorted(inputs)),
        outputs=tuple(outputs),
        sql=outer.sql or inner.sql,
        properties=inner.properties,
        error=outer.error or inner.error,
    )
