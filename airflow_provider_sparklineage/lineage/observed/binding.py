"""Bind the observer's records of reads and writes to the datasets that the listener names.

The observer and the listener do not communicate, so evidence binds their reports: the path that was
read or written, turned into the name that the listener gives to that path; else the identifier of
the table, which is looked up among symlinks (:class:`DatasetIndex`). A path or table that is no
dataset of the application is listed as unmatched.

A layout of the observer is a base folder with the partitions below it (:class:`FolderPartitions`).
The base may be the folder of a partition itself. Such a base is a dataset of its own if the
listener does not trim the partition's folder off the dataset's name.

An access has the time of its query, and this time leads to the action later. The plan of a write
(:class:`WritePlan`) has the time of its query too. A plan is compressed, as a job may write
thousands of times, and is decoded only when the columns of the write are composed.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import field

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, Grade, Scope
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.datasets import DatasetName, looks_like_file
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    split_folder,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.spark.capture.lines import MAX_TEXT
from airflow_provider_sparklineage.spark.capture.observations import Layout, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.spark.capture.observations import (
        CommandRecord,
        ObservationRecord,
        ReadRecord,
        UdfRecord,
        Values,
        WriteRecord,
    )


# --- layouts to partitions ------------------------------------------------------------------------


class FolderPartitions:
    """Makes the partitions of layouts; equal partitions, and equal sets of partitions, are shared.

    :param budget: the time for all layouts
    """

    def __init__(self, locator: Locator, budget: Budget = UNLIMITED) -> None:
        self._locator = locator
        self._budget = budget
        self._makers: dict[_Labels, _PartitionMaker] = {}
        self._sets: dict[tuple[_Labels, tuple[Values, ...]], frozenset[Partition]] = {}

    def of(
        self, layouts: Iterable[Layout], dataset: DatasetName
    ) -> tuple[tuple[Dimension, ...], frozenset[Partition] | None]:
        """Unite the layouts of one dataset; a base that is a partition adds its own values.

        :return: dimensions and partitions; () and None if a base is inside of a partition whose
            values only a rule could name
        :raise SpentError: if there is no time left
        """
        known = self._locator.rules.dimensions(dataset)
        dimensions: dict[Dimension, None] = {}
        found: list[frozenset[Partition]] = []
        for layout in layouts:
            base = _partition_of_base(layout.base, self._locator)
            if base is None:
                return (), None
            own = [Dimension.of(d.field, d.transform, d.name, d.type) for d in layout.dimensions]
            for dimension in (*(Dimension.of(label) for label, _ in base.values), *own):
                ruled = known.get(dimension.label, dimension)
                dimensions[replace(ruled, type=ruled.type or dimension.type)] = None
            labels = base.values, tuple(d.label for d in own)
            found.append(self._listed(labels, layout.partitions))
        partitions = found[0] if len(found) == 1 else frozenset().union(*found)
        return tuple(dimensions), partitions

    def _listed(self, labels: _Labels, listed: tuple[Values, ...]) -> frozenset[Partition]:
        made = self._sets.get((labels, listed))
        if made is None:
            made = self._sets[labels, listed] = frozenset(self._made(labels, listed))
        return made

    def _made(self, labels: _Labels, listed: tuple[Values, ...]) -> Iterator[Partition]:
        maker = self._makers.setdefault(labels, _PartitionMaker(*labels))
        for start in range(0, len(listed), _AT_ONCE):
            some = listed[start : start + _AT_ONCE]
            self._budget.work(len(some))
            yield from map(maker.__getitem__, some)


_AT_ONCE = 500
_Labels = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""The (label, value) pairs of a base folder, and the labels of the partitions below the base."""


class _PartitionMaker(dict["Values", Partition]):
    """Maps values to the partition below one base; a partition is made when it is first used."""

    def __init__(self, base: tuple[tuple[str, str], ...], labels: tuple[str, ...]) -> None:
        self._base = base
        self._labels = labels

    def __missing__(self, values: Values) -> Partition:
        """Make a partition of observed values: None becomes :data:`NULL`, "" stays a value."""
        given = [NULL if value is None else value for value in values]
        made = Partition((*self._base, *zip(self._labels, given, strict=False)))
        return self.setdefault(values, made)


def are_partitions(bases: Iterable[str], locator: Locator) -> bool:
    """Whether some base is the folder of a partition, and not the root of a dataset."""
    return any(_partition_of_base(base, locator) != Partition() for base in bases)


def _partition_of_base(base: str, locator: Locator) -> Partition | None:
    location = locator.locate(base)
    return location.partition if location else Partition()


def at_roots(read: ReadRecord, locator: Locator) -> Iterator[Layout]:
    """Give the layouts of a read, moved below its roots if the roots are other datasets.

    With the option ``basePath`` the observer finds partitions below a folder above the roots, while
    the listener names the roots. If the listener does not trim a partition's folder, that folder
    and the roots are different datasets.
    """

    def dataset(path: str) -> DatasetName | None:
        location = locator.locate(path)
        return location.dataset if location else None

    datasets: dict[str, DatasetName | None] = {}
    for layout in read.layouts or ():
        if layout.dimensions and not datasets:
            datasets = {root: dataset(root) for root in read.roots}
        above = dataset(layout.base) if layout.dimensions else None
        own = [root for root in datasets if above and datasets[root] != above]
        inside = [part for root in own if (part := _layout_inside(layout, root))]
        yield from inside or [layout]


def _layout_inside(layout: Layout, root: str) -> Layout | None:
    """Give the part of a layout below a root; None if the root is no partition of the layout."""
    values = Partition.of(values_between(plain_uri(layout.base), plain_uri(root))).values
    leading = [d.field for d in layout.dimensions[: len(values)]]
    if not values or leading != [label for label, _ in values]:
        return None
    inside = tuple(
        partition[len(values) :]
        for partition in layout.partitions
        if Partition.of(zip(leading, partition, strict=False)).values == values
    )
    return Layout(root, layout.dimensions[len(values) :], inside)


def values_between(base: str, folder: str) -> list[tuple[str, str]]:
    """Read the (column, value) pairs of the folders from a base down to a folder.

    :return: [] if the folder is not below the base, or if a folder on the way has another form
        than ``column=value``
    """
    if not folder.startswith(f"{base}/"):
        return []
    found = [split_folder(name) for name in folder[len(base) + 1 :].split("/")]
    values = [one for one in found if one is not None]
    return values if len(values) == len(found) else []


def plain_uri(uri: str) -> str:
    """Write a URI with one slash after its scheme, so that all URIs of one folder are equal."""
    scheme, colon, rest = uri.partition(":/")
    return f"{scheme}{colon}{rest.lstrip('/')}" if colon else uri


# --- paths and tables to datasets -----------------------------------------------------------------


_INTERNAL_FOLDERS = frozenset({"_delta_log", "_spark_metadata"})
"""Folders inside of tables that hold no data of the user."""


class DatasetIndex:
    """Finds datasets by path or table, and collects paths and tables that match no dataset.

    :param identities: the application's datasets, each with its symlinks
    """

    def __init__(
        self, identities: Mapping[DatasetName, Collection[DatasetName]], locator: Locator
    ) -> None:
        self._locator = locator
        self._names = set(identities)
        self._aliases: dict[DatasetName, DatasetName] = {}
        self._by_table: dict[str, set[DatasetName]] = defaultdict(set)
        for name, links in identities.items():
            for link in links:
                self._aliases.setdefault(link, name)
                self._by_table[link.name].add(name)
        self.unmatched: set[str] = set()
        """Paths or tables that are no dataset of the application."""
        self.tables: dict[DatasetName, set[str]] = defaultdict(set)
        """Dataset -> the table identifiers by which the dataset was found."""

    def find(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a path or table; else note it as unmatched, and give None."""
        found = self._find(path, table)
        if found is not None and table:
            self.tables[found].add(table)
        return found

    def name(self, path: str, table: str | None) -> DatasetName | None:
        """Name the dataset of a path or table, and add it to the application's datasets.

        :return: None if neither path nor table can be named, or the path is in a folder such as
            ``_delta_log``, or is a single file of a known dataset
        """
        location = self._locator.locate(path)
        if location is not None and looks_like_file(location.folder.name):
            if self.above(location.folder) is not None:
                return self._known(location.dataset, None)
            if location.folder.name.rpartition("/")[2].startswith("part-"):  # one of Spark's files
                location = self._locator.locate(path.rpartition("/")[0])
        known = self._known(location.dataset if location else None, table)
        if known is not None or location is None:
            return known
        if not _INTERNAL_FOLDERS.isdisjoint(location.folder.name.split("/")):
            return None
        self._names.add(location.dataset)
        return location.dataset

    def find_relation(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a relation, whose path the observer gives without partition folders.

        If the listener does not trim these folders, datasets are folders of partitions below the
        path. If there is only one such dataset, it is the result; None if there are several.
        """
        location = self._locator.locate(path)
        if location is None or location.dataset in self._names:
            return self.find(path, table)
        above = location.folder
        folders = [
            name
            for name in self._names
            if name.namespace == above.namespace and values_between(above.name, name.name)
        ]
        if not folders:
            return self.find(path, table)
        return folders[0] if len(folders) == 1 else None

    def _find(self, path: str, table: str | None) -> DatasetName | None:
        location = self._locator.locate(path)
        named = location.dataset if location else None
        found = self._known(named, table)
        # A single file of a dataset may be read by its own name: it is not noted as unmatched.
        if found is None and (location is None or self.above(location.folder) is None):
            self.unmatched.add(str(named) if named else table or path)
        return found

    def _known(self, named: DatasetName | None, table: str | None) -> DatasetName | None:
        if named in self._names:
            return named
        if named in self._aliases:
            return self._aliases[named]
        parts = (table or "").split(".")
        for end in (".".join(parts[-2:]), parts[-1]):
            candidates = self._by_table.get(end, set()) if end else set()
            if len(candidates) == 1:
                return next(iter(candidates))
        return None

    def holding(self, files: Iterable[str]) -> set[DatasetName]:
        """Find the datasets that are, or contain, some of the files; note no file as unmatched."""
        found, others = set(), {}
        for file in files:
            location = self._locator.locate(file)
            if location is not None and location.dataset in self._names:
                found.add(location.dataset)
            elif location is not None:
                others[location.folder.name.rpartition("/")[0]] = location.folder
        return found | {above for one in others.values() if (above := self.above(one))}

    def above(self, folder: DatasetName) -> DatasetName | None:
        """Find the dataset that contains a folder or file; None if there is none."""
        while above := folder.name.rpartition("/")[0]:
            folder = DatasetName(folder.namespace, above)
            dataset = self._locator.locate_name(folder).dataset
            if dataset in self._names:
                return dataset
        return None


# --- plans of writes ------------------------------------------------------------------------------


class WritePlan(NamedTuple):
    """The plan of one write.

    :param columns: the columns of the target, in the order of the query's output
    :param compressed: the plan, as Spark's ``TreeNode.toJSON`` writes it, compressed
    :param relations: for each leaf of the plan, its dataset and the ids of its columns; the dataset
        is None if the leaf is no dataset of the application
    """

    target: DatasetName
    columns: tuple[str, ...]
    compressed: bytes
    relations: tuple[tuple[DatasetName | None, tuple[int, ...]], ...]

    @property
    def plan(self) -> bytes:
        """The plan as JSON."""
        return zlib.decompress(self.compressed)


class WritePlanThen(NamedTuple):
    """A plan, and the times between which its query ran."""

    started: datetime
    ended: datetime
    plan: WritePlan

    def is_within(self, started: datetime, ended: datetime | None) -> bool:
        """Whether the middle of the query's time is between two times; None is an open end."""
        middle = self.started + (self.ended - self.started) / 2
        return started <= middle and (ended is None or middle <= ended)

    def gap(self, started: datetime, ended: datetime | None) -> timedelta:
        """Give the time between the query and a span; negative if they overlap."""
        after = self.started - ended if ended is not None else timedelta.min
        return max(after, started - self.ended)


def bound_plan(
    command: CommandRecord,
    target: DatasetName,
    dataset: Callable[[str, str | None], DatasetName | None],
) -> WritePlan | None:
    """Bind the plan of a command to the datasets that the leaves of the plan read.

    :param dataset: finds the dataset of a path and table
    :return: None if there is no plan
    """
    if not command.plan:
        return None
    relations = tuple(
        (dataset(relation.path, relation.table), tuple(relation.ids))
        for relation in command.relations
    )
    return WritePlan(target, tuple(command.columns), zlib.compress(command.plan, 1), relations)


# --- records to accesses --------------------------------------------------------------------------


_FULL_MODES = ("whole", "create")
_REPLACING_MODES = (*_FULL_MODES, "static", "dynamic")


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
    plans: Mapping[DatasetName, tuple[WritePlanThen, ...]] = field(default_factory=dict)
    """Written dataset -> the plans of its writes."""
    gone: frozenset[DatasetName] = frozenset()
    """Datasets that were written, and did not exist any more when the application ended."""


def bind(
    records: Iterable[ObservationRecord],
    identities: Mapping[DatasetName, Collection[DatasetName]],
    locator: Locator = DEFAULT_LOCATOR,
    budget: Budget = UNLIMITED,
) -> Observations:
    """Bind records to the datasets that they are about.

    :param identities: the application's datasets, each with its symlinks
    :raise SpentError: if there is no time left
    """
    binding = _Binding(identities, locator, budget)
    functions = []
    gone: set[DatasetName | None] = set()
    for record in records:
        budget.check()
        span = (timestamp(record.started), timestamp(record.ended))
        for udf in record.python_udfs:
            functions.append(PythonFunction(*span, _call_text(udf)))
        for read in record.reads:
            binding.add_read(read, *span)
        for write in record.writes:
            at = timestamp(write.time) if write.time is not None else None
            binding.add_write(write, at or span[0], at or span[1])
        binding.add_plan(record, *span)
        gone.update(binding.index.find(path, None) for path in record.gone)
    tables = binding.index.tables
    return Observations(
        {name: tuple(binding.reads[name]) for name in sorted(binding.reads)},
        {name: tuple(binding.writes[name]) for name in sorted(binding.writes)},
        tuple(sorted(binding.index.unmatched)),
        tuple(functions),
        {name: frozenset(tables[name]) for name in sorted(tables)},
        {name: tuple(binding.plans[name]) for name in sorted(binding.plans)},
        frozenset(name for name in gone if name is not None),
    )


def _call_text(udf: UdfRecord) -> str:
    """Write the call of a Python function as a text."""
    return f"{udf.function or 'a Python function'}({', '.join(udf.columns)})"


class _Binding:
    """Turns records into accesses and plans, grouped by dataset."""

    def __init__(
        self,
        identities: Mapping[DatasetName, Collection[DatasetName]],
        locator: Locator,
        budget: Budget,
    ) -> None:
        self._locator = locator
        self._folders = FolderPartitions(locator, budget)
        self.index = DatasetIndex(identities, locator)
        self.reads: dict[DatasetName, list[Access]] = defaultdict(list)
        self.writes: dict[DatasetName, list[Access]] = defaultdict(list)
        self.plans: dict[DatasetName, list[WritePlanThen]] = defaultdict(list)

    def add_read(self, read: ReadRecord, started: datetime, ended: datetime) -> None:
        filters = (*read.partition_filters, *read.data_filters, *read.pushed_filters)
        if read.inference:
            nothing = Scope(partitions=frozenset())
            for holding in self.index.holding(read.roots):
                access = Access(holding, Side.READ, started, ended, nothing, grade=Grade.OBSERVED)
                self.reads[holding].append(access)
            return
        if read.layouts is None:
            for root in read.roots or [""]:
                dataset = self.index.find(root, read.table)
                if dataset is not None:
                    self.reads[dataset].append(
                        Access(
                            dataset,
                            Side.READ,
                            started,
                            ended,
                            grade=Grade.OBSERVED,
                            filters=filters,
                            why_unknown=truncated(read.cut, MAX_TEXT),
                        )
                    )
            return
        unrestricted = not (read.partition_filters or read.pushed_filters or read.chosen)
        roots = {plain_uri(root) for root in read.roots}
        for dataset, layouts in self._by_dataset(at_roots(read, self._locator), read.table).items():
            bases = {plain_uri(layout.base) for layout in layouts}
            dimensions, partitions = self._folders.of(layouts, dataset)
            full = unrestricted and bases <= roots and not are_partitions(bases, self._locator)
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
                    planned=read.planned,
                    chosen=read.chosen,
                )
            )

    def add_write(self, write: WriteRecord, started: datetime, ended: datetime) -> None:
        layouts = write.layouts or [Layout(write.path)]
        for dataset, found in self._by_dataset(layouts, write.table).items():
            dimensions, partitions = self._folders.of(found, dataset)
            known = None if write.how == "unknown" else partitions
            owned: frozenset[Partition] = frozenset()
            others = [_with_partitions(layout, write.shared or ()) for layout in found]
            shared = self._folders.of(others, dataset)[1]
            removed = self._folders.of(write.removed, dataset)[0]
            bases = {layout.base for layout in found}
            replaced = write.mode in _REPLACING_MODES
            if known is not None and (replaced or write.shared is not None):
                owned = known if replaced else known - (shared or frozenset())
            full = write.mode in _FULL_MODES
            if write.mode == "whole" and are_partitions(bases, self._locator):
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
                    dimensions=dimensions or removed,
                    why_unknown=truncated(write.cut, MAX_TEXT),
                    exact=write.how != "listing",
                )
            )

    def add_plan(self, record: ObservationRecord, started: datetime, ended: datetime) -> None:
        if record.command is None or record.failed:
            return
        target = record.command.target
        written = self.index.find(target.path, target.table)
        if written is not None:
            plan = bound_plan(record.command, written, self.index.find_relation)
            if plan is not None:
                self.plans[written].append(WritePlanThen(started, ended, plan))

    def _by_dataset(
        self, layouts: Iterable[Layout], table: str | None
    ) -> dict[DatasetName, list[Layout]]:
        found: dict[DatasetName, list[Layout]] = defaultdict(list)
        for layout in layouts:
            dataset = self.index.find(layout.base, table)
            if dataset is not None:
                found[dataset].append(layout)
        return found


def _with_partitions(layout: Layout, partitions: tuple[Values, ...]) -> Layout:
    return Layout(layout.base, layout.dimensions, partitions)
