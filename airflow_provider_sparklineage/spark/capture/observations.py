"""The observer's records, decoded from NDJSON; ``schemas/observation.json`` describes a record.

Nothing in the file is trusted: a killed driver can leave half of a last line, and lines that are
not records are noted and left out. ``lineage/observed/binding.py`` binds the records to datasets.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr

from airflow_provider_sparklineage.model.partitioning import IDENTITY
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.spark.capture.lines import MAX_TEXT, ReadReport, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_sparklineage.spark.capture.lines import LongLine


Values = tuple[str | None, ...]
"""The values of one partition, in the order of the dimensions; None stands for null."""


class RecordDimension(msgspec.Struct, frozen=True):
    """A dimension of a table's partitioning: a partition column, or a transform of a column."""

    field: str
    transform: str = IDENTITY
    name: str = ""
    type: str = ""


class Layout(msgspec.Struct, frozen=True):
    """The partitions that were accessed below one base folder, and their dimensions."""

    base: str
    dimensions: list[RecordDimension] = []
    partitions: tuple[Values, ...] = ()
    rows: tuple[int | None, ...] | None = None
    """Of a write, the rows that it added to each of the partitions; None if they are not known."""
    sizes: tuple[int | None, ...] | None = msgspec.field(default=None, name="bytes")
    """Of a write, the bytes of the files that it added to each of them; None if not known."""


class ColumnRecord(msgspec.Struct, frozen=True):
    """A column, and its type in Spark's JSON form: a word, or an object if the type is nested."""

    name: str
    type: Any = ""


class SchemaRecord(msgspec.Struct, frozen=True):
    """The columns of a relation, partition columns included."""

    fields: list[ColumnRecord] = []


class ReadRecord(msgspec.Struct, frozen=True):
    """A scan of a query's plan: the files or the table that the scan read, and the partitions."""

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
    """The relation's columns; only the first read of each relation has them."""
    planned: bool = False
    """Whether the query may have ended before all of these partitions were opened."""
    chosen: bool = False
    """Whether files were chosen by other means than the filters, so that a partition may have been
    read only in part."""
    inference: bool = False
    """Whether the files of ``roots`` were read as text, only to find their columns."""
    branch: str = ""
    """The branch of an Iceberg table that was read; the places of the read are those of the branch,
    which has a name of its own."""
    scan: str = ""
    """The class of an Iceberg scan."""
    index: str = ""
    """The class of the index of a scan of files."""
    copied: bool = False
    """Whether a command took over the rows as they were: the target has the same columns."""
    not_data: bool = False
    """Whether only metadata of the table in ``roots`` were read, and none of its data."""
    cut: str = ""


class WriteRecord(msgspec.Struct, frozen=True):
    """A write, as a write command of a plan, a commit or a snapshot shows it."""

    node: str
    path: str
    mode: str
    """``whole``, ``static`` or ``dynamic`` for an overwrite, else ``append``, ``create`` or
    ``rows``.
    """
    how: str
    """The way in which the partitions were found: ``exact``, ``listing`` or ``unknown``."""
    table: str | None = None
    layouts: list[Layout] = []
    removed: list[Layout] = []
    """Partitions from which files were removed, the written ones among them."""
    emptied: list[Layout] | None = None
    """The partitions in ``removed`` of which no file is left; None if the observer did not look."""
    shared: tuple[Values, ...] | None = None
    """Partitions that also hold files of other writers; None if the observer did not look."""
    skipped: bool = False
    """Whether nothing was written, because the target existed already."""
    parts: int = msgspec.field(default=0, name="numParts")
    """The number of partitions that a write of files wrote, as Spark counts them."""
    operation: str = ""
    """The operation of a commit of Delta, or the procedure of Iceberg that moved a table."""
    branch: str = ""
    """The branch of an Iceberg table that was written; the places of the write are those of the
    branch, which has a name of its own."""
    time: int | None = None
    """The time of the commit, in ms since the epoch; None stands for the time of the query."""
    cut: str = ""

    @property
    def every_layout(self) -> list[Layout]:
        """All lists of partitions of the record."""
        return [*self.layouts, *self.removed, *(self.emptied or ())]


class MaintenanceRecord(msgspec.Struct, frozen=True):
    """A command that leaves the data of a table as it is, such as OPTIMIZE.

    :param path: the path of the table; empty if it is not known
    :param operation: the name of the command in SQL
    """

    path: str
    operation: str
    table: str | None = None


class UdfRecord(msgspec.Struct, frozen=True):
    """A Python UDF in the plan, and its argument columns."""

    result: str
    function: str = ""
    columns: list[str] = []


class RelationRecord(msgspec.Struct, frozen=True):
    """The target of a command: a path, the name of a table, or both."""

    path: str = ""
    table: str | None = None


class PlanRelationRecord(RelationRecord, frozen=True):
    """A path or table that a leaf of a plan reads, and the expression ids of the leaf's output."""

    ids: list[int] = []


class CommandRecord(msgspec.Struct, frozen=True):
    """A command that writes, in the form that it has after Spark's analysis.

    :param node: the class name of the logical command
    :param columns: the columns of the target, in the order of the query's output
    :param plan: the array of Spark's ``TreeNode.toJSON``; empty where the listener reports enough,
        or if the plan exceeds a limit, which ``cut`` then names
    :param describes: whether the plan is for descriptions alone: the listener reports the columns
    """

    node: str
    target: RelationRecord
    schema: SchemaRecord | None = None
    columns: list[str] = []
    plan: msgspec.Raw = msgspec.Raw()
    relations: list[PlanRelationRecord] = []
    cut: str = ""
    describes: bool = False


class ObservationRecord(msgspec.Struct, frozen=True):
    """A record, which is one line of ``observations.ndjson``; times are in ms since the epoch."""

    kind: str = ""
    """``start``, ``query``, ``commits``, ``clock``, ``cut`` or ``end``; empty in a record that only
    reports an ``error``."""
    error: str = ""
    query: int = -1
    function: str = ""
    """The method of Spark that ran the query."""
    started: int = 0
    ended: int = 0
    duration: int = 0
    """The duration of the query's execution in ms, as Spark reports it; 0 if it is not known."""
    planned: int = 0
    """When Spark began to optimise the plan, if that was before ``started``; otherwise 0."""
    seen: int = 0
    """When the observer saw that the query had ended, if that was after ``ended``; otherwise 0."""
    failed: bool = False
    reads: list[ReadRecord] = []
    writes: list[WriteRecord] = []
    python_udfs: list[UdfRecord] = []
    command: CommandRecord | None = None
    maintenance: list[MaintenanceRecord] = []
    gone: list[str] = []
    """The folders that queries had written and that did not exist any more when the driver
    ended."""
    put_back: int | None = None
    """The number of ms by which the driver's clock was put back: at one time in a record of the
    kind ``clock``, in all in one of the kind ``end``; None if the observer did not look."""
    errors: list[str] = []
    cut: list[str] = []
    observer: str = ""
    """Of a record of the kind ``start``, the digest of the observer's files; empty if the observer
    is older than this field, or was not packed."""


_DECODER = msgspec.json.Decoder(ObservationRecord)
# The prefix of errors of a failed delivery. They are no loss if they are in this file: a later
# delivery of the same driver brought them, together with the lines of the failed delivery.
_DELIVERED_LATER = "deliver: "
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST_MS = 253_402_300_799_000  # end of the year 9999; a damaged record can have a later time


def timestamp(milliseconds: int) -> datetime:
    """Convert ms since the epoch to a time in UTC.

    A number below 0 or after the year 9999 is capped.
    """
    return datetime.fromtimestamp(min(max(milliseconds, 0), _LATEST_MS) / 1000, UTC)


def milliseconds(at: datetime) -> int:
    """Convert a time to ms since the epoch, the form that records have."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


class Messages:
    """Messages of other programs: the first three of them, each truncated, and the count of all."""

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


class ObservationReport(ReadReport):
    """The result of reading the observer's file; it grows while the records are consumed."""

    errors: Messages = msgspec.field(default_factory=Messages)
    """The errors that the observer met in itself."""
    stopped: Messages = msgspec.field(default_factory=Messages)
    """The parts of the job that the observer did not look at, with the reasons."""
    observers: set[str] = msgspec.field(default_factory=set)
    """The digests of the observers that wrote the records; an empty one is not known."""


def read_observations(
    lines: Iterable[bytes | LongLine],
    report: ObservationReport,
    past_deadline: Callable[[], bool] = lambda: False,
) -> Iterator[ObservationRecord]:
    """Decode the observer's lines; report a line that is not a record, and leave it out.

    :param report: receives the counts, the lines that are no records, and the observer's own errors
    :param past_deadline: is called before each line; if it returns True, reading ends
    """
    source, partitions = "observations.ndjson", _PartitionLists()
    for record in read(lines, _DECODER, report, source=source, past_deadline=past_deadline):
        for error in (record.error, *record.errors):
            if not error.startswith(_DELIVERED_LATER):
                report.errors.add(error)
        for reason in record.cut:
            report.stopped.add(reason)
        if record.kind == "start":
            report.observers.add(record.observer)
        if record.command:
            report.stopped.add(record.command.cut)
        partitions.share(record)
        yield record


_PUT_BACK = b'"put_back":'


def clock_put_back(
    lines: Iterable[bytes | LongLine], past_deadline: Callable[[], bool] = lambda: False
) -> timedelta | None:
    """Find by how much the driver's clock was put back in all.

    :param lines: the lines of the observer's file
    :param past_deadline: is called before each line; if it returns True, reading ends
    :return: None if it is not known, because there is neither a record of the driver's end (a
        killed driver writes none) nor a record of a clock that was put back
    """
    reporting = (line for line in lines if isinstance(line, bytes) and _PUT_BACK in line)
    report, noted, in_all = ReadReport(), 0, None
    for record in read(reporting, _DECODER, report, source="", past_deadline=past_deadline):
        if record.kind == "end":
            in_all = record.put_back
        elif record.kind == "clock":
            noted += record.put_back or 0
    if in_all is None and not noted:
        return None
    put_back = noted if in_all is None else in_all
    return timedelta(milliseconds=min(max(put_back, 0), _LATEST_MS))


class _PartitionLists:
    """Memory for lists of partitions: equal lists become one object, because queries repeat them.

    Lists that are not equal still share the objects of those partitions that are in both.
    """

    def __init__(self) -> None:
        self._lists: dict[tuple[Values, ...], tuple[Values, ...]] = {}
        self._values: dict[Values, Values] = {}

    def share(self, record: ObservationRecord) -> None:
        """Replace each list of partitions by the equal list of an earlier record, if there is one.

        :param record: is changed in place, so no other code may have it yet
        """
        for scan in record.reads:
            self._share_layouts(scan.layouts or ())
        for write in record.writes:
            self._share_layouts(write.every_layout)
            if write.shared:
                force_setattr(write, "shared", self._shared(write.shared))

    def _share_layouts(self, layouts: Iterable[Layout]) -> None:
        for layout in layouts:
            force_setattr(layout, "partitions", self._shared(layout.partitions))

    def _shared(self, listed: tuple[Values, ...]) -> tuple[Values, ...]:
        shared = self._lists.get(listed)
        if shared is None:
            shared = tuple(map(self._values.setdefault, listed, listed))
            self._lists[shared] = shared
        return shared
