"""The observer's NDJSON, decoded; one line is one record of ``schemas/observation.json``.

Nothing in the file is trusted: a killed driver leaves half a line, and lines that are no records
are noted and left out. ``lineage/observed/binding.py`` binds the records to datasets.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr

from airflow_provider_sparklineage.model.partitioning import IDENTITY
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.spark.capture.lines import MAX_TEXT, read
from airflow_provider_sparklineage.spark.capture.reports import LinesReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_sparklineage.spark.capture.lines import LongLine


Values = tuple[str | None, ...]
"""The values of one partition, in the order of the dimensions; null is None."""


class RecordDimension(msgspec.Struct, frozen=True):
    """A partition column or transform."""

    field: str
    transform: str = IDENTITY
    name: str = ""
    type: str = ""


class Layout(msgspec.Struct, frozen=True):
    """Partitions below one base."""

    base: str
    dimensions: list[RecordDimension] = []
    partitions: tuple[Values, ...] = ()


class ColumnRecord(msgspec.Struct, frozen=True):
    """A column; its type as in Spark's JSON: a word, or an object if the type is nested."""

    name: str
    type: Any = ""


class SchemaRecord(msgspec.Struct, frozen=True):
    """The columns of a relation, partition columns included."""

    fields: list[ColumnRecord] = []


class ReadRecord(msgspec.Struct, frozen=True):
    """A scan."""

    node: str
    table: str | None = None
    format: str = ""
    roots: list[str] = []
    partition_filters: list[str] = []
    data_filters: list[str] = []
    pushed_filters: list[str] = []
    layouts: list[Layout] | None = None
    """None if the partitions are not known."""
    snapshot: str = ""
    schema: SchemaRecord | None = None
    """Only in the first read of each relation."""
    planned: bool = False
    """Whether the query may have ended before all of these partitions were opened."""
    chosen: bool = False
    """Whether files were chosen by other means than the filters, so some may be missing."""
    inference: bool = False
    """Whether the files of ``roots`` were read as text, only to find their columns."""
    cut: str = ""


class WriteRecord(msgspec.Struct, frozen=True):
    """A write command, a commit or a snapshot."""

    node: str
    path: str
    mode: str
    """``whole``, ``static``, ``dynamic`` (overwrites), ``append``, ``create``, ``rows``."""
    how: str
    """How the partitions were found: ``exact``, ``listing``, ``unknown``."""
    table: str | None = None
    layouts: list[Layout] = []
    removed: list[Layout] = []
    shared: tuple[Values, ...] | None = None
    """Partitions that also hold files of other writers; None if the observer did not look."""
    skipped: bool = False
    """Whether nothing was written, because the target was there already."""
    time: int | None = None
    """When the write was committed, in ms; None stands for the time of the query."""
    cut: str = ""


class UdfRecord(msgspec.Struct, frozen=True):
    """A Python UDF in the plan, and its argument columns."""

    result: str
    function: str = ""
    columns: list[str] = []


class RelationRecord(msgspec.Struct, frozen=True):
    """The target of a command: a path, the name of a table, or both."""

    path: str = ""
    table: str | None = None


class PlanRelationRecord(msgspec.Struct, frozen=True):
    """A path or table that a leaf of a plan reads, and the expression ids of the leaf's output."""

    path: str = ""
    table: str | None = None
    ids: list[int] = []


class CommandRecord(msgspec.Struct, frozen=True):
    """A command that writes, as Spark analysed it.

    :param node: class of the logical command
    :param columns: the columns of the target, in the order of the query's output
    :param plan: Spark's ``TreeNode.toJSON``, an array; empty where the listener reports enough, or
        with ``cut``
    """

    node: str
    target: RelationRecord
    schema: SchemaRecord | None = None
    columns: list[str] = []
    plan: msgspec.Raw = msgspec.Raw()
    relations: list[PlanRelationRecord] = []
    cut: str = ""


class ObservationRecord(msgspec.Struct, frozen=True):
    """One line of ``observations.ndjson``; times are ms since the epoch."""

    kind: str = ""
    """``start``, ``query``, ``commits``, ``clock``, ``cut``, ``end``; empty with ``error``."""
    error: str = ""
    query: int = -1
    function: str = ""
    """The method of Spark that ran the query."""
    started: int = 0
    ended: int = 0
    duration: int = 0
    """Of the query's execution, as Spark reports; 0 if that is not known."""
    failed: bool = False
    reads: list[ReadRecord] = []
    writes: list[WriteRecord] = []
    python_udfs: list[UdfRecord] = []
    command: CommandRecord | None = None
    gone: list[str] = []
    """Folders that were written, and did not exist any more at the end."""
    put_back: int | None = None
    """By how many ms the driver's clock was put back: once (``clock``), or in all (``end``); None
    if the observer did not look."""
    errors: list[str] = []
    cut: list[str] = []


_DECODER = msgspec.json.Decoder(ObservationRecord)
# The prefix of errors of a failed delivery: a later delivery of that driver had the same lines.
_DELIVERED_LATER = "deliver: "
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999: a damaged record may have any number


def timestamp(milliseconds: int) -> datetime:
    """Give the time of a record's ms since the epoch; a number out of range becomes the limit."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), _LATEST_MS) / 1000, UTC)


def milliseconds(at: datetime) -> int:
    """Give a time in ms since the epoch, as records have it."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


class Messages:
    """Messages from elsewhere: the first three, each truncated, and the count of all."""

    NAMED = 3

    def __init__(self, messages: Iterable[str] = ()) -> None:
        self.first: list[str] = []
        self.count = 0
        for message in messages:
            self.add(message)

    def add(self, message: str) -> None:
        """Add a message; an empty one is not counted."""
        if not message:
            return
        self.count += 1
        if len(self.first) < self.NAMED:
            self.first.append(truncated(message, MAX_TEXT))

    def __str__(self) -> str:
        more = self.count - len(self.first)
        return "; ".join(self.first) + (f" and {more} more" if more else "")


class ObservationReport(LinesReport):
    """The result of reading the observer's file; filled while its records are consumed."""

    errors: Messages = msgspec.field(default_factory=Messages)
    """Errors in the observer."""
    stopped: Messages = msgspec.field(default_factory=Messages)
    """Parts of the job that the observer did not look at, and why."""


def read_observations(
    lines: Iterable[bytes | LongLine],
    report: ObservationReport,
    past_deadline: Callable[[], bool] = lambda: False,
) -> Iterator[ObservationRecord]:
    """Decode the observer's lines; a line that is no record is noted and left out."""
    source, kept = "observations.ndjson", _KeptLists()
    for record in read(lines, _DECODER, report, source=source, past_deadline=past_deadline):
        for error in (record.error, *record.errors):
            if not error.startswith(_DELIVERED_LATER):
                report.errors.add(error)
        for reason in record.cut:
            report.stopped.add(reason)
        if record.command:
            report.stopped.add(record.command.cut)
        kept.share(record)
        yield record


_PUT_BACK = b'"put_back":'


def clock_put_back(
    lines: Iterable[bytes | LongLine], past_deadline: Callable[[], bool] = lambda: False
) -> timedelta | None:
    """Find by how much the driver's clock was put back in all.

    :return: None if the records do not say: without a record of the end, as from a killed driver,
        and without a record of a clock that was put back
    """
    reporting = (line for line in lines if isinstance(line, bytes) and _PUT_BACK in line)
    report, noted, in_all = LinesReport(), 0, None
    for record in read(reporting, _DECODER, report, source="", past_deadline=past_deadline):
        if record.kind == "end":
            in_all = record.put_back
        elif record.kind == "clock":
            noted += record.put_back or 0
    if in_all is None and not noted:
        return None
    put_back = noted if in_all is None else in_all
    return timedelta(milliseconds=min(max(put_back, 0), _LATEST_MS))


class _KeptLists:
    """Lists of partitions, each kept once: most queries of an application read the same ones.

    Lists that differ share their equal partitions.
    """

    def __init__(self) -> None:
        self._lists: dict[tuple[Values, ...], tuple[Values, ...]] = {}
        self._values: dict[Values, Values] = {}

    def share(self, record: ObservationRecord) -> None:
        """Replace a record's lists by equal kept ones; the record must have no other user yet."""
        for scan in record.reads:
            self._share_layouts(scan.layouts or ())
        for write in record.writes:
            self._share_layouts(write.layouts)
            self._share_layouts(write.removed)
            if write.shared:
                force_setattr(write, "shared", self._kept(write.shared))

    def _share_layouts(self, layouts: Iterable[Layout]) -> None:
        for layout in layouts:
            force_setattr(layout, "partitions", self._kept(layout.partitions))

    def _kept(self, listed: tuple[Values, ...]) -> tuple[Values, ...]:
        kept = self._lists.get(listed)
        if kept is None:
            kept = tuple(map(self._values.setdefault, listed, listed))
            self._lists[kept] = kept
        return kept
