"""What the application had written when an action began: internal reads, and their sources.

A read is *internal* only with evidence that nothing but this application's own data was read.
Without observed partitions there are two kinds of it:

- *lifecycle*: an earlier action of the application overwrote or created the whole dataset, or the
  partition locations that were read, and nothing says that it wrote only a part of them
  (:func:`overwrites_whole`);
- *size*: the dataset held, byte for byte, as much as the application had written into it, or as its
  last overwrite and what was appended since. That settles the overwrite for later reads too.

A dataset that held more than that held something older, whatever its lifecycle. Everything without
evidence stays an input, and its columns are composed through all the same, so that nothing true is
lost.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.application.repairs import (
    makes_table_by_select,
    replaces_v2_table,
)
from airflow_provider_sparklineage.lineage.columns import ColumnLineage, Origin, unite_into
from airflow_provider_sparklineage.model.datasets import is_database

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.columns import Column, Transformation
    from airflow_provider_sparklineage.model.datasets import DatasetName


@dataclass(frozen=True)
class Write:
    """One write of a complete action.

    :param lineage: its column lineage, with intermediates resolved
    :param whole: whether it proves that the dataset holds nothing older
    :param appends: whether it left all in place that was there before
    :param size: bytes written; None where nobody said
    :param locations: partition locations written; None where nobody said
    :param replaced: partition locations that hold nothing older
    :param sources: datasets from outside that it was made of
    """

    ended: datetime
    lineage: ColumnLineage
    whole: bool
    appends: bool = False
    size: int | None = None
    locations: frozenset[str] | None = None
    replaced: frozenset[str] = frozenset()
    sources: frozenset[DatasetName] = frozenset()


@dataclass(frozen=True)
class Read:
    """What is known of a read of a dataset.

    :param size: bytes that the whole dataset held, as the reader found it; None where nobody said
    :param locations: partition locations read; None is the whole dataset, or unknown
    """

    started: datetime | None = None
    size: int | None = None
    locations: frozenset[str] | None = None


class _Contents:
    """What the application has put into one dataset by now."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[Column, tuple[Transformation, ...]]] = {}
        self.dataset: dict[Column, tuple[Transformation, ...]] = {}
        self.sources: frozenset[DatasetName] = frozenset()
        self.whole = False
        self.size: int | None = None
        self.empty = True
        self.size_alone: int | None = None
        """Bytes there would be, had the last write that does not append replaced everything."""
        self._replaced: set[str] | None = set()  # None: not by locations alone

    def add(self, write: Write) -> None:
        """Have the contents after one more write, in time of the length of its lineage."""
        if write.whole or self.empty:
            self.fields, self.dataset, self.sources = {}, {}, frozenset()
            self.size = self.size_alone = write.size
            self._replaced = set(write.replaced) if write.replaced else None
        else:
            # Else nobody says how much of what was there is left.
            adds = write.appends or self._is_remote(write)
            self.size = _sum(self.size, write.size) if adds else None
            self.size_alone = _sum(self.size_alone, write.size) if write.appends else write.size
            if not write.replaced:
                self._replaced = None
            elif self._replaced is not None:
                self._replaced |= write.replaced
        self.whole = self.whole or write.whole
        self.empty = False
        for name, edges in write.lineage.fields.items():
            unite_into(self.fields.setdefault(name, {}), edges)
        unite_into(self.dataset, write.lineage.dataset)
        self.sources |= write.sources

    def _is_remote(self, write: Write) -> bool:
        """Whether a write replaced locations that none of the writes before had touched."""
        known = self._replaced
        return bool(write.replaced) and known is not None and known.isdisjoint(write.replaced)

    def lineage(self) -> ColumnLineage:
        return ColumnLineage(self.fields, self.dataset)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


class WriteHistory:
    """The writes of an application so far, asked at the start of each action."""

    def __init__(self) -> None:
        self._of: dict[DatasetName, _Writes] = {}

    def add(self, dataset: DatasetName, write: Write) -> None:
        """Note a write."""
        self._of.setdefault(dataset, _Writes()).add(write)

    def origin(self, dataset: DatasetName, read: Read) -> Origin | None:
        """Tell what the application had put into a dataset by the start of a read.

        Only writes that had ended count: actions that run at the same time are not chained. A whole
        overwrite replaces what was written before it, anything else adds to it. What was written to
        other partition locations than those read is not in it.

        The dataset must not be asked about again with the answer still in use: it is a view.

        :param read: ``started`` None asks for the end of the application
        :return: None if the application had written nothing that was read
        """
        writes = self._of.get(dataset)
        contents = writes.contents(read) if writes else None
        if writes is None or contents is None or contents.empty:
            return None
        internal = contents.whole or writes.replaced_all(read)
        if read.size and contents.size and read.locations is None:
            # As many bytes as were written here prove that nothing older was there, more disprove.
            internal = read.size == contents.size or (internal and read.size < contents.size)
        return Origin(contents.lineage(), internal, sources=contents.sources)


class _Writes:
    """The writes of one dataset, found by the locations that they wrote.

    A loop over partitions writes and reads another one each time: none of its reads may look at all
    the writes before it.
    """

    def __init__(self) -> None:
        self._writes: list[Write] = []
        """As they ended; their numbers are as they came."""
        self._places: list[int] = []
        """Where in that order each number is."""
        self._left: list[Write] = []
        """Those of which something may be left."""
        self._now: _Contents | None = None  # made when it is asked for
        self._written: set[str] = set()
        self._at: dict[str, list[int]] = {}
        """Numbers of the writes to a location."""
        self._below: dict[str, list[int]] = {}
        """Numbers of the writes to somewhere in a folder."""
        self._anywhere: list[int] = []
        """Numbers of the writes of which nobody knows where, or to a glob."""
        self._replaced: dict[str, datetime] = {}
        """Since when a location holds nothing older."""

    def add(self, write: Write) -> None:
        number = len(self._writes)
        at = bisect_right(self._writes, write.ended, key=lambda w: w.ended)
        self._writes.insert(at, write)
        if at < number:
            self._places = [place + (place >= at) for place in self._places]
            self._left = self._writes.copy()
            self._now = None
        else:
            self._left.append(write)
            if not self._written.isdisjoint(write.replaced):
                self._now = None
            elif self._now is not None:
                self._now.add(write)
        self._places.append(at)
        self._written.update(write.locations or ())
        if write.locations is None or any(map(_is_glob, write.locations)):
            self._anywhere.append(number)
        else:
            for location in write.locations:
                self._at.setdefault(location, []).append(number)
                for folder in (location, *_folders_above(location)):
                    self._below.setdefault(folder, []).append(number)
        for location in write.replaced:
            since = self._replaced.get(location, write.ended)
            self._replaced[location] = min(since, write.ended)

    def contents(self, read: Read) -> _Contents:
        in_time = read.started is None or self._writes[-1].ended <= read.started
        if in_time and (read.locations is None or not self._at):
            return self._settled(read)
        found = self._where(read.locations)
        before = [w for w in found if read.started is None or w.ended <= read.started]
        return _contents(_left(before))

    def _where(self, locations: frozenset[str] | None) -> list[Write]:
        """Give the writes that may have been to some locations, as they ended."""
        if locations is None or any(map(_is_glob, locations)):
            return self._writes
        numbers = set(self._anywhere)
        for location in locations:
            numbers.update(self._below.get(location, ()))
            for folder in _folders_above(location):
                numbers.update(self._at.get(folder, ()))
        if len(numbers) == len(self._writes):
            return self._writes
        return [self._writes[place] for place in sorted(map(self._places.__getitem__, numbers))]

    def replaced_all(self, read: Read) -> bool:
        """Whether all locations that were read had been replaced before."""
        if not read.locations:
            return False
        since = [self._replaced.get(location) for location in read.locations]
        return all(s is not None and (read.started is None or s <= read.started) for s in since)

    def _settled(self, read: Read) -> _Contents:
        """Take a doubtful overwrite for a whole one once there is no more than what it wrote."""
        if self._now is None:
            self._left = _left(self._left)
            self._now = _contents(self._left)
        contents = self._now
        is_known = contents.whole and contents.size == contents.size_alone
        if is_known or not read.size or read.locations or read.size != contents.size_alone:
            return contents
        writes = self._writes
        last = next((n for n in reversed(range(len(writes))) if not writes[n].appends), 0)
        writes[last] = replace(writes[last], whole=True)
        self._left = _left(writes[last:])
        self._now = _contents(self._left)
        return self._now


def _left(writes: Sequence[Write]) -> list[Write]:
    """Leave out the writes to locations that later ones replaced."""
    left: list[Write] = []
    replaced: set[str] = set()
    for write in reversed(writes):
        if not write.locations or not write.locations <= replaced:
            left.append(write)
        replaced |= write.replaced
    return left[::-1]


def _contents(writes: Sequence[Write]) -> _Contents:
    """Put writes together, in the order in which they ended."""
    contents = _Contents()
    for write in writes:
        contents.add(write)
    return contents


def _is_glob(location: str) -> bool:
    return "*" in location or "{" in location


def _folders_above(location: str) -> Iterator[str]:
    """Name the folders that a location is in, from below."""
    end = location.rfind("/")
    while end > 0:
        yield location[:end]
        end = location.rfind("/", 0, end)


_PARTITION_CLAUSE = re.compile(r"\bPARTITION\s*\(", re.IGNORECASE)
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_SAVE = "execute_save_into_data_source_command"
# Writes of Spark's file sources, alone and under adaptive execution. Others (Delta, Iceberg, Hive)
# say OVERWRITE of overwrites by predicate or partition too, and CREATE of appends.
_FILE_WRITES = ("execute_insert_into_hadoop_fs_relation_command", "adaptive_spark_plan")


def overwrites_whole(
    action: Action, output: ActionDataset, lineage: ColumnLineage, columns: Collection[str]
) -> bool:
    """Whether a write replaced all that the dataset held, by the lifecycle grade of evidence.

    Of a write to partition locations: all that those held.

    The listener says OVERWRITE of partition overwrites too, so it counts only if nothing points at
    a part:

    - no PARTITION clause, no dynamic overwrite mode when the write began;
    - no sort over the whole write, which is what Spark adds to a write by ``partitionBy``;
    - no column without sources: Spark leaves that sort out where the partition columns are
      literals, and a writer's own ``partitionOverwriteMode`` option is in no event.

    :param lineage: the write's column lineage as the listener said it
    :param columns: names of the columns written
    """
    if replaces_v2_table(action):
        return True
    if output.lifecycle != "OVERWRITE":
        return False
    if is_database(output.name) and _SAVE in action.job_name:
        return True  # Spark drops or truncates the table
    return (
        (any(node in action.job_name for node in _FILE_WRITES) or makes_table_by_select(action))
        and not _PARTITION_CLAUSE.search(action.sql)
        and not any(v.lower() == "dynamic" for v in action.properties.get(_OVERWRITE_MODE, ()))
        and not _leaves_out_the_sort(action)
        and not any(
            t.subtype == "SORT"
            for edges in (lineage.dataset, *lineage.fields.values())
            for ts in edges.values()
            for t in ts
        )
        and bool(columns)
        and all(name in lineage.fields for name in columns)
    )


def _leaves_out_the_sort(action: Action) -> bool:
    """Whether the session is set up to write partitions without sorting (Spark's V1Writes)."""
    writers = action.properties.get("spark.sql.maxConcurrentOutputFileWriters", ())
    planned = action.properties.get("spark.sql.optimizer.plannedWrite.enabled", ())
    return any(v not in ("", "0") for v in writers) or any(v.lower() == "false" for v in planned)
