"""The lineage of a task: a dataset is joined from several actions, rows and bytes are summed."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.application.accesses import (
    DecodedFacets,
    Figures,
    Symlinks,
)
from airflow_provider_sparklineage.lineage.partitions.comparison import (
    PartitionStatus,
    Reconciliation,
)
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.model.producer import facet
from airflow_provider_sparklineage.model.terms import Frozen, Outcome, Witness, extent_text
from airflow_provider_sparklineage.spark.capture.lines import decode_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.expectations import Side
    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage
    from airflow_provider_sparklineage.lineage.observed.accesses import Subset
    from airflow_provider_sparklineage.lineage.partitions.expected import Expected
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition


class Accessed(StrEnum):
    """How much of a dataset a task read, or wrote, as far as that is known."""

    ALL = "all"
    """The full dataset; a dataset without partitions is full unless its files were chosen."""
    PART = "part"
    """A part, which the event describes; of a dataset without partitions, some of its files."""
    NONE = "none"
    """No partition of the dataset, or no data."""
    REMOVED = "removed"
    """Partitions, or all data of a dataset without partitions, were removed; none was written."""
    UNKNOWN = "unknown"

    def text(self, side: Side) -> str:
        """Describe in a few words how much of a dataset was read or written, without partitions."""
        return extent_text(self, side)


class LineageDataset(DecodedFacets, Frozen, frozen=True, dict=True):
    """A dataset that the task read or wrote.

    :param facets: the dataset facets, as Spark reported them
    :param side_facets: the ``inputFacets`` or ``outputFacets``, as Spark reported them
    :param columns: of an output, its column lineage, with columns of intermediate datasets replaced
        by their sources
    :param locations: partition locations that were accessed; None stands for the full dataset, or
        for unknown locations
    :param observed: whether all accesses were observed; if so, a ``subset`` of None stands for all
        of a dataset that is not partitioned
    :param subset: the partitions that were observed to be read or written
    :param expected: the partitions that templates and declarations name
    :param selected: the subset, in the form in which the event describes it
    :param check: the comparison of the expected and the observed partitions
    :param sources: of an output, the datasets from which it was made; None where the sources are
        not known
    :param witness: the reporter of the reads of an input, or of the writes of an output; None if
        this try has no report of them, and the dataset comes from the lineage of the last run
    :param failed: whether all writes of the dataset failed or never ended; if so, no part of the
        dataset counts as written
    :param writes: of an output, the number of actions that wrote it; the output's statistics are
        the sum over these actions
    :param attempt: the number of the last attempt of the driver that accessed it, if there was a
        later attempt that did not; None if there was not, or that is not known
    :param is_empty: whether all accesses were observed, and none of them read, wrote or removed
        data
    :param is_emptied: whether all accesses were observed, and they left an unpartitioned output
        without data
    :param is_of_chosen_files: whether all accesses were observed, and each was an access to chosen
        files: to files that are new to a stream, or that an option names
    :param figures: of an output whose writes were all observed, the rows and bytes that were added
        to each partition (:meth:`.ObservedAccesses.figures`)
    """

    name: DatasetName
    facets: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    side_facets: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    locations: frozenset[str] | None = None
    columns: ColumnLineage | None = None
    observed: bool = False
    subset: Subset | None = None
    expected: Expected | None = None
    selected: Selected = Selected()
    check: Reconciliation = Reconciliation(PartitionStatus.UNDECLARED)
    sources: frozenset[DatasetName] | None = None
    witness: Witness | None = None
    failed: bool = False
    writes: int = 1
    attempt: int | None = None
    is_empty: bool = False
    is_emptied: bool = False
    is_of_chosen_files: bool = False
    figures: Mapping[Partition, Figures] = field(default_factory=dict)

    @property
    def accessed(self) -> Accessed:
        """How much of the dataset was read or written."""
        has_written = self.selected.partitions != frozenset()
        if self.is_emptied or (self.removed and not has_written):
            return Accessed.REMOVED
        if self.is_empty or not has_written:
            return Accessed.NONE
        if self.selected.condition is not None:
            return Accessed.PART
        if not self.observed:
            return Accessed.UNKNOWN
        if self.subset is None:
            return Accessed.PART if self.is_of_chosen_files else Accessed.ALL
        # A part is still a part if there was no time to describe it.
        return Accessed.ALL if self.subset.full else Accessed.PART

    @property
    def planned(self) -> frozenset[Partition]:
        """Partitions of the observed subset that a read planned, and may not have opened."""
        if not self.observed or self.subset is None or self.subset.full:
            return frozenset()
        return self.subset.planned

    @property
    def removed(self) -> frozenset[Partition]:
        """Partitions of an output that the task emptied, and did not write again."""
        return self.subset.removed if self.observed and self.subset is not None else frozenset()

    @property
    def is_replaced(self) -> bool:
        """Whether a write created or replaced the full output: no other partition is left."""
        return self.observed and self.subset is not None and self.subset.is_replaced

    @property
    def is_only_emptied(self) -> bool:
        """Whether the task left none of its own data in the output, and removed data from it."""
        subset = self.subset
        return self.is_emptied or bool(self.removed and subset and not subset.partitions)

    @property
    def is_check_exact(self) -> bool:
        """Whether the result of the partition check is certain.

        Spark was observed to access these partitions, and they are expected by a declaration or a
        path. The schedule only says what starts a run: to read more may be right. Partitions that
        Spark only planned to read were perhaps never read.
        """
        check = self.check
        is_only_planned = not check.missing and check.unexpected <= self.planned
        return (
            self.observed
            and (self.subset is None or self.subset.exact)
            and not (check.unexpected and is_only_planned)
            and self.expected is not None
            and self.expected.kind in (Kind.DECLARED, Kind.PATH)
        )

    @property
    def has_certain_expectation(self) -> bool:
        """Whether partitions are expected by more than dates in arguments, which can only match."""
        return self.expected is not None and self.expected.kind is not Kind.INFERRED

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The observed dimensions of the dataset; the declared ones if no subset was observed."""
        if self.subset is not None:
            return self.subset.dimensions
        return self.expected.dimensions if self.expected else ()


# These facets describe single scans and commits, and Spark rounds the snapshot ids in them.
_DROPPED = frozenset({"icebergScanReport", "icebergCommitReport"})


class TaskLineage(Frozen, frozen=True):
    """The datasets that one try of a task read and wrote; degradations report missing parts.

    :param application: the application that was merged; None if none was
    :param attempts: the number of attempts of the driver, as far as they are known
    :param maintenance: datasets of which files were maintained, each with the command
        (:attr:`.Observations.maintenance`); this is neither a read nor a write
    """

    outcome: Outcome
    inputs: tuple[LineageDataset, ...] = ()
    outputs: tuple[LineageDataset, ...] = ()
    application: SparkApplication | None = None
    degradations: tuple[Degradation, ...] = ()
    attempts: int = 1
    maintenance: tuple[tuple[DatasetName, str], ...] = ()


def joined(
    known: LineageDataset | None, dataset: ActionDataset, witness: Witness, *, is_input: bool
) -> LineageDataset:
    """Join a later action's report of an input or output with the earlier reports of it.

    Facets are taken from the later action, but symlinks are united, output statistics are summed,
    and an input's ``version`` stays that of the first action. Locations stay those of the first
    action, too; the ledger has the locations of all actions.

    :param known: the earlier reports, joined; None if there are none
    :param dataset: the later action's report
    :param witness: the reporter of the later action
    """
    facets = {**dataset.facets}
    facets.pop("columnLineage", None)
    sides = {k: v for k, v in dataset.side_facets.items() if k not in _DROPPED}
    if known is None:
        return LineageDataset(dataset.name, facets, sides, dataset.locations, witness=witness)
    both = {**known.facets, **facets}
    if "symlinks" in known.facets and "symlinks" in facets:
        both["symlinks"] = _united_symlinks(
            bytes(known.facets["symlinks"]), bytes(facets["symlinks"])
        )
    if is_input and "version" in known.facets:
        both["version"] = known.facets["version"]
    both_sides = {**known.side_facets, **sides}
    if not is_input and "outputStatistics" in known.side_facets and "outputStatistics" in sides:
        both_sides["outputStatistics"] = _summed(
            known.side_facets["outputStatistics"], sides["outputStatistics"]
        )
    both_of = LineageDataset(dataset.name, both, both_sides, known.locations, witness=witness)
    return with_witness(both_of, known.witness)


_STATISTICS = (
    "https://openlineage.io/spec/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json"
    "#/$defs/OutputStatisticsOutputDatasetFacet"
)


def with_statistics(output: LineageDataset) -> LineageDataset:
    """Add to an output ``outputStatistics`` with the sums of its figures.

    Those that the listener reports stay. Sums of which a part is not known are not added.
    """
    if "outputStatistics" in output.side_facets or not output.figures:
        return output
    total = Figures()
    for figures in output.figures.values():
        total = total.plus(figures)
    if total.rows is None or total.size is None:
        return output
    body = facet(_STATISTICS, rowCount=total.rows, size=total.size)
    statistics = {"outputStatistics": msgspec.Raw(msgspec.json.encode(body))}
    return replace(output, side_facets={**output.side_facets, **statistics})


@lru_cache(maxsize=128)  # each of a thousand actions adds the same symlinks
def _united_symlinks(first: bytes, second: bytes) -> msgspec.Raw:
    facet = decode_facet(msgspec.Raw(second), dict[str, Any])
    one, two = (decode_facet(msgspec.Raw(one), Symlinks) for one in (first, second))
    if one is None or two is None or facet is None:
        return msgspec.Raw(second)
    identifiers = [*(one.identifiers or ()), *(two.identifiers or ())]
    unique = {msgspec.json.encode(i, order="sorted"): i for i in identifiers}
    facet["identifiers"] = [unique[key] for key in sorted(unique)]
    return msgspec.Raw(msgspec.json.encode(facet))


def _summed(first: msgspec.Raw, second: msgspec.Raw) -> msgspec.Raw:
    facet, other = decode_facet(second, dict[str, Any]), decode_facet(first, dict[str, Any])
    if facet is None or other is None:
        return second
    for key, value in other.items():
        now = facet.get(key, 0)
        if type(value) is int and type(now) is int:
            facet[key] = value + now
    return msgspec.Raw(msgspec.json.encode(facet))


def with_declared(
    observed: dict[DatasetName, LineageDataset], declared: Iterable[DatasetName]
) -> dict[DatasetName, LineageDataset]:
    """Add each declared dataset that was not observed, neither by its name nor by a symlink."""
    known = set(observed).union(*(dataset.symlinks for dataset in observed.values()))
    return observed | {
        name: LineageDataset(name, witness=Witness.DECLARED)
        for name in declared
        if name not in known
    }


def with_witness(dataset: LineageDataset, witness: Witness | None) -> LineageDataset:
    """Note one more reporter (*witness*) of a dataset; two different ones become BOTH.

    :param witness: None if there is none to add
    """
    if witness in (None, dataset.witness):
        return dataset
    return replace(dataset, witness=Witness.BOTH if dataset.witness else witness)
