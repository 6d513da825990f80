"""Datasets as actions report them, and accesses to them: how much was read or written, and when.

An :class:`ActionDataset` decodes only the facets that merging uses, each once. An :class:`Access`
never changes. A :class:`Timeline` finds the accesses, queries and plans that overlap an action in
time; a search takes longer only if it finds more of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.lines import decode_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.expectations import Side
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition


# --- accesses -------------------------------------------------------------------------------------


class Grade(IntEnum):
    """The kind of evidence for a fact, such as which partitions were read.

    If two kinds of evidence contradict each other, the one with the greater number decides.
    """

    LIFECYCLE = 1
    """The listener's reports of actions: lifecycle, SQL, locations."""
    SIZE = 2
    """As many bytes were read as had been written."""
    OBSERVED = 3
    """The observer saw the partitions in the driver."""


class Scope(NamedTuple):
    """A part of a dataset, as far as it is known; ``Scope()`` stands for an unknown part.

    :param full: whether the part is all of the dataset
    :param partitions: the partitions of the part; the empty partition stands for all of a dataset
        that is not partitioned; None where the partitions are not known
    :param locations: partition folders that the listener trimmed off the dataset's name; None where
        the listener named no such folder
    """

    full: bool = False
    partitions: frozenset[Partition] | None = None
    locations: frozenset[str] | None = None


class Figures(NamedTuple):
    """The rows and the bytes of the files that writes added to a partition; None if not known."""

    rows: int | None = 0
    size: int | None = 0

    def plus(self, other: Figures) -> Figures:
        """Give the sums of both; a sum is not known if a part of it is not."""
        return Figures(_sum(self.rows, other.rows), _sum(self.size, other.size))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


NOT_COUNTED = Figures(None, None)
UNKNOWN = Scope()
FULL = Scope(full=True)


class Access(NamedTuple):
    """One read or write of a dataset.

    :param side: whether it is a read or a write
    :param ended: None if the access never ended
    :param scope: the part that was read or written; for a read, ``full`` means a read without any
        restriction
    :param owned: of an observed write, the part that holds only data of this write; of the write
        of an action, the part that holds no data older than the application
    :param grade: the kind of evidence for ``scope`` and ``owned``
    :param appends: of a write, whether all older data stayed in place
    :param size: bytes that were written, or that the full dataset held when it was read; None where
        the size is not reported
    :param dimensions: of an observed access, the dimensions of its partitions
    :param filters: of a read, SQL predicates that all rows of the read fulfil
    :param why_unknown: the observer's reason for not knowing the partitions
    :param exact: whether the partitions are certain; False where they are known only from new
        files in folders
    :param planned: of a read, whether the query may have ended before it opened all partitions
    :param chosen: of a read, whether only chosen files were read: files that are new to a stream,
        or that an option names
    :param queries: of the access of an action, the accesses that were observed during the action
    :param removed: of an observed write, the partitions that it emptied: they have no data any
        more; the empty partition stands for all data of a dataset that is not partitioned
    :param replaced: of an observed write, the partitions that it overwrote: of what was written
        there before, also by the application, nothing is left
    :param figures: of an observed write, what it added to each partition; to other partitions of
        its scope it added nothing; None if that is not known
    """

    dataset: DatasetName
    side: Side
    started: datetime
    ended: datetime | None
    scope: Scope = UNKNOWN
    owned: Scope = UNKNOWN
    grade: Grade = Grade.LIFECYCLE
    appends: bool = False
    size: int | None = None
    dimensions: tuple[Dimension, ...] = ()
    filters: tuple[str, ...] = ()
    why_unknown: str = ""
    exact: bool = True
    planned: bool = False
    chosen: bool = False
    queries: tuple[Access, ...] = ()
    removed: frozenset[Partition] = frozenset()
    replaced: frozenset[Partition] = frozenset()
    figures: Mapping[Partition, Figures] | None = None


K = TypeVar("K")
T = TypeVar("T")

# Spark measures durations in ns and timestamps in ms, and at slightly different places.
SLACK = timedelta(milliseconds=20)


Span = tuple[datetime, datetime]


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans of time overlap; two spans that only meet at an end do not.

    A span without length also overlaps another span if it lies at the start or end of that span.
    """
    latest, earliest = max(one[0], other[0]), min(one[1], other[1])
    has_no_length = one[0] == one[1] or other[0] == other[1]
    return latest < earliest or (has_no_length and latest == earliest)


class Timeline(Generic[T]):
    """Things that each have a start and an end, in the order of their starts.

    :param things: (started, ended, thing) for each thing
    """

    def __init__(self, things: Iterable[tuple[datetime, datetime, T]]) -> None:
        self._things = sorted(things, key=lambda thing: thing[0])
        self._started = [started for started, _, _ in self._things]
        self._all_ended = list(accumulate((ended for _, ended, _ in self._things), max))
        """For each thing, the time at which this thing and all things before it had ended."""

    def during(self, started: datetime, ended: datetime | None) -> list[T]:
        """Choose the things that overlap a span of time, give or take :data:`SLACK` (20 ms).

        :param started: the start of the span, such as that of an action
        :param ended: the end of the span; None if it has no end, as of an action that never ended
        """
        if not self._things:  # without an observer there are none
            return []
        at = len(self._things) if ended is None else bisect_right(self._started, ended + SLACK)
        found = []
        while at and self._all_ended[at - 1] + SLACK >= started:
            at -= 1
            _, until, thing = self._things[at]
            if until + SLACK >= started:
                found.append(thing)
        return found[::-1]


def timelines(things: Iterable[tuple[K, Span, T]]) -> dict[K, Timeline[T]]:
    """Give for each key the timeline of its things.

    :param things: (key, span, thing) for each thing
    """
    found: dict[K, list[tuple[datetime, datetime, T]]] = defaultdict(list)
    for key, span, thing in things:
        found[key].append((*span, thing))
    return {key: Timeline(each) for key, each in found.items()}


# --- datasets of actions --------------------------------------------------------------------------


class DecodedFacets:
    """A dataset of an action or of a task, whose facets are decoded when they are first used."""

    facets: Mapping[str, msgspec.Raw]
    """Dataset facets, undecoded: most of them are only passed on."""

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of the top-level columns; empty where there is no schema."""
        schema = decode_facet(self.facets.get("schema"), _Schema)
        return tuple(f.name for f in schema.fields or ()) if schema else ()

    @cached_property
    def symlinks(self) -> frozenset[DatasetName]:
        """The other names of the dataset."""
        links = decode_facet(self.facets.get("symlinks"), Symlinks)
        identifiers = (links.identifiers if links else None) or ()
        return frozenset(
            DatasetName(i.get("namespace") or "", i.get("name") or "") for i in identifiers
        )


class ActionDataset(DecodedFacets, Frozen, frozen=True, dict=True):
    """An input or an output of an action.

    :param side_facets: ``inputFacets`` of an input, or ``outputFacets`` of an output, undecoded
    :param locations: partition locations that the listener trimmed off the name; None stands for
        the full dataset
    :param left_out: names of facets that were reported but did not fit into memory
    :param is_model: whether the dataset is a part of a model, which Spark only saves as a whole
    """

    name: DatasetName
    facets: Mapping[str, msgspec.Raw]
    side_facets: Mapping[str, msgspec.Raw]
    locations: frozenset[str] | None = None
    left_out: frozenset[str] = frozenset()
    is_model: bool = False

    @cached_property
    def lifecycle(self) -> str:
        """The lifecycle change of an output, such as OVERWRITE or CREATE; "" without a change."""
        facet = decode_facet(self.facets.get("lifecycleStateChange"), _Lifecycle)
        return (facet.change if facet else None) or ""

    @cached_property
    def size_written(self) -> int | None:
        """Size in bytes of the data written to an output; None where the size is not reported."""
        statistics = decode_facet(self.side_facets.get("outputStatistics"), _Statistics)
        return statistics.size if statistics else None

    @cached_property
    def size_found(self) -> int | None:
        """Size of the whole input in bytes when it was read; None where no size is reported.

        None also where the statistics may count only a part of the input. Statistics without a
        number of files come from a catalog, and may count only the partitions that were read.
        Statistics of Iceberg count only the files that pass the scan's filters.
        """
        if "storage" in self.facets:  # tables of DataSource V2 catalogs have this facet
            return None
        statistics = decode_facet(self.side_facets.get("inputStatistics"), _Statistics)
        return statistics.size if statistics and statistics.file_count is not None else None


def united_locations(
    one: frozenset[str] | None, other: frozenset[str] | None
) -> frozenset[str] | None:
    """Unite two sets of locations of a dataset; None (the full dataset) if one of them is None."""
    return None if one is None or other is None else one | other


class Symlinks(msgspec.Struct):
    """The standard facet of a dataset's other names."""

    identifiers: list[dict[str, str | None]] | None = None


class _SchemaField(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


class _Statistics(msgspec.Struct):
    size: int | None = None
    file_count: int | None = msgspec.field(name="fileCount", default=None)


class _Lifecycle(msgspec.Struct):
    change: str | None = msgspec.field(name="lifecycleStateChange", default=None)
