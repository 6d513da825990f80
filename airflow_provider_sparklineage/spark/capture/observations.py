"""The observer's NDJSON, decoded; one line is one record of ``schemas/observation.json``.

Nothing in the file is trusted: a killed driver leaves half a line, and lines that are no records
are noted and left out. ``lineage/application/binding.py`` binds the records to datasets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.partitioning import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RecordDimension(msgspec.Struct, frozen=True):
    """A partition column or transform."""

    field: str
    transform: str = IDENTITY
    name: str = ""
    type: str = ""


class Layout(msgspec.Struct, frozen=True):
    """Partitions below one base; values in the order of the dimensions, null is null."""

    base: str
    dimensions: list[RecordDimension] = []
    partitions: list[list[str | None]] = []


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
    """None where the partitions are not known."""
    snapshot: str = ""
    cut: str = ""


class WriteRecord(msgspec.Struct, frozen=True):
    """A write command, a commit or a snapshot."""

    node: str
    path: str
    mode: str
    """``whole``, ``static``, ``dynamic`` (overwrites), ``append``, ``create``, ``rows``."""
    how: str
    """How the partitions are known: ``exact``, ``listing``, ``unknown``."""
    table: str | None = None
    layouts: list[Layout] = []
    removed: list[Layout] = []
    shared: list[list[str | None]] | None = None
    """Partitions that also hold files of other writers; None where that was not looked at."""
    time: int | None = None
    """When it was committed, in ms; without it, the time of the query."""
    cut: str = ""


class UdfRecord(msgspec.Struct, frozen=True):
    """A Python UDF in the plan, and the columns that it is given."""

    result: str
    function: str = ""
    columns: list[str] = []


class RelationRecord(msgspec.Struct, frozen=True):
    """What a plan reads or writes."""

    path: str = ""
    table: str | None = None


class UntracedColumnRecord(msgspec.Struct, frozen=True):
    """A column that was written, and its sources: indexes of relations, with their columns."""

    column: str
    complete: bool = False
    sources: list[tuple[int, str]] = []


class UntracedColumnsRecord(msgspec.Struct, frozen=True):
    """Columns of a write whose sources the listener does not report."""

    target: RelationRecord
    relations: list[RelationRecord] = []
    columns: list[UntracedColumnRecord] = []
    without_sources: dict[str, list[str]] = {}
    """Columns that are made of no column: of ``literal``, ``count``, ``rdd`` and so on."""
    cut: str = ""


class ObservationRecord(msgspec.Struct, frozen=True):
    """One line of ``observations.ndjson``; times are ms since the epoch."""

    kind: str = ""
    """``start``, ``query``, ``commits``, ``cut``, ``end``; empty with ``error``."""
    error: str = ""
    query: int = -1
    started: int = 0
    ended: int = 0
    failed: bool = False
    reads: list[ReadRecord] = []
    writes: list[WriteRecord] = []
    python_udfs: list[UdfRecord] = []
    lost_columns: UntracedColumnsRecord | None = None
    errors: list[str] = []
    cut: list[str] = []


_DECODER = msgspec.json.Decoder(ObservationRecord)


@dataclass
class ObservationReport:
    """What reading the observer's file met on the way."""

    records: int = 0
    malformed: list[str] = field(default_factory=list)
    torn: bool = False
    errors: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)


def read_observations(
    lines: Iterable[bytes], report: ObservationReport
) -> Iterator[ObservationRecord]:
    """Decode the observer's lines; what is not a record is noted and left out."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = _DECODER.decode(line)
        except msgspec.MsgspecError as error:
            if line.endswith(b"\n"):
                report.malformed.append(f"{number}: {error}")
            else:
                report.torn = True
            continue
        report.records += 1
        report.errors.extend([e for e in (record.error, *record.errors) if e])
        report.cut.extend(record.cut)
        if record.lost_columns and record.lost_columns.cut:
            report.cut.append(record.lost_columns.cut)
        yield record
