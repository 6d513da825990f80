"""Observed partitions to the subset of each dataset that the application really read and wrote.

Policy, case by case:

- A written subset is the union of what all observed writes of the application put there.
- A read subset is the union over all observed reads, without what the application itself had put
  there before the read: exactly the partitions from outside.
- A read that nothing restricted, and that met only data from outside, makes the whole.
- One read or write whose partitions are not known makes all of that side unknown: no subset, and a
  degradation. An unpartitioned dataset has no subset.
- What the application had put there before a read (*owned*): partitions that its writes replaced,
  or made, or filled when nothing of others was in them; and once it had replaced or created the
  whole dataset, every partition that it wrote since.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_sparklineage.lineage.access.timeline import SLACK, Timeline
from airflow_provider_sparklineage.lineage.application.binding import (
    CREATE,
    WHOLE,
    Access,
    Observations,
)
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import EVERYTHING, conjunction, disjunction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.untraced_columns import UntracedColumns
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.subset import Condition

# Spark adds it of the columns of every inner join; of a part of the dataset it says nothing.
_OF_A_JOIN = re.compile(r"\(?[\w.`]+ IS NOT NULL\)?(, [\w.`]+ IS NOT NULL)*")

T = TypeVar("T")


@dataclass(frozen=True)
class Subset:
    """Partitions of a dataset that were read or written; none of them is a legal subset.

    :param whole: whether that is all of the dataset: a read that nothing restricted
    :param exact: whether these are the partitions for certain
    """

    dimensions: tuple[Dimension, ...]
    partitions: frozenset[Partition]
    whole: bool = False
    exact: bool = True


class UnknownPartitionsError(Exception):
    """Raised when a subset cannot be told; the message is the reason, a clause."""


class ObservedSubsets:
    """Asked by merging what was observed of a dataset, as a whole or during one action."""

    def __init__(self, observations: Observations) -> None:
        self._observations = observations
        self._reads = {d: _timeline(accesses) for d, accesses in observations.reads.items()}
        self._writes = {d: _timeline(accesses) for d, accesses in observations.writes.items()}
        self._untraced = {
            d: Timeline(untraced) for d, untraced in observations.lost_columns.items()
        }
        self._owned = {d: _Owned(accesses) for d, accesses in observations.writes.items()}

    def is_internal(
        self, dataset: DatasetName, started: datetime, ended: datetime | None
    ) -> bool | None:
        """Whether an action read nothing but what the application had put there before.

        :return: None where that was not observed
        """
        if not self._observations.writes.get(dataset):
            return None
        reads = _during(self._reads, dataset, started, ended)
        if not reads or any(read.partitions is None for read in reads):
            return None
        outside = [self._outside(read) for read in reads]
        if any(outside) and self._owned[dataset].is_unknown(started):
            return None
        return not any(outside)

    def is_whole_overwrite(
        self, dataset: DatasetName, started: datetime, ended: datetime | None
    ) -> bool | None:
        """Whether an action replaced or created the whole dataset; None: not observed."""
        writes = _during(self._writes, dataset, started, ended)
        return all(w.mode in (WHOLE, CREATE) for w in writes) if writes else None

    def tables(self, dataset: DatasetName) -> frozenset[str]:
        """Give the identifiers by which a dataset was read and written, with their catalogs."""
        return self._observations.tables.get(dataset, frozenset())

    def was_read(self, dataset: DatasetName, started: datetime, ended: datetime | None) -> bool:
        """Whether reads of a dataset were observed during an action."""
        return bool(_during(self._reads, dataset, started, ended))

    def was_written(self, dataset: DatasetName, started: datetime, ended: datetime | None) -> bool:
        """Whether writes of a dataset were observed during an action."""
        return bool(_during(self._writes, dataset, started, ended))

    def was_ever_written(self, dataset: DatasetName) -> bool:
        """Whether any write of a dataset was observed."""
        return bool(self._observations.writes.get(dataset))

    def lost_columns(
        self, dataset: DatasetName, started: datetime, ended: datetime | None
    ) -> tuple[UntracedColumns, ...]:
        """Tell of the writes during an action which columns the listener does not know."""
        return tuple(_during(self._untraced, dataset, started, ended))

    def filters(self, dataset: DatasetName, columns: Collection[str]) -> Condition | None:
        """Give the condition that all rows fulfil that were read; None if there is none.

        Reads are united: one without filters makes it none.

        :param columns: of the dataset, to tell ``struct.field`` from ``alias.column``
        """
        reads = self._observations.reads.get(dataset, ())
        texts = dict.fromkeys(
            tuple(f for f in read.filters if not _OF_A_JOIN.fullmatch(f)) for read in reads
        )
        if not texts or () in texts:
            return None
        united = disjunction(
            conjunction(predicates.condition(text, columns) for text in filters)
            for filters in texts
        )
        return None if united == EVERYTHING else united

    def of_input(self, dataset: DatasetName) -> Subset | None:
        """Give the partitions that were read from outside; None: unpartitioned, or not observed.

        :raise UnknownPartitionsError: if the partitions of some read are not known
        """
        reads = self._observations.reads.get(dataset, ())
        _require_known(reads)
        partitions: set[Partition] = set()
        whole = False
        for read in sorted(reads, key=lambda r: r.started):
            outside = self._outside(read)
            whole = whole or (read.whole and bool(outside) and outside == read.partitions)
            partitions |= outside
        return _subset(reads, partitions, whole=whole)

    def of_output(self, dataset: DatasetName) -> Subset | None:
        """Give the partitions that were written; None: unpartitioned, or not observed.

        :raise UnknownPartitionsError: if the partitions of some write are not known
        """
        writes = self._observations.writes.get(dataset, ())
        _require_known(writes)
        return _subset(writes, {p for write in writes for p in write.partitions or ()})

    def _outside(self, read: Access) -> frozenset[Partition]:
        owned = self._owned.get(read.dataset)
        return (read.partitions or frozenset()) - (owned.before(read.started) if owned else set())


class _Owned:
    """The partitions that the application had put into a dataset, as time goes on.

    Asked for one moment after the other, as merging does, each write is looked at once.
    """

    def __init__(self, writes: Iterable[Access]) -> None:
        self._writes = sorted(writes, key=lambda w: w.ended)
        self._ended = [w.ended for w in self._writes]
        unknown = (n for n, w in enumerate(self._writes) if w.partitions is None)
        self._first_unknown = next(unknown, len(self._writes))
        self._restart()

    def _restart(self) -> None:
        self._seen = 0
        self._partitions: set[Partition] = set()
        self._all_is_ours = False

    def is_unknown(self, moment: datetime) -> bool:
        """Whether the partitions of some write before a moment are not known."""
        return self._first_unknown < bisect_right(self._ended, moment + SLACK)

    def before(self, moment: datetime) -> AbstractSet[Partition]:
        """Give what was put there before a moment; what is given holds until the next call."""
        count = bisect_right(self._ended, moment + SLACK)
        if count < self._seen:
            self._restart()
        for write in self._writes[self._seen : count]:
            if write.mode in (WHOLE, CREATE):
                self._all_is_ours = True
                self._partitions = set(write.partitions or ())
            else:
                added = write.partitions if self._all_is_ours else write.owned
                self._partitions |= added or frozenset()
        self._seen = count
        return self._partitions


def _timeline(accesses: Iterable[Access]) -> Timeline[Access]:
    return Timeline((t.started, t.ended, t) for t in accesses)


def _during(
    of: Mapping[DatasetName, Timeline[T]],
    dataset: DatasetName,
    started: datetime,
    ended: datetime | None,
) -> list[T]:
    timeline = of.get(dataset)
    return timeline.during(started, ended) if timeline else []


def _require_known(accesses: Iterable[Access]) -> None:
    for access in accesses:
        if access.partitions is None:
            raise UnknownPartitionsError(access.why_unknown or "it could not be told which")


def _subset(
    accesses: Collection[Access], partitions: set[Partition], *, whole: bool = False
) -> Subset | None:
    dimensions: dict[Dimension, None] = {}
    for access in accesses:
        dimensions |= dict.fromkeys(access.dimensions)
    if not dimensions or Partition() in partitions:
        return None
    exact = all(access.exact for access in accesses)
    return Subset(tuple(dimensions), frozenset(partitions), whole, exact)
