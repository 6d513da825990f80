"""Convert an event to one line of facts: the facts of its run in the form of the tables.

==================  ===============================================================================
:mod:`.accesses`    the datasets that the run read and wrote, with the part and amount of each
:mod:`.cells`       the partitions of these datasets as text
:mod:`.line`        the line that is written
==================  ===============================================================================

This module finds the fields about the run (its task of Airflow, its data interval, its parent, its
start), and the source columns of each output column. An event without a usable run is skipped with
a reason. A part of an event that does not match its schema is treated as absent, and such parts are
counted. No function here raises for any text, and none opens a file, because :func:`facts_of` may
run on the executors of a cluster.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.history.facts.accesses import accesses, reporter
from airflow_provider_sparklineage.history.facts.line import (
    Columns,
    Edge,
    Facts,
    Line,
    dataset_name,
    short,
)
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.model.datasets import DatasetName

__all__ = ["Line", "Reason", "facts_of"]


# --- the run --------------------------------------------------------------------------------------


def utc(text: str | None) -> str | None:
    """Convert an ISO 8601 time to UTC, e.g. ``2024-10-15T03:00:00.000000``.

    A time without a zone is UTC. The zone's name in brackets, which Java adds after the offset, is
    ignored, and so are digits beyond microseconds.

    :return: None if the text is empty or cannot be parsed
    """
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text.partition("[")[0])
        if time.tzinfo is not None:
            time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time.replace(tzinfo=None).isoformat(timespec="microseconds")


NOT_MAPPED = -1
"""Airflow's map index of a task instance that is not mapped."""


class Try(NamedTuple):
    """The try of a task, as the archive or bundle that contains the event names it.

    The event itself may lack these fields.

    :param started: start of the try in ISO 8601; empty if it is not known
    """

    dag_id: str
    task_id: str
    dag_run_id: str
    map_index: int
    try_number: int
    started: str = ""


def run(event: model.Event, of: Try | None) -> dict[str, Any]:
    """Give the fields of :class:`.line.Facts` about the run, except those about its job.

    :param of: the try, if the event comes from an archive or a bundle; else None
    """
    sending = event.sending or model.Sending()
    own, added = event.run.facets or model.RunFacets(), sending.facets or model.RunFacets()
    airflow = own.airflow or added.airflow or own.airflow_dag_run
    task = _task(airflow, of) if airflow or of else {}
    instance = (airflow and airflow.task_instance) or model.TaskInstance()
    started = sending.started or (of and of.started) or instance.start_date
    nominal = own.nominal_time or added.nominal_time or model.NominalTime()
    dag_run = (airflow and airflow.dag_run) or model.DagRun()
    parent = own.parent or added.parent or model.Parent()
    root = parent.root and parent.root.run
    return {
        **task,
        "logical_date": utc(dag_run.logical_date or dag_run.execution_date),
        "data_interval_start": utc(dag_run.data_interval_start or nominal.nominalStartTime),
        "data_interval_end": utc(dag_run.data_interval_end or nominal.nominalEndTime),
        "partition_key": dag_run.partition_key,
        "parent_run_id": parent.run and parent.run.runId,
        "root_run_id": root and root.runId,
        "started": utc(started),
    }


def _task(airflow: model.AirflowFacet | None, of: Try | None) -> dict[str, Any]:
    facet = airflow or model.AirflowFacet()
    instance = facet.task_instance
    task_id = facet.task.task_id if facet.task else None
    known = {
        "dag_id": facet.dag.dag_id if facet.dag else None,
        "task_id": task_id,
        "dag_run_id": facet.dag_run.run_id if facet.dag_run else None,
        "map_index": _int(instance.map_index) if instance else None,
        "try_number": _int(instance.try_number) if instance else None,
    }
    if of is not None:
        of_try = of._asdict()
        return {key: of_try[key] if value is None else value for key, value in known.items()}
    if task_id and known["map_index"] is None:
        known["map_index"] = NOT_MAPPED
    return known


def _int(number: int | None) -> int | None:
    return number if number is not None and -_MAX_INT <= number <= _MAX_INT else None


# --- columns --------------------------------------------------------------------------------------

# Both forms of the facet `columnLineage` are read: lists of transformations, and the deprecated
# single type of a column (`IDENTITY`, `MASKED`; this package's events have `DIRECT:AGGREGATION`
# there). Entries for the whole dataset become INDIRECT, even if the event has another type (the
# listener gives DIRECT for some).
#
# The facet is at least half of an event, and a job's next run nearly always has the same text. So
# the results for recent texts are kept in memory, and each of these texts is parsed only once.

_DIRECT, _INDIRECT = "DIRECT", "INDIRECT"
_MASKED = "MASKED"

_MAX_CACHED = 32 << 20  # bytes of cached texts: enough for some thousand jobs
_Texts = tuple[tuple[str, str, bytes], ...]


def columns(outputs: Iterable[model.Dataset]) -> tuple[Columns, int]:
    """Give the column lineage of an event's outputs, and the number of parts of wrong shape.

    Such a part does not match the schema of facet ``columnLineage``, and is left out.
    """
    texts = tuple(
        (one.namespace, one.name, bytes(one.facets.column_lineage))
        for one in outputs
        if one.facets and one.facets.column_lineage
    )
    return _CACHE.get(texts) or _CACHE.add(texts, _read(texts))


class _Cache:
    """A cache of column lineage, with the facets' texts as keys; it is emptied when it is full."""

    def __init__(self) -> None:
        self._lineage: dict[_Texts, tuple[Columns, int]] = {}
        self._size = 0
        self.get = self._lineage.get

    def add(self, texts: _Texts, lineage: tuple[Columns, int]) -> tuple[Columns, int]:
        """Add a result, or empty the cache if the result does not fit in it; return the result.

        :param texts: the key: namespace, name and facet ``columnLineage`` of each output
        :param lineage: the result of :func:`columns` for these outputs
        """
        self._size += len(lineage[0].text) + sum(len(text) for *_, text in texts)
        if self._size > _MAX_CACHED:
            self._lineage.clear()
            self._size = 0
        else:
            self._lineage[texts] = lineage
        return lineage


_CACHE = _Cache()


def _read(texts: _Texts) -> tuple[Columns, int]:
    edges: dict[Edge, None] = {}
    left_out = 0
    for namespace, name, text in texts:
        lineage, wrong = model.read_part(text, model.ColumnLineage)
        left_out += wrong
        if lineage is not None:
            edges |= dict.fromkeys(_edges(dataset_name(namespace, name), lineage))
    return Columns.of(list(edges)), left_out


def _edges(output: DatasetName, lineage: model.ColumnLineage) -> Iterator[Edge]:
    for column, sources in (lineage.fields or {}).items():
        known = _deprecated(sources)
        for source in sources.inputFields or ():
            for one in source.transformations or known:
                yield _edge(output, column, source, one, one.type)
    for source in lineage.dataset or ():
        for one in source.transformations or _UNKNOWN:
            yield _edge(output, None, source, one, _INDIRECT)


_UNKNOWN = (model.Transformation(),)


def _edge(
    output: DatasetName,
    column: str | None,
    source: model.InputField,
    how: model.Transformation,
    kind: str | None,
) -> Edge:
    namespace, name = dataset_name(source.namespace, source.name)
    return Edge(
        *output,
        namespace,
        name,
        source.field,
        column,
        kind,
        how.subtype,
        how.masking,
        short(how.description),
    )


def _deprecated(sources: model.ColumnSources) -> tuple[model.Transformation, ...]:
    """Read the transformation that old events give once for all sources of a column."""
    kind, _, subtype = (sources.transformationType or "").partition(":")
    text = sources.transformationDescription
    if kind == _MASKED:
        return (model.Transformation(_DIRECT, description=text, masking=True),)
    if kind in (_DIRECT, _INDIRECT):
        return (model.Transformation(kind, subtype or None, text),)
    return (model.Transformation(_DIRECT if kind else None, kind or None, text),)


# --- the line -------------------------------------------------------------------------------------


_TYPES = frozenset({"START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"})
_OTHER = "OTHER"
_MAX_INT = 2**31 - 1


class Reason(StrEnum):
    """The reason why no line of facts can be made from an event."""

    NO_JSON = "no_json"
    """The text is not JSON, or is nested too deeply to be read."""
    NO_RUN_EVENT = "no_run_event"
    """The event has no run id, no job name or no time; a DatasetEvent is an example."""


def facts_of(event: bytes | str, source: str, of: Try | None = None) -> Line | Reason:
    """Convert an event to a line of facts, or give the reason why no line can be made from it.

    :param event: one JSON document, from any producer
    :param source: the file of the event, as the tables name it
    :param of: the try, if the event comes from an archive or a bundle. It is used only for events
        of this package, because a file of another producer may be named like a file of an archive
    """
    text = event.encode(errors="replace") if isinstance(event, str) else event
    try:
        document = model.read(text)
    except (ValueError, RecursionError):
        return Reason.NO_JSON
    facts = _facts(document.event, of) if document else None
    if document is None or facts is None:
        return Reason.NO_RUN_EVENT
    lineage, left_out = columns(document.event.outputs or ())
    return Line.of(facts, lineage, source, document.left_out + left_out)


def _facts(event: model.Event, of: Try | None) -> Facts | None:
    time, who = utc(event.eventTime), reporter(event)
    run_id, namespace, job = event.run.runId, event.job.namespace, event.job.name
    if time is None or not run_id or namespace is None or not job:
        return None
    return Facts(
        run_id=run_id,
        namespace=namespace,
        job=job,
        event_type=event.eventType if event.eventType in _TYPES else _OTHER,
        event_time=time,
        is_ours=who.is_ours,
        degradations=_degradations(event),
        accesses=list(dict.fromkeys(accesses(event, who))),
        producer=scrub(event.producer) if event.producer else None,
        check_status=_check_status(event.check),
        **run(event, of if who.is_ours else None),
    )


# Statuses in the order in which they need attention (`lineage.partitions.comparison`).
_STATUSES = ("unexpected", "missing", "unobserved", "matched", "undeclared")
_MISMATCHES = _STATUSES[:2]
_OF_SCHEDULE = "schedule"


def _check_status(check: model.Check) -> str | None:
    """Give the status of a run's partition check, without what only the schedule makes a mismatch.

    What a run wrote is not in doubt because it read more than its schedule waits for: the command
    ``schedule`` is about that.
    """
    entries = [*(check.reads or ()), *(check.writes or ())]
    differing = [entry for entry in entries if entry.status in _MISMATCHES]
    of_schedule = [
        entry
        for entry in differing
        if any(source.kind == _OF_SCHEDULE for source in entry.sources or ())
    ]
    if not of_schedule or len(of_schedule) < len(differing):
        return check.status
    others = {entry.status for entry in entries} - {*_MISMATCHES}
    return next((status for status in _STATUSES if status in others), _STATUSES[-1])


def _degradations(event: model.Event) -> int:
    counts, listed = event.capture.degradationCounts, event.capture.degradations
    return min(sum(counts.values()) if counts else len(listed or ()), _MAX_INT)
