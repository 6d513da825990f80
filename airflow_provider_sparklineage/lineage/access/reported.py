"""The writes that the listener reported of one dataset, and what a read found of them.

Without observed partitions there are two kinds of evidence that nothing but the application's own
data was read:

- *lifecycle*: an earlier action of the application overwrote or created the full dataset, or the
  partition locations that were read, and nothing points at a write of only a part of them
  (:func:`~airflow_provider_sparklineage.lineage.access.lifecycle.overwrites_everything`);
- *size*: the dataset held, byte for byte, as much as the application had written into it, or as its
  last overwrite and what was appended since. That settles the overwrite for later reads too.

A dataset that held more than that held something older, whatever its lifecycle. Everything without
evidence stays an input, and its columns are composed through all the same, so that nothing true is
lost.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.access.contents import Contents, Write
from airflow_provider_sparklineage.lineage.application.accesses import Grade
from airflow_provider_sparklineage.lineage.columns import ColumnLineage, Provenance
from airflow_provider_sparklineage.model.globs import is_glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Access
    from airflow_provider_sparklineage.model.datasets import DatasetName


class ReportedWrites:
    """The writes of one dataset, found by the locations that they wrote.

    A loop over partitions writes and reads another one each time: none of its reads may look at all
    the writes before it.
    """

    def __init__(self) -> None:
        self._writes: list[Write] = []
        """As they ended; their numbers are as they came."""
        self._order: list[int] = []
        """Where in that order each number is."""
        self._left: list[Write] = []
        """Those of which something may be left."""
        self._now: Contents | None = None  # made when it is asked for
        self._written: set[str] = set()
        self._at: dict[str, list[int]] = {}
        """Numbers of the writes to a location."""
        self._below: dict[str, list[int]] = {}
        """Numbers of the writes to somewhere in a folder."""
        self._anywhere: list[int] = []
        """Numbers of the writes to a glob, or to a location that is not known."""
        self._replaced: dict[str, datetime] = {}
        """Since when a location holds nothing older."""

    def add(
        self,
        access: Access,
        columns: ColumnLineage | None = ColumnLineage(),  # noqa: B008  (frozen)
        sources: frozenset[DatasetName] = frozenset(),
    ) -> None:
        """Add a write; one that never ended was not read back.

        :param columns: its column lineage, with intermediates resolved; None where it was cut
        :param sources: datasets from outside that it was made of
        """
        if access.ended is None:
            return
        write = Write(access.ended, access, columns, sources)
        number = len(self._writes)
        at = bisect_right(self._writes, write.ended, key=lambda w: w.ended)
        self._writes.insert(at, write)
        if at < number:
            self._order = [place + (place >= at) for place in self._order]
            self._left = self._writes.copy()
            self._now = None
        else:
            self._left.append(write)
            if not self._written.isdisjoint(write.replaced):
                self._now = None
            elif self._now is not None:
                self._now.add(write)
        self._order.append(at)
        self._written |= write.locations
        if access.scope.locations is None or any(map(is_glob, write.locations)):
            self._anywhere.append(number)
        else:
            for location in write.locations:
                self._at.setdefault(location, []).append(number)
                for folder in (location, *_folders_above(location)):
                    self._below.setdefault(folder, []).append(number)
        for location in write.replaced:
            since = self._replaced.get(location, write.ended)
            self._replaced[location] = min(since, write.ended)

    def provenance(self, read: Access) -> Provenance | None:
        """Give what the application had put into the dataset by the start of a read.

        Only writes that had ended count: actions that run at the same time are not chained. A full
        overwrite replaces what was written before it, anything else adds to it. What was written to
        other partition locations than those read is not in it.

        The dataset must not be asked about again with the answer still in use: it is a view.

        :return: None if the application had written nothing that was read
        """
        if not self._writes:
            return None
        locations = read.scope.locations
        contents = self._contents(read.started, locations, read.size)
        if contents.empty:
            return None
        internal = contents.is_full or self._replaced_all(locations, read.started)
        grade = Grade.LIFECYCLE
        if read.size and contents.size and locations is None:
            # As many bytes as were written here prove that nothing older was there, more disprove.
            internal = read.size == contents.size or (internal and read.size < contents.size)
            grade = Grade.SIZE
        return Provenance(contents.columns, internal, grade, contents.sources)

    def at_the_end(self) -> Contents:
        """Give what the application has put into the dataset."""
        return self._settled(None, None) if self._writes else Contents()

    def _contents(
        self, started: datetime, locations: frozenset[str] | None, size: int | None
    ) -> Contents:
        if self._writes[-1].ended <= started and (locations is None or not self._at):
            return self._settled(locations, size)
        found = self._among(locations)
        return Contents(_left([w for w in found if w.ended <= started]))

    def _among(self, locations: frozenset[str] | None) -> list[Write]:
        """Give the writes that may have been to some locations, as they ended."""
        if locations is None or any(map(is_glob, locations)):
            return self._writes
        numbers = set(self._anywhere)
        for location in locations:
            numbers.update(self._below.get(location, ()))
            for folder in _folders_above(location):
                numbers.update(self._at.get(folder, ()))
        if len(numbers) == len(self._writes):
            return self._writes
        return [self._writes[place] for place in sorted(map(self._order.__getitem__, numbers))]

    def _replaced_all(self, locations: frozenset[str] | None, started: datetime) -> bool:
        """Whether all locations that were read had been replaced before."""
        if not locations:
            return False
        since = [self._replaced.get(location) for location in locations]
        return all(s is not None and s <= started for s in since)

    def _settled(self, locations: frozenset[str] | None, size: int | None) -> Contents:
        """Take a doubtful overwrite for a full one once there is no more than what it wrote."""
        if self._now is None:
            self._left = _left(self._left)
            self._now = Contents(self._left)
        contents = self._now
        is_known = contents.is_full and contents.size == contents.size_alone
        if is_known or not size or locations or size != contents.size_alone:
            return contents
        writes = self._writes
        last = next((n for n in reversed(range(len(writes))) if not writes[n].access.appends), 0)
        access = writes[last].access
        full = access._replace(owned=access.owned._replace(full=True), grade=Grade.SIZE)
        writes[last] = writes[last]._replace(access=full)
        self._left = _left(writes[last:])
        self._now = Contents(self._left)
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


def _folders_above(location: str) -> Iterator[str]:
    """Name the folders that a location is in, from below."""
    end = location.rfind("/")
    while end > 0:
        yield location[:end]
        end = location.rfind("/", 0, end)
