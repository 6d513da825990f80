"""The observer's records bound to the datasets that the listener names: what was read and written.

:mod:`.dataset_index` finds the dataset, :mod:`.observed_folders` the partitions. What belongs to no
dataset is named. An access has the time of its query, by which its action is found later.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from msgspec import field

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, Grade, Scope
from airflow_provider_sparklineage.lineage.application.dataset_index import DatasetIndex
from airflow_provider_sparklineage.lineage.application.observed_folders import (
    FolderPartitions,
    are_partitions,
    at_roots,
    plain,
)
from airflow_provider_sparklineage.lineage.application.write_plans import WritePlanThen, bound_plan
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.spark.capture.lines import MAX_TEXT
from airflow_provider_sparklineage.spark.capture.observations import Layout, timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.partitioning import Partition
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        ReadRecord,
        UdfRecord,
        Values,
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


class Observations(Frozen, frozen=True):
    """All that was observed of an application, by dataset."""

    reads: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    writes: Mapping[DatasetName, tuple[Access, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    """Paths or tables that no dataset of the application stands for."""
    functions: tuple[PythonFunction, ...] = ()
    tables: Mapping[DatasetName, frozenset[str]] = field(default_factory=dict)
    """Identifiers by which datasets were read and written, with their catalogs."""
    plans: Mapping[DatasetName, tuple[WritePlanThen, ...]] = field(default_factory=dict)
    """By the dataset written."""
    gone: frozenset[DatasetName] = frozenset()
    """Those that were written, and were not there any more at the end."""


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
            functions.append(PythonFunction(*span, _called(udf)))
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


def _called(udf: UdfRecord) -> str:
    """Write the call of a Python function."""
    return f"{udf.function or 'a Python function'}({', '.join(udf.columns)})"


class _Binding:
    """Records on their way to accesses, by dataset."""

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
        roots = {plain(root) for root in read.roots}
        for dataset, layouts in self._by_dataset(at_roots(read, self._locator), read.table).items():
            bases = {plain(layout.base) for layout in layouts}
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
            replaced = write.mode in _REPLACING
            if known is not None and (replaced or write.shared is not None):
                owned = known if replaced else known - (shared or frozenset())
            full = write.mode in _FULL
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
