"""The observer's records tied to the datasets that the listener names: what touched which.

The observer and the listener know nothing of each other. What ties them is evidence: the path that
was read or written, named and trimmed as the listener does; else the table's identifier, through
symlinks. What belongs to no dataset is counted and named. A touch has the time of its query, by
which it is later found to belong to an action.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, Grade, Scope
from airflow_provider_sparklineage.lineage.application.untraced_columns import (
    UntracedColumns,
    bound_columns,
    call,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition, split_folder
from airflow_provider_sparklineage.spark.capture.observations import Layout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        ReadRecord,
        WriteRecord,
    )

_FULL = ("whole", "create")
_REPLACING = (*_FULL, "static", "dynamic")


class PythonFunction(NamedTuple):
    """A Python function that a query called.

    :param text: its name, and the names that its arguments have in Spark's plan
    """

    started: datetime
    ended: datetime
    text: str


UntracedColumnsThen = tuple[datetime, datetime, UntracedColumns]


@dataclass(frozen=True)
class Observations:
    """All that was observed of an application, by dataset."""

    reads: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    writes: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    """Paths or tables that no dataset of the application stands for."""
    functions: tuple[PythonFunction, ...] = ()
    tables: Mapping[DatasetName, frozenset[str]] = field(default_factory=dict)
    """Identifiers by which datasets were read and written, with their catalogs."""
    untraced_columns: Mapping[DatasetName, tuple[UntracedColumnsThen, ...]] = field(
        default_factory=dict
    )
    """By the dataset written; with the times between which the query ran."""


def bind(
    records: Iterable[ObservationRecord],
    identities: Mapping[DatasetName, Collection[DatasetName]],
    locator: Locator = DEFAULT_LOCATOR,
) -> Observations:
    """Bind records to the datasets that they are about.

    :param identities: the application's datasets, each with its symlinks
    """
    tying = _Tying(identities, locator)
    functions = []
    for record in records:
        span = (_moment(record.started), _moment(record.ended))
        for udf in record.python_udfs:
            functions.append(PythonFunction(*span, call(udf).text))
        for read in record.reads:
            tying.add_read(read, *span)
        for write in record.writes:
            at = _moment(write.time) if write.time is not None else None
            tying.add_write(write, at or span[0], at or span[1])
        tying.add_untraced_columns(record, *span)
    return Observations(
        {name: tuple(tying.reads[name]) for name in sorted(tying.reads)},
        {name: tuple(tying.writes[name]) for name in sorted(tying.writes)},
        tuple(sorted(tying.unmatched)),
        tuple(functions),
        {name: frozenset(tying.tables[name]) for name in sorted(tying.tables)},
        {name: tuple(tying.untraced_columns[name]) for name in sorted(tying.untraced_columns)},
    )


_LATEST_MS = 253_402_300_799_000  # the end of the year 9999: a damaged record may say anything


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(min(max(milliseconds, 0), _LATEST_MS) / 1000, UTC)


class _Tying:
    def __init__(
        self, identities: Mapping[DatasetName, Collection[DatasetName]], locator: Locator
    ) -> None:
        self._locator = locator
        self._names = set(identities)
        self._aliases: dict[DatasetName, DatasetName] = {}
        self._tables: dict[str, set[DatasetName]] = defaultdict(set)
        for name, links in identities.items():
            for link in links:
                self._aliases.setdefault(link, name)
                self._tables[link.name].add(name)
        self.reads: dict[DatasetName, list[Access]] = defaultdict(list)
        self.writes: dict[DatasetName, list[Access]] = defaultdict(list)
        self.untraced_columns: dict[DatasetName, list[UntracedColumnsThen]] = defaultdict(list)
        self.unmatched: set[str] = set()
        self.tables: dict[DatasetName, set[str]] = defaultdict(set)

    def add_read(self, read: ReadRecord, started: datetime, ended: datetime) -> None:
        filters = (*read.partition_filters, *read.data_filters, *read.pushed_filters)
        if read.layouts is None:
            for root in read.roots or [""]:
                dataset = self._dataset(root, read.table)
                if dataset is not None:
                    self.reads[dataset].append(
                        Access(
                            dataset,
                            Side.READ,
                            started,
                            ended,
                            grade=Grade.OBSERVED,
                            filters=filters,
                            why_unknown=read.cut,
                        )
                    )
            return
        unrestricted = not read.partition_filters and not read.pushed_filters
        roots = {_plain(root) for root in read.roots}
        for dataset, layouts in self._by_dataset(self._at_roots(read), read.table).items():
            bases = {_plain(layout.base) for layout in layouts}
            dimensions, partitions = self._united(dataset, layouts)
            full = unrestricted and bases <= roots and not self._are_partitions(bases)
            self.reads[dataset].append(
                Access(
                    dataset,
                    Side.READ,
                    started,
                    ended,
                    Scope(full, partitions),
                    grade=Grade.OBSERVED,
                    dimensions=dimensions,
                    filters=filters,
                )
            )

    def add_write(self, write: WriteRecord, started: datetime, ended: datetime) -> None:
        layouts = write.layouts or [Layout(write.path)]
        for dataset, found in self._by_dataset(layouts, write.table).items():
            dimensions, partitions = self._united(dataset, found)
            known = partitions
            if write.how == "unknown":
                known = None
            owned: frozenset[Partition] = frozenset()
            others = [_with_partitions(layout, write.shared or []) for layout in found]
            shared = self._united(dataset, others)[1]
            replaced = write.mode in _REPLACING
            if known is not None and (replaced or write.shared is not None):
                owned = known if replaced else known - (shared or frozenset())
            full = write.mode in _FULL
            if write.mode == "whole" and self._are_partitions({layout.base for layout in found}):
                full = False  # all of a folder that is a partition of the dataset
            self.writes[dataset].append(
                Access(
                    dataset,
                    Side.WRITE,
                    started,
                    ended,
                    Scope(partitions=known),
                    Scope(full, owned),
                    Grade.OBSERVED,
                    dimensions=dimensions or self._united(dataset, write.removed)[0],
                    why_unknown=write.cut,
                    exact=write.how != "listing",
                )
            )

    def add_untraced_columns(
        self, record: ObservationRecord, started: datetime, ended: datetime
    ) -> None:
        if record.lost_columns is None:
            return
        target = record.lost_columns.target
        written = self._dataset(target.path, target.table)
        if written is not None:
            untraced = bound_columns(record.lost_columns, record.python_udfs, self._relation)
            self.untraced_columns[written].append((started, ended, untraced))

    def _at_roots(self, read: ReadRecord) -> Iterator[Layout]:
        """Give the layouts of a read, below its roots where those are datasets of their own.

        With the option ``basePath``, partitions are told from a folder above the roots, and the
        listener names the roots: they differ if a partition's folder is not trimmed.
        """
        named: dict[str, DatasetName | None] = {}
        for layout in read.layouts or ():
            if layout.dimensions and not named:
                named = {root: self._named(root) for root in read.roots}
            above = self._named(layout.base) if layout.dimensions else None
            own = [root for root in named if above and named[root] != above]
            parts = [part for root in own if (part := _part(layout, root))]
            yield from parts or [layout]

    def _by_dataset(
        self, layouts: Iterable[Layout], table: str | None
    ) -> dict[DatasetName, list[Layout]]:
        found: dict[DatasetName, list[Layout]] = defaultdict(list)
        for layout in layouts:
            dataset = self._dataset(layout.base, table)
            if dataset is not None:
                found[dataset].append(layout)
        return found

    def _dataset(self, path: str, table: str | None) -> DatasetName | None:
        found = self._found(path, table)
        if found is not None and table:
            self.tables[found].add(table)
        return found

    def _found(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a path or table; what belongs to none is noted."""
        named = self._named(path)
        if named in self._names:
            return named
        if named in self._aliases:
            return self._aliases[named]
        parts = (table or "").split(".")
        for end in (".".join(parts[-2:]), parts[-1]):
            candidates = self._tables.get(end, set()) if end else set()
            if len(candidates) == 1:
                return next(iter(candidates))
        # Inferring a schema reads single files of a dataset by their own names.
        if named is None or not self._is_inside(named):
            self.unmatched.add(str(named) if named else table or path)
        return None

    def _named(self, path: str) -> DatasetName | None:
        location = self._locator.locate(path)
        return location.dataset if location else None

    def _relation(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a relation, whose path the observer gives without partition folders.

        Where those are not trimmed, it is the one dataset that is such a folder of it.
        """
        location = self._locator.locate(path)
        if location is None or location.dataset in self._names:
            return self._dataset(path, table)
        above = location.folder
        folders = [
            name
            for name in self._names
            if name.namespace == above.namespace and _values(name.name, above.name)
        ]
        if not folders:
            return self._dataset(path, table)
        return folders[0] if len(folders) == 1 else None

    def _are_partitions(self, bases: Iterable[str]) -> bool:
        """Whether some base is no dataset's root, but a folder of one of its partitions."""
        return any(self._partition(base) != Partition() for base in bases)

    def _partition(self, base: str) -> Partition | None:
        """Give the partition that a folder is itself; None where only rules could say which."""
        location = self._locator.locate(base)
        return location.partition if location else Partition()

    def _united(
        self, dataset: DatasetName, layouts: Iterable[Layout]
    ) -> tuple[tuple[Dimension, ...], frozenset[Partition] | None]:
        """Unite layouts of one dataset, with the partitions that are in a base's own path."""
        known = self._locator.rules.dimensions(dataset)
        dimensions: dict[Dimension, None] = {}
        partitions: set[Partition] = set()
        for layout in layouts:
            prefix = self._partition(layout.base)
            if prefix is None:
                return (), None
            own = [Dimension.of(d.field, d.transform, d.name, d.type) for d in layout.dimensions]
            for dimension in (*(Dimension.of(label) for label, _ in prefix.values), *own):
                ruled = known.get(dimension.label, dimension)
                dimensions[replace(ruled, type=ruled.type or dimension.type)] = None
            labels = [d.label for d in own]
            for values in layout.partitions:
                rest = Partition.of(zip(labels, values, strict=False))
                partitions.add(Partition(prefix.values + rest.values))
        return tuple(dimensions), frozenset(partitions)

    def _is_inside(self, name: DatasetName) -> bool:
        above = name.name
        while "/" in above.strip("/"):
            above = self._locator.naming.trim(above.rpartition("/")[0])
            if DatasetName(name.namespace, above) in self._names:
                return True
        return False


def _values(folder: str, base: str) -> list[tuple[str, str]]:
    """Read the columns and values between two folders; none if others are between them."""
    if not folder.startswith(f"{base}/"):
        return []
    found = [split_folder(name) for name in folder[len(base) + 1 :].split("/")]
    values = [one for one in found if one is not None]
    return values if len(values) == len(found) else []


def _part(layout: Layout, root: str) -> Layout | None:
    """Give the part of a layout that is in a partition's folder; None if it is no such folder."""
    values = Partition.of(_values(_plain(root), _plain(layout.base))).values
    leading = [d.field for d in layout.dimensions[: len(values)]]
    if not values or leading != [label for label, _ in values]:
        return None
    inside = [
        partition[len(values) :]
        for partition in layout.partitions
        if Partition.of(zip(leading, partition, strict=False)).values == values
    ]
    return Layout(root, layout.dimensions[len(values) :], inside)


def _plain(uri: str) -> str:
    scheme, colon, rest = uri.partition(":/")
    return f"{scheme}{colon}{rest.lstrip('/')}" if colon else uri


def _with_partitions(layout: Layout, partitions: list[list[str | None]]) -> Layout:
    return Layout(layout.base, layout.dimensions, partitions)
