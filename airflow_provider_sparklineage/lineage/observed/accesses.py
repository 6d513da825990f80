"""The accesses, plans and Python functions that the observer saw, and the partitions of accesses.

:class:`Observations` has those of an application, collected dataset by dataset;
:class:`ObservedAccesses` has the accesses to one dataset. The policy on their partitions, case by
case:

- A written subset is the union of the partitions of all observed writes of the application, without
  the partitions that a later write emptied, or those before a write that replaced the full dataset.
  These are *removed*, unless they were written again.
- A read subset is the union over all observed reads, without the partitions that the application
  itself had written before the read (*owned*): exactly the partitions from outside.
- A read without any restriction that found only data from outside makes the subset full.
- If a read may have ended before it opened all of its partitions, its partitions are in the subset
  as planned, unless another read opened them; such a read makes no subset full.
- If the partitions of one read are not known, there is no read subset, and a degradation reports
  it; the same holds for writes. An unpartitioned dataset has no subset.
- The read (or written) partitions are not known either if some of the data was in partitions and
  some in none, unless all of the dataset was read: an Iceberg table that was partitioned later has
  files of both kinds, and a job may write a folder anew with other partition columns, or with none.
- Owned partitions are those that the application's writes replaced, created, or filled when the
  partitions had no data of others, or that they emptied. Once the application has replaced or
  created the full dataset, every partition that it writes is owned.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right, insort
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import field

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    NOT_COUNTED,
    SLACK,
    Figures,
    Timeline,
)
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.allowance import SpentError, Work
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import EVERYTHING, conjunction, disjunction
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from airflow_provider_sparklineage.lineage.application.accesses import Access, Span
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.subset import Condition


# --- plans of writes ------------------------------------------------------------------------------


class WritePlan(NamedTuple):
    """The plan of one write, and the time of its query.

    It is compressed, as a job may write thousands of times, and is decoded only when the columns of
    the write are composed.

    :param columns: the columns of the target, in the order of the query's output
    :param compressed: the plan, as Spark's ``TreeNode.toJSON`` writes it, compressed
    :param relations: for each leaf of the plan, its dataset and the ids of its columns; the dataset
        is None if the leaf is not a dataset of the application
    :param run_id: run id of the action, if the listener did not report the write and the action was
        made from the observer's record; else None, and the plan belongs to an action by its time
    :param describes: whether only the texts of the plan count, as the listener reports the columns
    """

    target: DatasetName
    columns: tuple[str, ...]
    compressed: bytes
    relations: tuple[tuple[DatasetName | None, tuple[int, ...]], ...]
    span: Span
    run_id: str | None = None
    describes: bool = False

    @property
    def plan(self) -> bytes:
        """The plan as JSON."""
        return zlib.decompress(self.compressed)

    def is_within(self, started: datetime, ended: datetime | None) -> bool:
        """Whether the middle of the query's time is between two times; None is an open end."""
        begun, done = self.span
        middle = begun + (done - begun) / 2
        return started <= middle and (ended is None or middle <= ended)

    def gap(self, started: datetime, ended: datetime | None) -> timedelta:
        """Give the time between the query and a span, which has no end if ``ended`` is None.

        The result is negative if they overlap.
        """
        begun, done = self.span
        return max(begun - ended if ended is not None else timedelta.min, started - done)


# --- the accesses of an application ---------------------------------------------------------------


class PythonFunction(NamedTuple):
    """A Python function that a query called.

    :param text: the call: the function's name, and the names of its arguments in Spark's plan
    """

    started: datetime
    ended: datetime
    text: str


class Observations(Frozen, frozen=True):
    """The observed accesses, Python functions and plans of an application."""

    reads: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    writes: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    """Paths or tables that match no dataset of the application."""
    functions: tuple[PythonFunction, ...] = ()
    tables: Mapping[DatasetName, frozenset[str]] = field(default_factory=dict)
    """Dataset -> the table identifiers, with catalogs, by which it was read or written."""
    plans: Mapping[DatasetName, tuple[WritePlan, ...]] = field(default_factory=dict)
    """Written dataset -> the plans of its writes."""
    gone: frozenset[DatasetName] = frozenset()
    """Datasets that were written, and did not exist any more when the application ended."""
    maintenance: tuple[tuple[DatasetName, str], ...] = ()
    """Datasets of which the files were maintained, each with the command, such as ``OPTIMIZE``."""


# --- the accesses to one dataset --------------------------------------------------------------


# Spark adds this filter for the columns of every inner join; it chooses no part of the dataset.
_OF_A_JOIN = re.compile(r"\(?[\w.`]+ IS NOT NULL\)?(, [\w.`]+ IS NOT NULL)*")


class Subset(Frozen, frozen=True):
    """Partitions of a dataset that were read or written; the set may be empty.

    :param full: whether all of the dataset was read, by a read without any restriction
    :param exact: whether the partitions are certain, apart from planned ones
    :param planned: partitions that were planned to be read, by queries that may have ended before
        they opened them
    :param removed: partitions that the application emptied, and did not write again
    :param is_replaced: whether a write created or replaced the full dataset, so that none of its
        other partitions is left
    """

    dimensions: tuple[Dimension, ...]
    partitions: frozenset[Partition]
    full: bool = False
    exact: bool = True
    planned: frozenset[Partition] = frozenset()
    removed: frozenset[Partition] = frozenset()
    is_replaced: bool = False


class UnknownPartitionsError(Exception):
    """Raised when the partitions of an access are not known; the message is the reason."""


class ObservedAccesses:
    """All observed accesses to one dataset; :meth:`during` gives those during an action.

    The results of the methods do not depend on earlier calls.
    """

    def __init__(self, reads: Sequence[Access] = (), writes: Sequence[Access] = ()) -> None:
        self._of = {Side.READ: reads, Side.WRITE: writes}
        self._timelines = {
            side: Timeline((a.started, a.ended or a.started, a) for a in accesses)
            for side, accesses in self._of.items()
        }
        self._owned = _OwnedPartitions(writes)
        self._replaced: dict[Partition, list[datetime]] | None = None  # made when it is first used

    def during(self, side: Side, started: datetime, ended: datetime | None) -> tuple[Access, ...]:
        """Give the reads, or the writes, during an action.

        :param ended: None if the action never ended
        """
        return tuple(self._timelines[side].during(started, ended))

    def has(self, side: Side) -> bool:
        """Whether any read (or write) was observed."""
        return bool(self._of[side])

    def is_empty(self, side: Side) -> bool:
        """Whether no data was read (or written, or removed) by any of the accesses."""
        return all(
            access.scope.partitions == frozenset() and not access.removed
            for access in self._of[side]
        )

    def is_emptied(self) -> bool:
        """Whether all data of an unpartitioned dataset was removed, and none was written later."""
        effective = [one for one in self._of[Side.WRITE] if one.scope.partitions or one.removed]
        last = max(effective, key=lambda one: one.started, default=None)
        return last is not None and not last.scope.partitions and Partition() in last.removed

    def is_of_chosen_files(self, side: Side) -> bool:
        """Whether each read (or write) was of chosen files only (:attr:`.Access.chosen`)."""
        return all(access.chosen for access in self._of[side])

    def is_internal(self, read: Access) -> bool | None:
        """Whether the queries of an action read only *owned* partitions.

        The module's docstring defines which partitions are owned.

        :param read: the action's read of this dataset; its ``queries`` are the observed ones
        :return: None if no write was observed; if no query of the action was observed; if the
            partitions of one of the queries are not known; or if other partitions were read, and
            they could be owned, because the partitions of an earlier write are not known
        """
        queries = read.queries
        if not self._of[Side.WRITE] or not queries:
            return None
        if any(query.scope.partitions is None for query in queries):
            return None
        outside = [self._outside(query) for query in queries]
        if any(outside) and self._owned.is_unknown(read.started):
            return None
        return not any(outside)

    def are_replaced(
        self, partitions: Collection[Partition], after: datetime, until: datetime
    ) -> bool:
        """Whether each of the partitions was replaced or emptied by a write between two times.

        A write counts if the middle of its time is between them, and its partitions are certain.

        :param after: the end of the action that wrote the partitions
        :return: False if there are no partitions
        """
        if self._replaced is None:
            self._replaced = defaultdict(list)
            for write in self._of[Side.WRITE]:
                middle = write.started + ((write.ended or write.started) - write.started) / 2
                for partition in write.replaced | write.removed if write.exact else ():
                    insort(self._replaced[partition], middle)
        times = self._replaced
        return bool(partitions) and all(
            bisect_right(times.get(one, ()), after) < bisect_right(times.get(one, ()), until)
            for one in partitions
        )

    def filters(self, columns: Collection[str]) -> Condition | None:
        """Give a condition that holds for all read rows; None if there is no such condition.

        The filters of several reads are joined by OR, so the result is None if a read has no
        filter.

        :param columns: the dataset's columns, to distinguish ``struct.field`` from ``alias.column``
        """
        texts = dict.fromkeys(
            tuple(f for f in read.filters if not _OF_A_JOIN.fullmatch(f))
            for read in self._of[Side.READ]
        )
        if not texts or () in texts:
            return None
        united = disjunction(
            conjunction(predicates.condition(text, columns) for text in filters)
            for filters in texts
        )
        return None if united == EVERYTHING else united

    def subset(self, side: Side, work: Work = lambda _: None) -> Subset | None:
        """Give the partitions that were read from outside, or written.

        A partition is read from outside if it was not *owned* when the read started. The module's
        docstring defines which partitions are owned.

        :return: None if the dataset is not partitioned, if all of it was read and some of its data
            is in no partition, or if no access was observed
        :param work: a function that raises :exc:`SpentError` if there is no time left; then the
            partitions count as unknown
        :raise UnknownPartitionsError: if the partitions of some access are not known
        """
        accesses = self._of[side]
        for access in accesses:
            if access.scope.partitions is None:
                raise UnknownPartitionsError(access.why_unknown or "nobody knows which")
        partitions: set[Partition] = set()
        removed: set[Partition] = set()
        planned: set[Partition] = set()
        full = False
        for access in sorted(accesses, key=lambda a: a.started):
            try:
                work(len(access.scope.partitions or ()))
            except SpentError as reason:
                raise UnknownPartitionsError(str(reason)) from reason
            if side is Side.WRITE:
                written = access.scope.partitions or frozenset()
                gone = access.removed | set(_inside(partitions, access.removed))
                gone = gone | partitions if access.owned.full else gone
                partitions = (partitions - gone) | written
                removed = (removed | gone) - written
                removed -= set(_inside(written, removed).values())
                continue
            outside = self._outside(access)
            if access.planned:
                planned |= outside
                continue
            is_foreign = bool(outside) and outside == access.scope.partitions
            full = full or (access.scope.full and is_foreign)
            partitions |= outside
        dimensions = dict.fromkeys(d for access in accesses for d in access.dimensions)
        every = frozenset(partitions | planned)
        has_data_in_none = Partition() in every
        if has_data_in_none and len(every) > 1 and not full:
            msg = "some of the data was in partitions, and some in none"
            raise UnknownPartitionsError(msg)
        if has_data_in_none or not dimensions:
            return None
        removed.discard(Partition())  # files from before the dataset was partitioned
        return Subset(
            tuple(dimensions),
            every,
            full,
            all(access.exact for access in accesses),
            every - partitions,
            frozenset(removed),
            side is Side.WRITE and any(access.owned.full for access in accesses),
        )

    def figures(self, work: Work = lambda _: None) -> dict[Partition, Figures]:
        """Give the rows and bytes that the writes added to each partition.

        Writes before one that replaced or emptied a partition do not count. The figures are those
        of the files that were added: a command such as UPDATE, which writes the other rows of a
        file anew, adds these, too.

        :return: the figures by partition, the empty one for a dataset without partitions; {} if the
            partitions of some write are not known
        :param work: a function that raises :exc:`SpentError` if there is no time left; then there
            are no figures
        """
        found: dict[Partition, Figures] = {}
        for write in sorted(self._of[Side.WRITE], key=lambda access: access.started):
            if write.scope.partitions is None:
                return {}
            try:
                work(len(write.scope.partitions))
            except SpentError:
                return {}
            if write.owned.full:
                found.clear()
            for one in {*write.removed, *_inside(found.keys(), write.removed)}:
                found.pop(one, None)
            for one in write.scope.partitions:
                added = NOT_COUNTED if write.figures is None else write.figures.get(one, Figures())
                is_new = one in write.replaced or one not in found
                found[one] = added if is_new else found[one].plus(added)
        return found

    def _outside(self, read: Access) -> frozenset[Partition]:
        return (read.scope.partitions or frozenset()) - self._owned.before(read.started)


def _inside(
    partitions: AbstractSet[Partition], removed: AbstractSet[Partition]
) -> dict[Partition, Partition]:
    """Give the partitions that lie in removed ones, each with that removed one.

    ``DROP PARTITION (dt = '1')`` of a table that has hours in its days removes all hours of a day.
    """
    depth = max((len(one.values) for one in partitions), default=0)
    wider = {one for one in removed if 0 < len(one.values) < depth}
    found = {}
    for labels in {tuple(label for label, _ in one.values) for one in wider}:
        for one in partitions:
            above = Partition(tuple(pair for pair in one.values if pair[0] in labels))
            if above in wider:
                found[one] = above
    return found


class _OwnedPartitions:
    """The *owned* partitions of a dataset at a given time; the module's docstring defines them.

    If calls come with ascending times, as in merging, each write is visited once.
    """

    def __init__(self, writes: Iterable[Access]) -> None:
        ended = [(write.ended, write) for write in writes if write.ended is not None]
        ended.sort(key=lambda pair: pair[0])
        self._ended = [at for at, _ in ended]
        self._writes = [write for _, write in ended]
        unknown = (n for n, w in enumerate(self._writes) if w.scope.partitions is None)
        self._first_unknown = next(unknown, len(self._writes))
        self._restart()

    def _restart(self) -> None:
        self._seen = 0
        self._partitions: set[Partition] = set()
        self._is_full = False

    def is_unknown(self, at: datetime) -> bool:
        """Whether the partitions of some write that had ended are not known."""
        return self._first_unknown < bisect_right(self._ended, at + SLACK)

    def before(self, at: datetime) -> AbstractSet[Partition]:
        """Give the owned partitions at a time; the set is valid until the next call."""
        count = bisect_right(self._ended, at + SLACK)
        if count < self._seen:
            self._restart()
        for write in self._writes[self._seen : count]:
            if write.owned.full:
                self._is_full = True
                self._partitions = set(write.scope.partitions or ())
            else:
                added = write.scope.partitions if self._is_full else write.owned.partitions
                self._partitions |= (added or frozenset()) | write.removed
        self._seen = count
        return self._partitions


NOTHING_OBSERVED = ObservedAccesses()
