"""Read the observer's records of a try from its bundle, and correct the application by them.

:func:`observed` makes the corrections in their order. Each correction takes an application and the
records, and gives a new application (*reported ends* gives new records, *skipped writes* both):

- *Reported ends*: the end of a query becomes that of its action, if exactly one action took as
  long as the query.
- *Batches of streams*: the listener reports each file of a batch that is in no partition as a
  dataset of its own: such files are replaced by the folder that the stream reads. A batch that
  writes a Delta table has a step of Delta in it, which is reported with the same datasets: the step
  is no action.
- *Failed writes*: an action whose query failed counts as failed, even if the listener reports that
  the action is complete.
- *Skipped writes*: with the mode ``ignore`` and an existing target, Spark runs the command and
  writes nothing. The listener reports the action of the command like any other action: with an
  output, and with inputs of which most were never opened. The observer's record has the inputs that
  were opened.
- *Unreported actions* (:mod:`.unreported_actions`): actions are added that the observer saw and the
  listener did not report.
- *Inferred files*: to find the columns of CSV and JSON files Spark reads one or all of them as
  text, in queries that the listener reports. If there is one file and no partition, the listener
  names the input after that file. Such an input is left out, because it is no dataset of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import SLACK, Timeline, overlap
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.observed.binding import (
    DatasetIndex,
    Observations,
    bind,
    plain_uri,
)
from airflow_provider_sparklineage.lineage.observed.unreported_actions import (
    identities,
    with_observed_actions,
)
from airflow_provider_sparklineage.model.budget import TOO_LONG, Budget, SpentError, because
from airflow_provider_sparklineage.model.datasets import DatasetName, looks_like_file
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.locations import Locator, RememberingLocator
from airflow_provider_sparklineage.model.producer import facet
from airflow_provider_sparklineage.spark.capture.observations import (
    Messages,
    ObservationRecord,
    ObservationReport,
    RelationRecord,
    SchemaRecord,
    WriteRecord,
    milliseconds,
    timestamp,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset, Span
    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle

    _Written = DatasetName | str
    _Timelines = Mapping[_Written, Timeline[Span]]


# --- ends of queries ------------------------------------------------------------------------------

_PRECISION_MS = 1  # the listener's two times are rounded, Spark's duration is not


def with_reported_ends(
    application: SparkApplication, records: Sequence[ObservationRecord]
) -> list[ObservationRecord]:
    """Set the end of a query to the end of its action, if exactly one action fits its times.

    :param application: the application, with actions in the order of their start
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
    """Leave skipped writes out of the application and out of the records.

    :param index: finds the application's datasets
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
    """Mark actions whose query failed as failed; such actions keep only the observed inputs.

    :param index: finds the application's datasets
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
            return action  # the write was tried again right after, and succeeded
        inputs = tuple(d for d in action.inputs if _has_overlap(reads, d.name, span))
        return replace(action, state=ActionState.FAILED, inputs=inputs)

    return replace(application, actions=tuple(map(corrected, application.actions)))


def _action_span(action: Action) -> Span:
    """Give the time span of an action; move its start back if only its end was reported."""
    ended = action.ended or action.started
    return (action.started if action.started < ended else ended - SLACK), ended


def _record_span(record: ObservationRecord, at: int | None = None) -> Span:
    """Give the time span of a query; just ``at``, the exact time of its write, if it is known."""
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
    """Whether a write of a dataset overlaps a time span, and does not only touch the span."""
    found = writes[name].during(*span) if name in writes else ()
    return any(overlap(span, of_write) for of_write in found)


# --- batches of streams ---------------------------------------------------------------------------


class _Batch(NamedTuple):
    """A batch of a stream.

    :param folders: folders without partitions whose files the batch read
    """

    span: Span
    folders: frozenset[DatasetName]


def with_real_batches(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Replace files of stream batches by their folders, and leave out steps inside of batches."""
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
    """Name the folders without partitions whose files a batch read."""
    for read in record.reads:
        for layout in read.layouts or ():
            location = locator.locate(layout.base)
            if location is not None and not layout.dimensions:
                yield location.dataset


def _in_folders(
    inputs: Sequence[ActionDataset], folders: Iterable[DatasetName]
) -> tuple[ActionDataset, ...]:
    """Give the inputs of an action, with files replaced by the folders that contain them."""
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in inputs:
        name = next((folder for folder in folders if _is_in_folder(dataset.name, folder)), None)
        found.setdefault(name or dataset.name, replace(dataset, name=name) if name else dataset)
    return tuple(found[name] for name in sorted(found))


def _is_in_folder(file: DatasetName, folder: DatasetName) -> bool:
    return file.namespace == folder.namespace and file.name.startswith(f"{folder.name}/")


def _is_step_of(action: Action, around: Action | None, batch: Span) -> bool:
    """Whether an action is a step inside of another action, in the time of one batch."""
    if around is None or around.ended is None or action.ended is None or not action.outputs:
        return False
    started, ended = batch
    is_in_batch = started - SLACK <= around.started and around.ended <= ended + SLACK
    return is_in_batch and action.ended <= around.ended


# --- inferred files -------------------------------------------------------------------------------


def without_inferred_files(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Leave out inputs that are files of other datasets, and were read only to infer columns."""
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


# --- facets of datasets that only the observer saw ------------------------------------------------


_SPEC = "https://openlineage.io/spec/facets"
_SCHEMA = f"{_SPEC}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_DATA_SOURCE = f"{_SPEC}/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet"
_LIFECYCLE = (
    f"{_SPEC}/1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet"
)


def observed_facets(
    name: DatasetName, schema: SchemaRecord | None, change: str
) -> dict[str, msgspec.Raw]:
    """Make the facets of a dataset that the observer saw.

    :param schema: the dataset's columns; None where they are not known
    :param change: ``OVERWRITE`` or ``CREATE``, for a dataset that was written; "" without a change
    """
    made = {"dataSource": facet(_DATA_SOURCE, name=name.namespace, uri=name.namespace)}
    if change:
        made["lifecycleStateChange"] = facet(_LIFECYCLE, lifecycleStateChange=change)
    facets = {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in made.items()}
    if schema is not None and schema.fields:
        try:
            columns = [_field(column.name, column.type) for column in schema.fields]
            facets["schema"] = msgspec.Raw(msgspec.json.encode(facet(_SCHEMA, fields=columns)))
        except RecursionError:  # types in a damaged record may be nested to any depth
            return facets
    return facets


def _field(name: str, kind: Any) -> dict[str, Any]:
    """Write a column as the listener does; the parts of a nested type are fields of the column.

    :param kind: the type as Spark writes it as JSON
    """
    if not isinstance(kind, dict):
        return {"name": name, "type": str(kind)}
    below: list[dict[str, Any]] = []
    match kind.get("type"):
        case "struct":
            fields = kind.get("fields")
            below = [
                _field(str(f.get("name", "")), f.get("type"))
                for f in (fields if isinstance(fields, list) else ())
                if isinstance(f, dict)
            ]
        case "array":
            below = [_field("_element", kind.get("elementType"))]
        case "map":
            below = [_field("key", kind.get("keyType")), _field("value", kind.get("valueType"))]
    nested = {"fields": below} if below else {}
    return {"name": name, "type": str(kind.get("type", "")), **nested}


# --- both witnesses -------------------------------------------------------------------------------


MAX_PARTITIONS = 500_000
"""Partitions in all records; each takes up to 1 KB. A repeated list of partitions counts as one."""


class Witnessed(NamedTuple):
    """An application as both witnesses, the listener and the observer, report it.

    :param application: has the actions that only the observer saw, and no skipped writes
    :param observations: None if the observer wrote nothing, or its records were not used
    """

    application: SparkApplication
    observations: Observations | None = None
    degradations: tuple[Degradation, ...] = ()


def observed(
    bundle: CaptureBundle,
    application: SparkApplication,
    locator: Locator,
    budget: Budget,
) -> Witnessed:
    """Read the observer's records, and correct the application by them.

    If not all records can be read, no record is used: the partitions of only some records would be
    wrong.

    :param application: the application as the listener reported it
    """
    report = ObservationReport()
    locator = RememberingLocator.of(locator)  # each layout is looked at seven times
    try:
        records = _bounded(bundle.observations(report, budget.is_spent), report)
        if not records and not report.malformed_lines:
            return Witnessed(application, degradations=_nothing_observed(bundle, application))
        records = with_reported_ends(application, records)
        done = with_real_batches(application, records, locator)
        index = DatasetIndex(identities(done), locator)
        done = with_failed_writes(done, records, index)
        done, records = without_skipped_writes(done, records, index)
        done = with_observed_actions(done, records, locator, observed_facets, budget)
        done = without_inferred_files(done, records, locator)
        observations = bind(records, identities(done), locator, budget)
    except CaptureError as error:  # the events are still valid without observations
        lost = Degradation(DegradationCode.OBSERVATIONS_MISSING, str(error))
        return Witnessed(application, degradations=(lost,))
    except SpentError as reason:
        return Witnessed(application, degradations=(_unobserved(reason),))
    return Witnessed(done, observations, tuple(_observation_troubles(report, observations)))


def _nothing_observed(
    bundle: CaptureBundle, application: SparkApplication
) -> tuple[Degradation, ...]:
    # A job that ends before it makes a session has no events either, which is reported already.
    if not {"py_files", "observer"} & set(bundle.manifest.injected) or not application.events:
        return ()
    return (
        Degradation(
            DegradationCode.OBSERVATIONS_MISSING,
            "The observer wrote nothing, so no partitions are known; another "
            "sitecustomize before ours on the driver's Python path would explain it.",
        ),
    )


def _bounded(
    records: Iterable[ObservationRecord], report: ObservationReport
) -> list[ObservationRecord]:
    """List the records, within the bound on partitions.

    :param report: the report on reading the records
    :raise SpentError: if the records have more than :data:`MAX_PARTITIONS` partitions, or there was
        no time to read all records
    """
    found: list[ObservationRecord] = []
    partitions, lists = 0, set()
    for record in records:
        layouts = [
            *(layout for read in record.reads for layout in read.layouts or ()),
            *(layout for write in record.writes for layout in (*write.layouts, *write.removed)),
        ]
        for listed in (layout.partitions for layout in layouts if layout.partitions):
            partitions += 1 if id(listed) in lists else len(listed)  # equal ones are one object
            lists.add(id(listed))
        if partitions > MAX_PARTITIONS:
            msg = f"they are more than {MAX_PARTITIONS}"
            raise SpentError(msg)
        found.append(record)
    if report.cut:
        raise SpentError(TOO_LONG)
    return found


def _unobserved(reason: object) -> Degradation:
    return Degradation(
        DegradationCode.COLLECTION_CUT,
        "The partitions that were observed were left out, and those that the listener reports are "
        f"used, {because(reason)}",
    )


def _observation_troubles(
    report: ObservationReport, observations: Observations
) -> list[Degradation]:
    malformed = Messages(report.malformed)
    malformed.count = report.malformed_lines
    problems = (
        (report.errors, DegradationCode.OBSERVER_FAILED, "The observer failed at times: {}."),
        (
            malformed,
            DegradationCode.MALFORMED_OBSERVATIONS,
            "Lines of the observer's file cannot be read and were left out: {}.",
        ),
        (report.stopped, DegradationCode.OBSERVATION_CUT, "The observer stopped looking: {}."),
        (
            Messages(observations.unmatched),
            DegradationCode.OBSERVATION_UNTIED,
            "Read or written, but it cannot be named as a dataset: {}.",
        ),
    )
    return [Degradation(code, text.format(met)) for met, code, text in problems if met.count]
