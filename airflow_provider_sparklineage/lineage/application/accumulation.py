"""Join the events of one spark-submit, by run id, to actions of a :class:`SparkApplication`.

The listener reports one action (a SQL execution) in two to ten events, none of them complete,
in an order that threads can shuffle. So the state of a run is a join over its events, which is the
same for every order and every repetition of the events:

=====================  ==========================================================================
part of a run          the value that stays
=====================  ==========================================================================
datasets, locations    the union over all events of the run; a full dataset stays full
a facet of a dataset   the one of the latest event in which the facet is not empty
``version`` and        those of the earliest event: later events may follow the run's own write
statistics of inputs
``outputStatistics``   the latest before the end: COMPLETE may give those of another action
properties             all values, because properties of the session change while it runs
outcome                FAIL is sticky (Spark's listener sends COMPLETE after FAIL for one run)
=====================  ==========================================================================

:class:`Memory` is bounded. Where it is short, facets are dropped first, because datasets are known
without facets. Mistakes in the listener's reports are repaired later (:mod:`.repairs`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.model.allowance import Bound, Limit
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Frozen, Witness
from airflow_provider_sparklineage.spark.capture.lines import RawFacets, decode_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.spark.capture.events import (
        EventDataset,
        ExceptionFacet,
        SparkEvent,
    )


# --- memory: how much of the events is kept; the rest is counted ----------------------------------


LEFT_OUT = msgspec.Raw(b"")
"""Stands for a facet that did not fit into memory."""
_LEFT_OUT_STATEMENT = "PARTITION ("
"""Stands for a statement that did not fit into memory: it may have written a part of a table."""


class Memory:
    """Keeps each distinct facet and statement once: a thousand actions report one table's schema.

    :ivar left_out: kind of thing -> the number of such things that did not fit into memory
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._facets: dict[bytes, msgspec.Raw] = {}
        self._statements: dict[str, str] = {}
        self._facets_bytes = Bound(Limit.FACETS_BYTES)
        self._statements_bytes = Bound(Limit.STATEMENTS_BYTES)
        self._datasets = Bound(Limit.DATASETS)

    def facet(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Give the stored copy of a facet; :data:`LEFT_OUT` if it is empty or does not fit."""
        size = len(memoryview(raw))
        if not 0 < size <= Limit.FACET_BYTES:
            return LEFT_OUT
        text = bytes(raw)  # a copy, because a view would hold the full line in memory
        if (known := self._facets.get(text)) is None:
            if not self._facets_bytes.takes(size):
                return LEFT_OUT
            known = self._facets[text] = msgspec.Raw(text)
        return known

    def statement(self, sql: str) -> str:
        """Give the stored copy of an SQL statement.

        :return: the copy; if the statement does not fit, the text ``PARTITION (`` instead, because
            the statement may have written only a part of a table
        """
        known = self._statements.get(sql)
        if known is not None:
            return known
        if not self._statements_bytes.takes(len(sql)):
            self.left_out["SQL statement(s)"] += 1
            return _LEFT_OUT_STATEMENT
        self._statements[sql] = sql
        return sql

    def dataset(self) -> bool:
        """Count one more dataset of an action; False if there are too many already."""
        if not (fits := self._datasets.takes()):
            self.left_out["dataset(s) of actions"] += 1
        return fits

    def action(self, datasets: int) -> bool:
        """Whether one more action fits; if not, its event is counted as left out.

        :param datasets: how many datasets the first event of the action has
        """
        if not (fits := datasets <= self._datasets.left):
            self.left_out["event(s) of further actions"] += 1
        return fits


# --- the datasets on one side of a run ------------------------------------------------------------
#
# An event has all datasets of its run with all facets, mostly the same as the event before it. So
# equal reports of a dataset are decoded once, and only their times are noted: the times alone
# decide which value of a facet stays.


# Events of one millisecond are ordered by type: the end of a run is later than its start, in any
# order of the lines.
_EVENT_ORDER = {"START": 0, "RUNNING": 1, "OTHER": 1, "FAIL": 2, "ABORT": 2, "COMPLETE": 3}
Rank = tuple[datetime, int]
"""The place of an event in its run: the event's time, then its number in ``_EVENT_ORDER``."""

_COMPLETE = _EVENT_ORDER["COMPLETE"]
# The COMPLETE of a run can have the statistics of another run that ran at the same time.
_NOT_FROM_THE_END = "outputStatistics"
_BEFORE_ALL: Rank = (datetime.min.replace(tzinfo=UTC), _COMPLETE)
# Facets that show an input as the run began: later events may come after the run's own write.
_EARLIEST = frozenset({"version", "inputStatistics"})
_NONE: frozenset[str] = frozenset()

_EMPTY = (b"null", b"{}", b"[]")
_LONGEST_EMPTY = max(map(len, _EMPTY))


class KeptReports:
    """Recent reports of inputs, or of outputs, kept so that equal reports become one object.

    :param memory: the memory for facets; a facet that does not fit is left out of its report
    :param is_input: whether the reports are those of inputs; else they are those of outputs
    """

    def __init__(self, memory: Memory, *, is_input: bool) -> None:
        self.memory = memory
        self.is_input = is_input
        self._latest: dict[tuple[str, str], list[_Kept]] = {}

    def kept(self, name: tuple[str, str], facets: RawFacets, sides: RawFacets) -> _Kept:
        """Give the kept report with the same facets; if there is none, keep and give a new one.

        :param name: the dataset's namespace and name
        :param facets: the dataset facets of the report
        :param sides: the ``inputFacets`` or ``outputFacets`` of the report
        """
        latest = self._latest.setdefault(name, [])
        for known in latest:
            if known.sides == sides and known.facets == facets:  # the sides are small
                return known
        new = _Kept(DatasetName(*name), facets, sides, self.memory)
        latest.insert(0, new)
        del latest[_LATEST:]
        return new


_LATEST = 16
"""Number of reports kept per dataset: those of a run's start and end differ, and runs overlap.

One more costs an event a tenth of a microsecond; a report that is not kept, ten.
"""


class _Kept:
    """One report of a dataset, copied out of the line of its event.

    :ivar lost: the number of facets that did not fit into memory
    """

    __slots__ = ("_alone", "facets", "locations", "lost", "name", "sides", "stated", "stated_sides")

    def __init__(
        self, name: DatasetName, facets: RawFacets, sides: RawFacets, memory: Memory
    ) -> None:
        self.name = name
        self.facets = {key: memory.facet(raw) for key, raw in facets.items()}
        self.sides = {key: memory.facet(raw) for key, raw in sides.items()}
        self.stated, self.stated_sides = _stated(self.facets), _stated(self.sides)
        self.locations = _locations(sides)
        every = (*self.facets.values(), *self.sides.values())
        self.lost = sum(value is LEFT_OUT for value in every)
        self._alone: ActionDataset | None = None

    def alone(self) -> ActionDataset:
        """Make the dataset of a run in which this is the only report of that dataset."""
        if self._alone is None:
            self._alone = _action_dataset(self.name, self.stated, self.stated_sides, self.locations)
        return self._alone


def _stated(facets: RawFacets) -> RawFacets:
    """Leave out facets that are null, {} or []."""
    if not any(map(_is_empty, facets.values())):
        return facets
    return {key: value for key, value in facets.items() if not _is_empty(value)}


def _is_empty(facet: msgspec.Raw) -> bool:
    size = len(memoryview(facet))
    return size <= _LONGEST_EMPTY and bytes(facet) in _EMPTY


class DatasetReports:
    """The reports of all inputs, or of all outputs, of one run, joined event by event."""

    __slots__ = ("_all", "_of")

    def __init__(self, of_all: KeptReports) -> None:
        self._all = of_all
        self._of: dict[tuple[str, str], _Joined] = {}

    def add(self, datasets: list[EventDataset] | None, rank: Rank) -> None:
        """Join the datasets that one event reports to those of the events before.

        :param datasets: the event's inputs, or its outputs; None if the event has no such list
        :param rank: the place of the event in the order of the run's events
        """
        is_input = self._all.is_input
        for entry in datasets or ():
            name = (entry.namespace, entry.name)
            facets = entry.facets or {}
            sides = (entry.input_facets if is_input else entry.output_facets) or {}
            joined = self._of.get(name)
            if joined is None and not self._all.memory.dataset():
                continue
            kept = self._all.kept(name, facets, sides)
            if joined is None:
                joined = self._of[name] = _Joined(kept, _EARLIEST if is_input else _NONE)
            joined.add(kept, rank)
            if kept.lost:
                self._all.memory.left_out["facet(s)"] += kept.lost

    def datasets(self) -> tuple[ActionDataset, ...]:
        """Give the datasets, sorted by name, each joined from all its reports."""
        return tuple(self._of[name].dataset() for name in sorted(self._of))


class _Joined:
    """All reports of a dataset in one run, joined; its size does not grow with their number.

    :param earliest: the dataset facets of which the earliest value stays, and not the latest
    """

    __slots__ = ("_earliest", "_facets", "_is_alone", "_latest", "_locations", "_ranks", "_sides")

    def __init__(self, first: _Kept, earliest: frozenset[str]) -> None:
        self._latest = first
        self._ranks: list[Rank] = []
        """The ranks of the latest events, which all had the latest report."""
        self._earliest = earliest
        self._is_alone = True
        self._facets: _Chosen = {}
        self._sides: _Chosen = {}
        self._locations = first.locations

    def add(self, kept: _Kept, rank: Rank) -> None:
        """Join one more report.

        :param rank: the place of the report's event in the order of the run's events
        """
        # Most events report the same as the event before.
        if kept is not self._latest or len(self._ranks) == _AT_ONCE:
            self._choose()
            self._is_alone = self._is_alone and kept is self._latest
            self._latest, self._ranks = kept, []
            if self._locations is not None:
                more = kept.locations
                self._locations = None if more is None else self._locations | more
        self._ranks.append(rank)

    def _choose(self) -> None:
        _choose(self._facets, self._latest.stated, self._ranks, self._earliest)
        _choose(self._sides, self._latest.stated_sides, self._ranks, _EARLIEST)

    def dataset(self) -> ActionDataset:
        if self._is_alone:
            return self._latest.alone()
        self._choose()
        facets, sides = (
            {name: value for name, (_, value) in chosen.items()}
            for chosen in (self._facets, self._sides)
        )
        return _action_dataset(self._latest.name, facets, sides, self._locations)


_AT_ONCE = 16
"""The most events whose facets are chosen at once."""
_Chosen = dict[str, tuple[Rank, msgspec.Raw]]


def _choose(
    chosen: _Chosen, facets: RawFacets, ranks: list[Rank], earliest: frozenset[str]
) -> None:
    """Choose between the values so far and those of one more report: by time, then by bytes.

    :param chosen: name of a facet -> the rank of its event, and its value; changed in place
    :param facets: the facets of the report that is added
    :param ranks: the ranks of the events that had the report
    :param earliest: the facets of which the earliest value stays; of others it is the latest
    """
    for name, value in facets.items():
        at = min(ranks) if name in earliest else max(ranks)
        if name == _NOT_FROM_THE_END:
            at = max((rank for rank in ranks if rank[1] != _COMPLETE), default=_BEFORE_ALL)
        if known := chosen.get(name):
            is_later = at > known[0] or (at == known[0] and bytes(value) > bytes(known[1]))
            if is_later == (name in earliest):
                continue
        chosen[name] = at, value


def _action_dataset(
    name: DatasetName, facets: RawFacets, sides: RawFacets, locations: frozenset[str] | None
) -> ActionDataset:
    left_out = frozenset(key for key, value in facets.items() if value is LEFT_OUT)
    of_side = _sorted_facets(sides)
    of_side.pop("subset", None)  # it is in ``locations``; facets are made once, at the edge
    return ActionDataset(name, _sorted_facets(facets), of_side, locations, left_out)


def _sorted_facets(facets: RawFacets) -> RawFacets:
    return {key: facets[key] for key in sorted(facets) if facets[key] is not LEFT_OUT}


class _LocationCondition(msgspec.Struct):
    type: str = ""
    locations: list[str] = []


class _SubsetFacet(msgspec.Struct):
    input_condition: _LocationCondition | None = msgspec.field(name="inputCondition", default=None)
    output_condition: _LocationCondition | None = msgspec.field(
        name="outputCondition", default=None
    )


def _locations(side_facets: RawFacets) -> frozenset[str] | None:
    """Read the locations of a ``subset`` facet; None, the full dataset, if it names none.

    :param side_facets: ``inputFacets`` or ``outputFacets``, which may have a ``subset`` facet
    """
    subset = decode_facet(side_facets.get("subset"), _SubsetFacet)
    condition = (subset.input_condition or subset.output_condition) if subset else None
    if condition is None or condition.type != "location" or not condition.locations:
        return None
    return frozenset(condition.locations)


# --- the application and its actions --------------------------------------------------------------


class ActionState(StrEnum):
    """How an action ended, as far as its events show."""

    COMPLETE = "complete"
    FAILED = "failed"
    UNFINISHED = "unfinished"


class Action(Frozen, frozen=True):
    """One SQL execution, or one RDD job that read or wrote data.

    :param sql: the SQL statement; "" if the action has none
    :param properties: Spark property -> all values that it had in the events of the action
    """

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
    """Class and error condition of the exception that ended the action; empty if not known."""
    witness: Witness = Witness.LISTENER
    """LISTENER for an action that the listener reported.

    OBSERVER for one that only the observer saw, or whose datasets only the observer saw.
    """
    moved: Mapping[DatasetName, DatasetName] = field(default_factory=dict)
    """The listener's name of a dataset -> the name that the dataset really has."""
    is_stream: bool = False
    """Whether the listener reports the action as a batch of a stream."""

    @property
    def label(self) -> str:
        """The second part of the job name; it names a physical node: ``execute_insert_into_…``."""
        return self.job_name.split(".", 2)[1] if "." in self.job_name else self.job_name


class SparkApplication(Frozen, frozen=True):
    """The accumulated events of one spark-submit, with the actions in the order of their start.

    :param last_event: the time of the last event; None if there are no events
    :param events: the number of events of the application and its actions
    :param foreign_events: the number of events of other applications, which are left out
    """

    run_id: str
    namespace: str
    job_name: str
    actions: tuple[Action, ...]
    last_event: datetime | None = None
    begun: bool = False
    """Whether the start of the application is among the events."""
    finished: bool = False
    """Whether the application's end is among the events: the end of each of its SparkContexts."""
    events: int = 0
    foreign_events: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Kind of thing -> the number of such things that did not fit into memory."""
    application_id: str = ""
    spark_version: str = ""
    listener_version: str = ""


def accumulate(events: Iterable[SparkEvent], run_id: str) -> SparkApplication:
    """Make one application from its events, which may come in any order.

    :param run_id: OpenLineage run id of the application; events of other applications are only
        counted
    """
    runs: dict[str, _Run] = {}
    own = _ApplicationRun(run_id)
    memory = Memory()
    inputs = KeptReports(memory, is_input=True)
    outputs = KeptReports(memory, is_input=False)
    for event in events:
        if event.run.run_id == run_id:
            own.add(event)
        elif event.parent_run_id == run_id:
            # On YARN the application's own START event does not have the application's id.
            own.identify(event)
            if (run := runs.get(event.run.run_id)) is None:
                if not memory.action(len(event.inputs or ()) + len(event.outputs or ())):
                    continue
                run = runs[event.run.run_id] = _Run(event, memory, inputs, outputs)
            run.add(event)
        else:
            own.foreign += 1
    actions = sorted((r.action() for r in runs.values()), key=lambda a: (a.started, a.run_id))
    last_events = [*own.times, *(r.last for r in runs.values())]
    return SparkApplication(
        run_id=run_id,
        namespace=own.namespace,
        job_name=own.job_name,
        actions=tuple(actions),
        last_event=max(last_events, default=None),
        begun=bool(own.starts),
        finished=bool(own.ends) and len(own.ends) >= len(own.starts),
        events=own.events + sum(r.events for r in runs.values()),
        foreign_events=own.foreign,
        left_out=dict(memory.left_out),
        application_id=own.application_id,
        spark_version=own.spark_version,
        listener_version=own.listener_version,
    )


# --- one run --------------------------------------------------------------------------------------


class _Run:
    """The events of one action so far, joined.

    :param event: one of the events; the constructor reads only its run id, time and job name, so
        this event too must be added with :meth:`add`
    """

    def __init__(
        self, event: SparkEvent, memory: Memory, inputs: KeptReports, outputs: KeptReports
    ) -> None:
        self.run_id = event.run.run_id
        self._memory = memory
        self.events = 0
        self._first = _rank(event)
        self._job = self._first, event.job.name
        self._job_type = ""
        self._is_stream = False
        self._ended: datetime | None = None
        self._failed = False
        self._sql = ""
        self._error = ""
        self._properties: dict[str, set[str]] = defaultdict(set)
        self._inputs = DatasetReports(inputs)
        self._outputs = DatasetReports(outputs)

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        rank = _rank(event)
        self._first = min(self._first, rank)
        # The job's name gets its output suffix once the output is known, so the latest name counts.
        self._job = max(self._job, (rank, event.job.name))
        self._job_type = max(self._job_type, event.job_type)
        self._is_stream = self._is_stream or event.is_stream
        if event.event_type in ("COMPLETE", "FAIL", "ABORT"):
            self._ended = max(self._ended or event.event_time, event.event_time)
            self._failed = self._failed or event.event_type != "COMPLETE"
        facets = event.job.facets
        if facets and facets.sql:
            self._sql = max(self._sql, self._memory.statement(facets.sql.query or ""))
        run_facets = event.run.facets
        if run_facets and run_facets.exception:
            self._error = max(self._error, _error_kind(run_facets.exception))
        if run_facets and run_facets.spark_properties:
            for key, value in (run_facets.spark_properties.properties or {}).items():
                self._properties[key].add(str(value))
        self._inputs.add(event.inputs, rank)
        self._outputs.add(event.outputs, rank)

    @property
    def last(self) -> datetime:
        """The time of the run's last event."""
        return self._job[0][0]

    def action(self) -> Action:
        state = ActionState.COMPLETE
        if self._failed:
            state = ActionState.FAILED
        elif self._ended is None:
            state = ActionState.UNFINISHED
        return Action(
            run_id=self.run_id,
            job_name=self._job[1],
            job_type=self._job_type,
            started=self._first[0],
            ended=self._ended,
            state=state,
            inputs=self._inputs.datasets(),
            outputs=self._outputs.datasets(),
            sql=self._sql,
            properties={k: frozenset(v) for k, v in self._properties.items()},
            error=self._error,
            is_stream=self._is_stream,
        )


def _rank(event: SparkEvent) -> Rank:
    return event.event_time, _EVENT_ORDER.get(event.event_type or "OTHER", 1)


_EXCEPTION_CLASS = re.compile(r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?=[:\s]|$)", re.ASCII)
_ERROR_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]*\](?=\s|$)")


def _error_kind(exception: ExceptionFacet) -> str:
    """Give the class of an exception and Spark's error condition; "" if neither is found.

    An example is ``org.apache.spark.sql.AnalysisException [TABLE_OR_VIEW_NOT_FOUND]``. The message
    of the exception is left out but for the error condition: it can contain data.
    """
    message, trace = exception.message or "", exception.stack_trace or ""
    found = (
        _EXCEPTION_CLASS.match(trace) or _EXCEPTION_CLASS.match(message),
        _ERROR_CONDITION.match(message),
    )
    return " ".join(part[0] for part in found if part)


class _ApplicationRun:
    """The application's own START and COMPLETE events, joined."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events = 0
        self.foreign = 0
        # Sets of times, so that a repeated event counts once.
        self.times: set[datetime] = set()
        self.starts: set[datetime] = set()
        self.ends: set[datetime] = set()
        self.namespace = ""
        self.job_name = ""
        self.application_id = ""
        self.spark_version = ""
        self.listener_version = ""

    def add(self, event: SparkEvent) -> None:
        self.events += 1
        self.times.add(event.event_time)
        if event.event_type == "START":
            self.starts.add(event.event_time)
        elif event.event_type in ("COMPLETE", "FAIL", "ABORT"):
            self.ends.add(event.event_time)
        self.namespace = max(self.namespace, event.job.namespace)
        self.job_name = max(self.job_name, event.job.name)
        self.identify(event)

    def identify(self, event: SparkEvent) -> None:
        """Read the application's id and versions from an event of the application or an action."""
        facets: Any = event.run.facets
        if facets and facets.application_details:
            found = facets.application_details.application_id or ""
            self.application_id = max(self.application_id, found)
        if facets and facets.processing_engine:
            self.spark_version = max(self.spark_version, facets.processing_engine.version or "")
            found = facets.processing_engine.adapter_version or ""
            self.listener_version = max(self.listener_version, found)
