"""Report the subset of each dataset that a task accessed, compared with the expected subset."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.partitions import comparison, selection
from airflow_provider_sparklineage.lineage.partitions.expected import Expectations
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, SpentError, Stage
from airflow_provider_sparklineage.model.datasets import DatasetName, is_database
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.lineage.observed.accesses import Subset
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.model.subset import Condition

_HOW = {Side.READ: "read", Side.WRITE: "written"}


NOT_OBSERVED = (
    "they are those of the locations that the listener reports, because they were not observed"
)


def inexact(name: DatasetName, side: Side, why: str) -> Degradation:
    """Report that the partitions which the event names, or which were compared, are uncertain.

    :param name: the dataset that was accessed
    :param why: the reason, as a clause
    """
    text = (
        f"Which partitions of {name} were {_HOW[side]} is not certain: {why}. "
        "A mismatch of them fails no task."
    )
    return Degradation(DegradationCode.PARTITIONS_INEXACT, text, name, side=side)


_LOCATING = 10
"""The units of work (:meth:`.Allowance.work`) for finding the partition of one location."""


class SubsetReport:
    """Adds to a dataset its expected subset, its accessed subset, and their comparison.

    Call :meth:`of` once for each dataset as an input, and once for each as an output.

    :param expectations: the partitions that templates and declarations name
    :param locator: finds the partitions of locations
    :param limits: how many partitions or locations a condition may name
    :param allowance: when no time is left, accessed partitions count as not known
    :param is_whole: whether all accesses were delivered; if not, no partition is reported as
        missing, because an access that was not delivered may be to that partition
    """

    def __init__(
        self,
        expectations: Iterable[Expectation],
        locator: Locator,
        limits: Limits,
        allowance: Allowance = UNLIMITED,
        *,
        is_whole: bool = True,
    ) -> None:
        self._expectations = Expectations(expectations)
        self._locator = locator
        self._limits = limits
        self._allowance = allowance
        self._is_whole = is_whole
        self._work = partial(allowance.work, Stage.MERGING)
        self._degradations: list[Degradation] = []

    def of(
        self,
        dataset: LineageDataset,
        side: Side,
        filters: Condition | None = None,
        static: frozenset[Partition] | None = None,
        *,
        other: LineageDataset | None = None,
        tables: Collection[str] = (),
        has_failed: bool = False,
    ) -> LineageDataset:
        """Add to a dataset the expected subset, the accessed subset, and their comparison.

        :param filters: condition that holds for all rows that were read
        :param static: static partitions of all the statements that wrote the dataset; also given
            for an input, as partitions of ``other``
        :param other: of an input, the same dataset as an output, and vice versa; None if it was not
            both read and written
        :param tables: table identifiers under which the dataset was observed
        :param has_failed: whether only failed actions wrote the dataset; if so, it has no subset
        """
        links = dataset.symlinks | {DatasetName("", table) for table in tables}
        expected = self._expectations.of(dataset.name, links, side, dataset.subset)
        if has_failed:
            check = comparison.reconcile(expected, None)
            return replace(dataset, expected=expected, check=check, failed=True)
        evidence = replace(
            self._accessed(dataset, static if side is Side.WRITE else None),
            filters=filters,
            expected=expected,
            is_on_both_sides=other is not None,
        )
        try:
            subset = selection.selected(evidence, self._limits)
        except SpentError:
            subset = selection.Selected()
        if subset.skipped:
            how = "read or planned to be read" if dataset.planned else _HOW[side]
            self._note_cut(dataset, side, subset.skipped, subset.what, how)
        if len(dataset.removed) <= self._limits.partitions:
            subset = replace(subset, removed=dataset.removed)
        else:
            self._note_cut(dataset, side, len(dataset.removed), "partitions", "emptied")
        try:
            self._allowance.check(Stage.MERGING)
            check = self._check(evidence, other, static if side is Side.READ else None)
        except SpentError:
            check = comparison.reconcile(expected, None)
        # Before the outcome is weakened: partitions that were compared may still be uncertain.
        self._note_inexact(dataset, side, check.status)
        if not self._is_whole:
            check = check.of_a_part()
        # Spark knows no partitions of a database's table, so there are none to be observed.
        is_whole = side is Side.WRITE and is_database(dataset.name) and expected is None
        return replace(
            dataset,
            expected=expected,
            selected=subset,
            check=check,
            observed=dataset.observed or (is_whole and subset.condition is None),
        )

    def _accessed(
        self, dataset: LineageDataset, static: frozenset[Partition] | None
    ) -> selection.Evidence:
        return selection.Evidence(
            observed=dataset.observed,
            subset=dataset.subset,
            locations=dataset.locations,
            located=self._partition_of(dataset.name),
            static=static,
        )

    def _check(
        self,
        evidence: selection.Evidence,
        other: LineageDataset | None,
        static: frozenset[Partition] | None,
    ) -> comparison.Reconciliation:
        """Compare the expected with the accessed partitions.

        :param other: of an input, the same dataset as an output, and vice versa; None if it was not
            both read and written
        :param static: static partitions of the statements that wrote the dataset, if ``evidence``
            is about reads
        """
        expected = evidence.expected
        if expected is None:
            return comparison.reconcile(None, None)
        if other is None or expected.kind is not Kind.PATH:
            return comparison.reconcile(expected, _seen(evidence), work=self._work)
        # Partitions that were observed here are not compared with mere locations of the other side.
        is_known = other.observed or not evidence.observed
        of_other = _seen(self._accessed(other, static)) if is_known else None
        return comparison.reconcile(
            expected, _seen(evidence), is_on_both_sides=True, other=of_other, work=self._work
        )

    def _note_cut(
        self, dataset: LineageDataset, side: Side, count: int, what: str, how: str
    ) -> None:
        """Report that there are more partitions, or locations, than the event may name.

        :param what: ``partitions`` or ``locations``
        :param how: what happened to them, such as ``written``
        """
        text = (
            f"{count} {what} of {dataset.name} were {how}, more than the event may name; "
            f"[sparklineage] max_{what} sets how many."
        )
        code = DegradationCode.PARTITIONS_CUT
        self._degradations.append(Degradation(code, text, dataset.name, side=side))

    def _note_inexact(
        self, dataset: LineageDataset, side: Side, status: comparison.PartitionStatus
    ) -> None:
        """Report that partitions are uncertain, if the event names them or they were compared.

        :param status: the outcome of the comparison
        """
        if dataset.planned:
            why = (
                f"{len(dataset.planned)} of them were planned to be read by a query that "
                "may have ended before it opened them, as with a limit"
            )
        elif dataset.observed and dataset.subset is not None and not dataset.subset.exact:
            why = (
                "they are those of the folders with new files, because these are not as many as "
                "Spark says it wrote; another writer may have put some there"
            )
        elif not dataset.observed and status not in (
            comparison.PartitionStatus.UNDECLARED,
            comparison.PartitionStatus.UNOBSERVED,
        ):
            why = NOT_OBSERVED
        else:
            return
        self._degradations.append(inexact(dataset.name, side, why))

    def at_risk(
        self, name: DatasetName, links: Collection[DatasetName], locations: Iterable[str]
    ) -> frozenset[Partition]:
        """Give the partitions that a failed write may have half written; empty if not known.

        :param links: the dataset's other names
        :param locations: names of the written dataset that the listener reported, with the folders
            of partitions
        """
        partition_of = self._partition_of(name)
        try:
            found = {partition_of(location) for location in locations}
        except SpentError:
            return frozenset()
        if found and None not in found:
            return frozenset(p for p in found if p is not None)
        expected = self._expectations.of(name, links, Side.WRITE, None)
        if expected is None or expected.is_glob or expected.kind is Kind.INFERRED:
            return frozenset()
        return expected.partitions or frozenset()

    def _partition_of(self, name: DatasetName) -> Callable[[str], Partition | None]:
        """Give a function that turns a name with partition folders into a partition of a dataset.

        The function gives None if the name is not a partition of the dataset, and raises
        :exc:`SpentError` when there is no time left.
        """

        def located(location: str) -> Partition | None:
            self._work(_LOCATING)
            found = self._locator.locate_name(name._replace(name=location))
            is_one = found.dataset == name and found.partition != Partition()
            return found.partition if is_one else None

        return located

    def degradations(self) -> list[Degradation]:
        """Report subsets that have too many partitions to name, and subsets that are uncertain.

        Declared tables that match no dataset are reported as well.
        """
        unbound = (
            f"The table {table} is declared, and Spark reported no dataset of that name."
            for table in self._expectations.unbound_tables()
        )
        code = DegradationCode.DECLARATION_UNBOUND
        return [*self._degradations, *(Degradation(code, text) for text in unbound)]


def _seen(evidence: selection.Evidence) -> Subset | None:
    """Give the accessed partitions: the observed partitions, else those of reported locations.

    :return: None if the partitions are not known, or all of an unpartitioned dataset was accessed
    """
    if evidence.observed:
        return evidence.subset
    partitions = selection.located(evidence)
    if partitions is None:
        return None
    # Not imported with the module: a submission waits for imports, and observes nothing.
    from airflow_provider_sparklineage.lineage.observed.accesses import Subset

    labels = dict.fromkeys(label for p in partitions for label, _ in p.values)
    return Subset(tuple(Dimension.of_column(label) for label in labels), partitions)
