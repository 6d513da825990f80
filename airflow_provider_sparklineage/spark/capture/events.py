"""The listener's events, decoded from NDJSON.

One line is one OpenLineage RunEvent (``io.openlineage.client.transports.FileTransport``: compact
JSON and a line separator, appended without lock or fsync). So a killed driver can leave half of a
last line, and other lines cannot be trusted either: lines that are not run events are counted, the
first of them are reported with their line numbers, and reading goes on. The fields that merging
needs have types. Facets of datasets remain raw JSON (:class:`msgspec.Raw`), because most of them
are only passed on.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.spark.capture.lines import (
    BYTE_ORDER_MARK,
    LongLine,
    RawFacets,
    UnreadableError,
    decoded,
    is_too_deep,
    lines_of,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_sparklineage.spark.capture.lines import ReadReport


class RunIdentity(msgspec.Struct):
    """The object ``run`` of a parent facet."""

    run_id: str = msgspec.field(name="runId")


class ParentFacet(msgspec.Struct):
    """Run facet ``parent``: the application of an action, or the Airflow task of an application."""

    run: RunIdentity
    job: JobName | None = None


class ProcessingEngineFacet(msgspec.Struct):
    """Run facet ``processing_engine``: the versions of Spark and of the listener."""

    version: str | None = None
    adapter_version: str | None = msgspec.field(name="openlineageAdapterVersion", default=None)


class ApplicationDetailsFacet(msgspec.Struct):
    """Run facet ``spark_applicationDetails``, which only the application's START event has."""

    application_id: str | None = msgspec.field(name="applicationId", default=None)


class SparkPropertiesFacet(msgspec.Struct):
    """Run facet ``spark_properties``: the Spark properties that ``capturedProperties`` names."""

    properties: dict[str, str | int | float | bool | None] | None = None


class ExceptionFacet(msgspec.Struct):
    """Run facet ``spark.exception``, which only FAIL events have."""

    message: str | None = None
    stack_trace: str | None = msgspec.field(name="stackTrace", default=None)


class RunFacets(msgspec.Struct):
    """The run facets that merging reads."""

    parent: ParentFacet | None = None
    processing_engine: ProcessingEngineFacet | None = None
    application_details: ApplicationDetailsFacet | None = msgspec.field(
        name="spark_applicationDetails", default=None
    )
    spark_properties: SparkPropertiesFacet | None = None
    exception: ExceptionFacet | None = msgspec.field(name="spark.exception", default=None)


class JobTypeFacet(msgspec.Struct):
    """Job facet ``jobType``: APPLICATION, SQL_JOB or RDD_JOB; processed as BATCH or STREAMING."""

    job_type: str | None = msgspec.field(name="jobType", default=None)
    processing_type: str | None = msgspec.field(name="processingType", default=None)


class SqlFacet(msgspec.Struct):
    """Job facet ``sql`` of a ``spark.sql()`` statement."""

    query: str | None = None


class JobFacets(msgspec.Struct):
    """The job facets that merging reads."""

    job_type: JobTypeFacet | None = msgspec.field(name="jobType", default=None)
    sql: SqlFacet | None = None


class Run(msgspec.Struct):
    """The object ``run`` of an event."""

    run_id: str = msgspec.field(name="runId")
    facets: RunFacets | None = None


class Job(JobName, frozen=True):
    """The object ``job`` of an event."""

    facets: JobFacets | None = None


class EventDataset(msgspec.Struct):
    """An entry of ``inputs`` or ``outputs``; any of its facet maps may be absent."""

    namespace: str
    name: str
    facets: RawFacets | None = None
    input_facets: RawFacets | None = msgspec.field(name="inputFacets", default=None)
    output_facets: RawFacets | None = msgspec.field(name="outputFacets", default=None)


class SparkEvent(msgspec.Struct):
    """One OpenLineage RunEvent that the listener wrote; its time is in UTC."""

    event_time: datetime = msgspec.field(name="eventTime")
    run: Run
    job: Job
    event_type: str | None = msgspec.field(name="eventType", default=None)
    inputs: list[EventDataset] | None = None
    outputs: list[EventDataset] | None = None

    def __post_init__(self) -> None:
        if self.event_time.tzinfo is None:
            self.event_time = self.event_time.replace(tzinfo=UTC)
        elif self.event_time.utcoffset():
            try:
                self.event_time = self.event_time.astimezone(UTC)
            except OverflowError as error:  # a time in the year 1 can be before the year 1 in UTC
                msg = "eventTime is no time of UTC"
                raise ValueError(msg) from error

    @property
    def parent_run_id(self) -> str | None:
        """The run id in the parent facet; None if the event has no parent facet."""
        facets = self.run.facets
        return facets.parent.run.run_id if facets and facets.parent else None

    @property
    def job_type(self) -> str:
        """The ``jobType`` of the job type facet; empty for an older listener, which sends none."""
        facets = self.job.facets
        return (facets.job_type.job_type or "") if facets and facets.job_type else ""

    @property
    def is_stream(self) -> bool:
        """Whether the job is a batch of a stream, by the processing type in its job type facet."""
        facets = self.job.facets
        kind = facets.job_type.processing_type if facets and facets.job_type else None
        return kind == "STREAMING"


_DECODER = msgspec.json.Decoder(SparkEvent)


def read_events(
    lines: Iterable[bytes | LongLine],
    report: ReadReport,
    *,
    source: str,
    past_deadline: Callable[[], bool] = lambda: False,
) -> Iterator[SparkEvent]:
    """Decode lines; report and skip a line that is not a run event (see :func:`.lines.read`).

    :param report: receives the counts, and the lines that are no run events
    :param source: the file's name, for messages
    :param past_deadline: is called before each line; if it returns True, reading ends
    """
    return read(lines, _DECODER, report, source=source, past_deadline=past_deadline)


_ANY = msgspec.json.Decoder(dict[str, Any])


def whole_event(line: bytes) -> dict[str, Any] | None:
    """Decode an event with all its keys; None if the line is not an event or nests too deeply."""
    try:
        decoded(line, _DECODER)
        event = decoded(line, _ANY)
    except UnreadableError:
        return None
    return None if is_too_deep(line, event) else event


def as_lines(stream: IO[bytes]) -> Iterable[bytes | LongLine]:
    """Give the lines of a stream of NDJSON, or of a JSON document, with one event in each line.

    A document is one event or an array of events. The stream is a document if its first line begins
    an array, or begins an object that does not end in that line.

    :param stream: a file that can be read again from its start
    """
    lines = lines_of(stream)
    first = next(lines, b"")
    if isinstance(first, LongLine):
        return chain([first], lines)
    start = first.lstrip()[:1]
    if start != b"[" and (start != b"{" or is_json(first)):
        return chain([first], lines) if first else ()
    stream.seek(0)
    content = stream.read(MAX_DOCUMENT_BYTES + 1).removeprefix(BYTE_ORDER_MARK)
    try:
        events = _ARRAY.decode(content) if start == b"[" else [content]
        return [msgspec.json.format(bytes(event), indent=-1) + b"\n" for event in events]
    except (ValueError, RecursionError):
        return lines_of(stream)


MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)


def is_json(text: bytes) -> bool:
    """Whether a line is JSON of any kind."""
    try:
        decoded(text, _RAW)
    except UnreadableError:
        return False
    return True
