"""The observer's records by the names of datasets: what each query read, what was committed when.

A folder that no action of the listener has is a dataset of its own here, under the name that the
listener would give it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.application.observed_folders import at_roots
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.observations import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.dataset_index import DatasetIndex
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        ReadRecord,
        SchemaRecord,
        WriteRecord,
    )

    Locations = frozenset[str] | None
    """The folders of a dataset's partitions; None is the full dataset."""


class Query(Frozen, frozen=True):
    """A query, and the datasets in it.

    :param reads: with the partitions' folders that are its roots
    :param writes: with the mode of the write
    :param target: what its command writes, in queries below it if it is not among ``writes``
    :param relations: what the leaves of its command's plan read
    """

    record: ObservationRecord
    started: datetime
    ended: datetime
    reads: Mapping[DatasetName, Locations]
    writes: Mapping[DatasetName, str]
    target: DatasetName | None = None
    relations: tuple[DatasetName, ...] = ()

    @property
    def span(self) -> tuple[datetime, datetime]:
        """When it ran."""
        return self.started, self.ended

    @property
    def state(self) -> ActionState:
        """How it ended."""
        return ActionState.FAILED if self.record.failed else ActionState.COMPLETE


class Commit(NamedTuple):
    """A commit in the log of a table, by a query that the log does not name."""

    at: datetime
    mode: str
    has_data: bool
    """Whether rows came or went; creating an empty table is a commit too."""


class ObservedQueries:
    """All queries that were observed of an application.

    :param index: of the datasets that the listener names; gets those that it does not
    :ivar schemas: of the datasets that were read, as far as they were observed
    :ivar commits: those that are no part of a query's record
    :raise SpentError: if there is no time left
    """

    def __init__(
        self,
        records: Sequence[ObservationRecord],
        index: DatasetIndex,
        locator: Locator,
        budget: Budget,
    ) -> None:
        self._index = index
        self._locator = locator
        self._places: dict[tuple[str, str | None], tuple[DatasetName | None, Locations]] = {}
        self.schemas: dict[DatasetName, SchemaRecord] = {}
        self.commits: dict[DatasetName, list[Commit]] = defaultdict(list)
        self._name_folders(records, budget)
        self.queries: list[Query] = []
        for record in records:
            budget.check()
            if record.kind == "query":
                self.queries.append(self._query(record))
            elif record.kind == "commits":
                self._add_commits(record.writes)

    def _name_folders(self, records: Iterable[ObservationRecord], budget: Budget) -> None:
        """Name all folders from the top, so that single files are known to be inside of some."""
        places = {
            (path, read.table)
            for record in records
            for read in record.reads
            for path in self._paths(read)
        }
        for path, table in sorted(places, key=lambda place: (len(place[0]), place[0])):
            budget.work()
            self._name(path, table)

    def _place(self, path: str, table: str | None) -> tuple[DatasetName | None, Locations]:
        """Give the dataset of a path or table, and the partition's folder if it is one."""
        key = (path, table)
        if key not in self._places:
            name, location = self._index.name(path, table), self._locator.locate(path)
            here = frozenset({location.folder.name}) if location and location.below else None
            self._places[key] = name, here
        return self._places[key]

    def _name(self, path: str, table: str | None) -> DatasetName | None:
        return self._place(path, table)[0]

    def _query(self, record: ObservationRecord) -> Query:
        command, target = record.command, None
        relations: tuple[DatasetName, ...] = ()
        if command is not None:
            target = self._name(command.target.path, command.target.table)
            found = (self._index.find_relation(r.path, r.table) for r in command.relations)
            relations = tuple(dict.fromkeys(name for name in found if name is not None))
        return Query(
            record,
            timestamp(record.started),
            timestamp(record.ended),
            self._reads(record),
            {name: write.mode for write in record.writes for name in self._written(write)},
            target,
            relations,
        )

    def _reads(self, record: ObservationRecord) -> dict[DatasetName, Locations]:
        found: dict[DatasetName, set[str] | None] = {}
        for read in record.reads:
            for path in self._paths(read):
                name, here = self._place(path, read.table)
                if name is None:
                    continue
                if read.schema is not None:
                    self.schemas.setdefault(name, read.schema)
                known = found.setdefault(name, set())
                if here is None:
                    found[name] = None
                elif known is not None:
                    known |= here
        return {name: known if known is None else frozenset(known) for name, known in found.items()}

    def _paths(self, read: ReadRecord) -> Iterable[str]:
        if read.inference:
            return ()
        if read.layouts is None:
            return read.roots or ("",)
        return dict.fromkeys(layout.base for layout in at_roots(read, self._locator))

    def _written(self, write: WriteRecord) -> Iterator[DatasetName]:
        bases = dict.fromkeys(layout.base for layout in write.layouts) or (write.path,)
        for base in bases:
            name = self._name(base, write.table)
            if name is not None:
                yield name

    def _add_commits(self, writes: Iterable[WriteRecord]) -> None:
        for write in writes:
            has_data = bool(write.layouts or write.removed or write.how == "unknown")
            commit = Commit(timestamp(write.time or 0), write.mode, has_data)
            for name in self._written(write):
                self.commits[name].append(commit)
