"""The listener's actions, corrected by what the observer saw of their queries, and the reverse.

- *Ends of queries*: the observer knows how long Spark's execution of a query took, but not when it
  began: it counts from when Spark began to optimise the query, up to 130 ms later. A query that
  reads what was written then begins before the write has ended. Since Spark 4 an execution takes as
  long as the listener reports, to the millisecond: where that is so of a single action of that
  time, the query ended when the action did. Before, the listener leaves the planning out.
- *Skipped writes*: with the mode ``ignore``, where the target exists, Spark runs the command and
  writes nothing. The listener reports its action like any other: with an output, and with inputs of
  which most were never opened. Those that were are in the observer's record.
- *Failed writes*: an action whose query failed has failed, whatever the listener says.
- *Batches of streams*: the files of a batch are datasets of their own for the listener, where they
  are in no partition: they become the folder that the stream reads. A batch that writes a Delta
  table has Delta's own step in it, reported with the same datasets: the step is no action.
- *Inferred files*: to find the columns of CSV and JSON files Spark reads one or all of them as
  text, in queries that the listener reports. Where there is one file and no partition, the dataset
  is named after that file: it is no input of its own.

Each correction takes an application and the observer's records, and gives new ones of either.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import SLACK, Timeline, overlap
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.application.observed_actions import identities
from airflow_provider_sparklineage.lineage.application.observed_binding import (
    DatasetIndex,
    plain_uri,
)
from airflow_provider_sparklineage.model.datasets import looks_like_file
from airflow_provider_sparklineage.spark.capture.observations import milliseconds, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Span
    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        RelationRecord,
        WriteRecord,
    )

    _Written = DatasetName | str  # a path or a table, where the listener names no such dataset
    _Timelines = Mapping[_Written, Timeline[Span]]


# --- ends of queries ------------------------------------------------------------------------------

_PRECISION_MS = 1  # the listener's two times are rounded, Spark's duration is not


def with_reported_ends(
    application: SparkApplication, records: Sequence[ObservationRecord]
) -> list[ObservationRecord]:
    """Let queries end when their actions did, where it is certain which these are.

    :param application: with actions in the order of their start
    """
    starts: dict[int, list[int]] = defaultdict(list)  # by the length of the action
    for action in application.actions:
        if action.ended is not None and action.job_type != "RDD_JOB":
            started = milliseconds(action.started)
            starts[milliseconds(action.ended) - started].append(started)

    def end(record: ObservationRecord) -> int:
        ends = []
        for length in range(record.duration - _PRECISION_MS, record.duration + _PRECISION_MS + 1):
            known = starts.get(length, [])
            first = bisect_left(known, record.started - length)
            last = bisect_right(known, record.started + _PRECISION_MS)
            ends += [started + length for started in known[first:last]]
        ends = [ended for ended in ends if ended <= record.ended + _PRECISION_MS]
        return ends[0] if len(ends) == 1 else record.ended

    return [replace(r, ended=end(r)) if r.duration else r for r in records]


# --- skipped and failed writes --------------------------------------------------------------------


def without_skipped_writes(
    application: SparkApplication, records: Sequence[ObservationRecord], index: DatasetIndex
) -> tuple[SparkApplication, list[ObservationRecord]]:
    """Leave out of an application, and of what was observed, what was planned and not done.

    :param index: of the application's datasets
    """
    if not any(write.skipped for record in records for write in record.writes):
        return application, list(records)
    skipped, done = (
        _write_timelines(records, index, skipped=True),
        _write_timelines(records, index, skipped=False),
    )

    def is_skipped(name: _Written, span: Span) -> bool:
        return _has_overlap(skipped, name, span) and not _has_overlap(done, name, span)

    def without(action: Action) -> Action | None:
        span = _action_span(action)
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
            is_nothing = is_skipped(_written_name(index, target), _record_span(record))
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
    failed = _timelines(
        (index.find(record.command.target.path, record.command.target.table), _record_span(record))
        for record in records
        if record.failed and record.command is not None
    )
    if not failed:
        return application
    done = _write_timelines(records, index, skipped=False)
    reads = _timelines(
        (index.find(path, read.table), _record_span(record))
        for record in records
        for read in record.reads
        for path in read.roots or ("",)
    )

    def corrected(action: Action) -> Action:
        span = _action_span(action)
        if action.state is not ActionState.COMPLETE or not action.outputs:
            return action
        if not all(_has_overlap(failed, d.name, span) for d in action.outputs):
            return action
        if any(_has_overlap(done, d.name, span) for d in action.outputs):
            return action  # of one that was tried again right after
        inputs = tuple(d for d in action.inputs if _has_overlap(reads, d.name, span))
        return replace(action, state=ActionState.FAILED, inputs=inputs)

    return replace(application, actions=tuple(map(corrected, application.actions)))


def _action_span(action: Action) -> Span:
    """Give the time of an action; one that is reported by its end alone began before that."""
    ended = action.ended or action.started
    return (action.started if action.started < ended else ended - SLACK), ended


def _record_span(record: ObservationRecord, at: int | None = None) -> Span:
    """Give the time of a query, or the time in it that is known."""
    if at is not None:
        return timestamp(at), timestamp(at)
    return timestamp(record.started), timestamp(record.ended)


def _timelines(found: Iterable[tuple[_Written | None, Span]]) -> _Timelines:
    spans: dict[_Written, list[tuple[datetime, datetime, Span]]] = defaultdict(list)
    for name, span in found:
        if name is not None:
            spans[name].append((*span, span))
    return {name: Timeline(of) for name, of in spans.items()}


def _write_timelines(
    records: Sequence[ObservationRecord], index: DatasetIndex, *, skipped: bool
) -> _Timelines:
    return _timelines(
        (_written_name(index, write), _record_span(record, write.time))
        for record in records
        for write in record.writes
        if write.skipped is skipped
    )


def _written_name(index: DatasetIndex, record: RelationRecord | WriteRecord) -> _Written:
    return index.find(record.path, record.table) or plain_uri(record.path) or record.table or ""


def _has_overlap(writes: _Timelines, name: _Written, span: Span) -> bool:
    """Whether there was a write at that time, and not just right before or after it."""
    found = writes[name].during(*span) if name in writes else ()
    return any(overlap(span, of_write) for of_write in found)


# --- batches of streams ---------------------------------------------------------------------------


class _Batch(NamedTuple):
    """A batch of a stream.

    :param folders: without partitions, that it read files of
    """

    span: Span
    folders: frozenset[DatasetName]


def with_real_batches(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Give the application with the actions and datasets that its streams really had."""
    batches: list[tuple[datetime, datetime, _Batch]] = []
    for record in records:
        if record.function == "stream":
            span = timestamp(record.started), timestamp(record.ended)
            batches.append((*span, _Batch(span, frozenset(_batch_folders(record, locator)))))
    if not batches:
        return application
    timeline = Timeline(batches)
    latest: dict[tuple[frozenset[DatasetName], ...], Action] = {}
    actions: list[Action] = []
    for action in application.actions:
        sides = (action.inputs, action.outputs)
        names = tuple(frozenset(dataset.name for dataset in side) for side in sides)
        during = timeline.during(action.started, action.ended)
        if any(_is_step_of(action, latest.get(names), batch.span) for batch in during):
            continue
        latest[names] = action
        folders = {folder for batch in during for folder in batch.folders}
        actions.append(replace(action, inputs=_in_folders(action.inputs, folders)))
    return replace(application, actions=tuple(actions))


def _batch_folders(record: ObservationRecord, locator: Locator) -> Iterator[DatasetName]:
    """Name the folders without partitions that a batch read files of."""
    for read in record.reads:
        for layout in read.layouts or ():
            location = locator.locate(layout.base)
            if location is not None and not layout.dimensions:
                yield location.dataset


def _in_folders(
    inputs: Sequence[ActionDataset], folders: Iterable[DatasetName]
) -> tuple[ActionDataset, ...]:
    """Give the inputs of an action with the folders that files of theirs are in."""
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in inputs:
        name = next((folder for folder in folders if _is_in_folder(dataset.name, folder)), None)
        found.setdefault(name or dataset.name, replace(dataset, name=name) if name else dataset)
    return tuple(found[name] for name in sorted(found))


def _is_in_folder(file: DatasetName, folder: DatasetName) -> bool:
    return file.namespace == folder.namespace and file.name.startswith(f"{folder.name}/")


def _is_step_of(action: Action, around: Action | None, batch: Span) -> bool:
    """Whether an action is a step of the one around it, in one batch."""
    if around is None or around.ended is None or action.ended is None or not action.outputs:
        return False
    started, ended = batch
    is_in_batch = started - SLACK <= around.started and around.ended <= ended + SLACK
    return is_in_batch and action.ended <= around.ended


# --- inferred files -------------------------------------------------------------------------------


def without_inferred_files(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Leave out inputs that are files of other datasets and were looked at for columns alone."""
    looked_at: set[DatasetName] = set()
    opened: set[DatasetName] = set()
    for record in records:
        for read in record.reads:
            found = map(locator.locate, read.roots)
            names = {location.dataset for location in found if location is not None}
            (looked_at if read.inference else opened).update(names)
    index = DatasetIndex(identities(application), locator)
    files = {name for name in looked_at - opened if _is_file_of_dataset(name, index)}
    if not files:
        return application
    actions = tuple(
        replace(action, inputs=tuple(d for d in action.inputs if d.name not in files))
        for action in application.actions
    )
    return replace(application, actions=actions)


def _is_file_of_dataset(name: DatasetName, index: DatasetIndex) -> bool:
    return looks_like_file(name.name) and index.above(name) is not None
