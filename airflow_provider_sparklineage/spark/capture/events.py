"""The listener's NDJSON, decoded: typed where merging looks, raw where it only forwards.

One line is one OpenLineage RunEvent (``io.openlineage.client.transports.FileTransport``: compact
JSON and a line separator, appended without lock or fsync). So a killed driver can leave half a last
line, and nothing else may be trusted either: lines that are not run events are counted and named,
never fatal. Facets stay undecoded (:class:`msgspec.Raw`), because most of them are only passed on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from airflow_provider_sparklineage.model.jobs import JobName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RawFacets = dict[str, msgspec.Raw]


class RunIdentity(msgspec.Struct):
    """``run`` of a parent facet."""

    run_id: str = msgspec.field(name="runId")


class ParentFacet(msgspec.Struct):
    """Run facet ``parent``: the application of an action, the Airflow task of an application."""

    run: RunIdentity
    job: JobName | None = None


class ProcessingEngineFacet(msgspec.Struct):
    """Run facet ``processing_engine``: versions of Spark and of the listener."""

    version: str | None = None
    adapter_version: str | None = msgspec.field(name="openlineageAdapterVersion", default=None)


class ApplicationDetailsFacet(msgspec.Struct):
    """Run facet ``spark_applicationDetails`` (START of the application)."""

    application_id: str | None = msgspec.field(name="applicationId", default=None)


class SparkPropertiesFacet(msgspec.Struct):
    """Run facet ``spark_properties``: the properties named by ``capturedProperties``."""

    properties: dict[str, str | int | float | bool | None] | None = None


class ExceptionFacet(msgspec.Struct):
    """Run facet ``spark.exception`` (FAIL only)."""

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
    """Job facet ``jobType``: APPLICATION, SQL_JOB or RDD_JOB."""

    job_type: str | None = msgspec.field(name="jobType", default=None)


class SqlFacet(msgspec.Struct):
    """Job facet ``sql`` of a ``spark.sql()`` statement."""

    query: str | None = None


class JobFacets(msgspec.Struct):
    """The job facets that merging reads."""

    job_type: JobTypeFacet | None = msgspec.field(name="jobType", default=None)
    sql: SqlFacet | None = None


class Run(msgspec.Struct):
    """``run`` of an event."""

    run_id: str = msgspec.field(name="runId")
    facets: RunFacets | None = None


class Job(JobName, frozen=True):
    """``job`` of an event."""

    facets: JobFacets | None = None


class EventDataset(msgspec.Struct):
    """An entry of ``inputs`` or ``outputs``; any of its facet maps may be absent."""

    namespace: str
    name: str
    facets: RawFacets | None = None
    input_facets: RawFacets | None = msgspec.field(name="inputFacets", default=None)
    output_facets: RawFacets | None = msgspec.field(name="outputFacets", default=None)


class SparkEvent(msgspec.Struct):
    """One OpenLineage RunEvent of the listener."""

    event_time: datetime = msgspec.field(name="eventTime")
    run: Run
    job: Job
    event_type: str | None = msgspec.field(name="eventType", default=None)
    inputs: list[EventDataset] | None = None
    outputs: list[EventDataset] | None = None

    def __post_init__(self) -> None:
        if self.event_time.tzinfo is None:
            self.event_time = self.event_time.replace(tzinfo=UTC)

    @property
    def parent_run_id(self) -> str | None:
        """Run id of the parent facet, if there is one."""
        facets = self.run.facets
        return facets.parent.run.run_id if facets and facets.parent else None

    @property
    def job_type(self) -> str:
        """``jobType`` of the job type facet; empty where an older listener sends none."""
        facets = self.job.facets
        return (facets.job_type.job_type or "") if facets and facets.job_type else ""


_DECODER = msgspec.json.Decoder(SparkEvent)


@dataclass
class ReadReport:
    """What reading met on the way; filled while :func:`read_events` is consumed."""

    events: int = 0
    bytes: int = 0
    malformed: list[str] = field(default_factory=list)
    """``file:line: why`` of the first lines that are not run events."""
    malformed_lines: int = 0
    torn: bool = False
    cut: bool = False

    MALFORMED_NAMED = 5  # enough to find the cause; the rest is counted


def read_events(
    lines: Iterable[bytes],
    report: ReadReport,
    *,
    source: str,
    past_deadline: Callable[[], bool] = lambda: False,
) -> Iterator[SparkEvent]:
    """Decode NDJSON lines, skipping and reporting what is not a run event.

    :param lines: the lines of one file with their line ends, so that a torn last line is recognised
    :param report: counts are added to it
    :param source: the file's name for messages
    :param past_deadline: asked before each event; if it says True, reading ends and
        ``report.cut`` is set
    """
    for number, line in enumerate(lines, start=1):
        if past_deadline():
            report.cut = True
            return
        report.bytes += len(line)
        if line.isspace():
            continue
        try:
            event = _DECODER.decode(line.decode())  # raw facets must be UTF-8 as well
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if not line.endswith(b"\n"):
                report.torn = True
                continue
            report.malformed_lines += 1
            if len(report.malformed) < report.MALFORMED_NAMED:
                report.malformed.append(f"{source}:{number}: {error}")
            continue
        report.events += 1
        yield event


def whole_event(line: bytes) -> dict[str, Any] | None:
    """Decode a line with all that is in it; None if it is not a run event."""
    try:
        text = line.decode()
        _DECODER.decode(text)
        event: dict[str, Any] = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return event


_T = TypeVar("_T")


def decode_facet(facet: msgspec.Raw | None, shape: type[_T]) -> _T | None:
    """Decode a facet that was kept raw; None where there is none, or it is not of that shape.

    Facets are other people's text: one of another shape costs what it would have had, and not
    the event.
    """
    if facet is None:
        return None
    try:
        of: Any = shape
        decoded: _T = _decoder(of).decode(facet)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return decoded


@cache  # of the few shapes in this package; to make one takes longer than decoding a facet
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


def as_lines(stream: IO[bytes]) -> Iterable[bytes]:
    """Give the lines of an NDJSON stream; a JSON document (event or array) is split into lines.

    A document is recognised by its first line: an array, or an object that does not end there.
    """
    first = stream.readline()
    start = first.lstrip()[:1]
    if start == b"[" or (start == b"{" and not _is_json(first)):
        content = first + stream.read()
        if start == b"[" and _is_json(content):
            events = msgspec.json.decode(content, type=list[msgspec.Raw])
            return [msgspec.json.format(bytes(event), indent=-1) + b"\n" for event in events]
        if _is_json(content):
            return [msgspec.json.format(content, indent=-1) + b"\n"]
        return content.splitlines(keepends=True)
    return chain([first] if first else [], stream)


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.MsgspecError:
        return False
    return True
