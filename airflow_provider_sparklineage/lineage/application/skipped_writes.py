"""Writes that the listener reports and the observer saw to be skipped, taken back.

With the mode ``ignore`` on a folder that exists, Spark runs the command and writes nothing. The
listener reports its action like any other: with an output, and with inputs of which most were never
opened. Those that were are in the observer's record.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.application.observed_folders import plain
from airflow_provider_sparklineage.lineage.application.timeline import SLACK, Timeline, overlap
from airflow_provider_sparklineage.spark.capture.observations import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.application.dataset_index import DatasetIndex
    from airflow_provider_sparklineage.lineage.application.timeline import Span
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        RelationRecord,
        WriteRecord,
    )

    _Written = DatasetName | str  # a path or a table, where the listener names no such dataset
    _Timelines = Mapping[_Written, Timeline[Span]]


def without_skipped_writes(
    application: SparkApplication, records: Sequence[ObservationRecord], index: DatasetIndex
) -> tuple[SparkApplication, list[ObservationRecord]]:
    """Leave out of an application, and of what was observed, what was planned and not done.

    :param index: of the application's datasets
    """
    if not any(write.skipped for record in records for write in record.writes):
        return application, list(records)
    skipped, done = _writes(records, index, skipped=True), _writes(records, index, skipped=False)

    def is_skipped(name: _Written, span: Span) -> bool:
        return _has(skipped, name, span) and not _has(done, name, span)

    def without(action: Action) -> Action | None:
        span = _span(action)
        outputs = tuple(d for d in action.outputs if not is_skipped(d.name, span))
        if len(outputs) == len(action.outputs):
            return action
        return replace(action, outputs=outputs) if outputs else None

    def with_what_was_done(record: ObservationRecord) -> ObservationRecord:
        target = record.command.target if record.command else None
        written = [write for write in record.writes if not write.skipped]
        if target is None or written:
            is_nothing = bool(record.writes) and not written
        else:
            is_nothing = is_skipped(_written(index, target), _span_of(record))
        if is_nothing and record.kind == "query":
            return msgspec.structs.replace(record, writes=[], command=None)
        return msgspec.structs.replace(record, writes=written)

    actions = (without(action) for action in application.actions)
    application = replace(application, actions=tuple(a for a in actions if a is not None))
    return application, [with_what_was_done(record) for record in records]


def with_failed_writes(
    application: SparkApplication, records: Sequence[ObservationRecord], index: DatasetIndex
) -> SparkApplication:
    """Take actions for failed whose query has failed; they have read what was observed.

    :param index: of the application's datasets
    """
    failed = _spans(
        (index.find(record.command.target.path, record.command.target.table), _span_of(record))
        for record in records
        if record.failed and record.command is not None
    )
    if not failed:
        return application
    done = _writes(records, index, skipped=False)
    reads = _spans(
        (index.find(path, read.table), _span_of(record))
        for record in records
        for read in record.reads
        for path in read.roots or ("",)
    )

    def corrected(action: Action) -> Action:
        span = _span(action)
        if action.state is not ActionState.COMPLETE or not action.outputs:
            return action
        if not all(_has(failed, d.name, span) for d in action.outputs):
            return action
        if any(_has(done, d.name, span) for d in action.outputs):
            return action  # of one that was tried again right after
        inputs = tuple(d for d in action.inputs if _has(reads, d.name, span))
        return replace(action, state=ActionState.FAILED, inputs=inputs)

    return replace(application, actions=tuple(map(corrected, application.actions)))


def _span(action: Action) -> Span:
    """Give the time of an action; one that is reported by its end alone began before that."""
    ended = action.ended or action.started
    return (action.started if action.started < ended else ended - SLACK), ended


def _span_of(record: ObservationRecord, at: int | None = None) -> Span:
    """Give the time of a query, or the time in it that is known."""
    if at is not None:
        return timestamp(at), timestamp(at)
    return timestamp(record.started), timestamp(record.ended)


def _spans(found: Iterable[tuple[_Written | None, Span]]) -> _Timelines:
    spans: dict[_Written, list[tuple[datetime, datetime, Span]]] = defaultdict(list)
    for name, span in found:
        if name is not None:
            spans[name].append((*span, span))
    return {name: Timeline(of) for name, of in spans.items()}


def _writes(
    records: Sequence[ObservationRecord], index: DatasetIndex, *, skipped: bool
) -> _Timelines:
    return _spans(
        (_written(index, write), _span_of(record, write.time))
        for record in records
        for write in record.writes
        if write.skipped is skipped
    )


def _written(index: DatasetIndex, record: RelationRecord | WriteRecord) -> _Written:
    return index.find(record.path, record.table) or plain(record.path) or record.table or ""


def _has(writes: _Timelines, name: _Written, span: Span) -> bool:
    """Whether there was a write at that time, and not just right before or after it."""
    found = writes[name].during(*span) if name in writes else ()
    return any(overlap(span, of_write) for of_write in found)
