"""The datasets of a task with the part of each that is meant, and what about it is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.dataset import symlinks
from airflow_provider_sparklineage.lineage.expected import Expectations
from airflow_provider_sparklineage.lineage.reconcile import Seen, reconcile
from airflow_provider_sparklineage.lineage.subsets import Evidence, located, meant
from airflow_provider_sparklineage.partitioning import Dimension, split_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.datasets import DatasetName
    from airflow_provider_sparklineage.expectations import Expectation
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.partitioning import Partition
    from airflow_provider_sparklineage.representation import Limits
    from airflow_provider_sparklineage.rules import PartitionRules
    from airflow_provider_sparklineage.subset import Condition

_HOW = {Side.READ: "read", Side.WRITE: "written"}


class Telling:
    """Tells dataset by dataset which part of it is meant; asked once for each side of each."""

    def __init__(
        self, expectations: Iterable[Expectation], rules: PartitionRules, limits: Limits
    ) -> None:
        self._expectations = Expectations(expectations)
        self._rules = rules
        self._limits = limits
        self._cuts: list[Degradation] = []

    def told(
        self,
        dataset: LineageDataset,
        side: Side,
        filters: Condition | None = None,
        stated: frozenset[Partition] | None = None,
        *,
        is_on_both_sides: bool = False,
    ) -> LineageDataset:
        """Add what was expected of a dataset, and in which form its subset is to be said.

        :param filters: condition that all rows fulfil which were read
        :param stated: static partitions of all the statements that wrote it
        :param is_on_both_sides: whether it was read and written
        """
        links = symlinks(dataset)
        expected = self._expectations.of(dataset.name, links, side, dataset.subset)
        evidence = Evidence(
            observed=dataset.observed,
            subset=dataset.subset,
            locations=dataset.locations,
            filters=filters,
            expected=expected,
            located=self._locator(dataset.name),
            stated=stated,
            is_on_both_sides=is_on_both_sides,
        )
        told = meant(evidence, self._limits)
        if told.skipped:
            self._cuts.append(
                Degradation(
                    DegradationCode.PARTITIONS_CUT,
                    f"{told.skipped} {told.what} of {dataset.name} were {_HOW[side]}, more than "
                    f"the event may name; [sparklineage] max_{told.what} sets how many.",
                    dataset.name,
                )
            )
        check = reconcile(expected, _seen(evidence))
        return replace(dataset, expected=expected, meant=told, check=check)

    def _locator(self, name: DatasetName) -> Callable[[str], Partition | None]:
        def located(location: str) -> Partition | None:
            found = self._rules.resolve(name._replace(name=location))
            if found is not None and found[0] == name and found[1].values:
                return found[1]
            base, partition = split_path(location)
            return partition if partition.values and base == name.name.rstrip("/") else None

        return located

    def degradations(self) -> list[Degradation]:
        """Say what could not be said, or be bound to a dataset."""
        return [
            *self._cuts,
            *(
                Degradation(
                    DegradationCode.DECLARATION_UNBOUND,
                    f"The table {table} is declared, and Spark reported no dataset of that name.",
                )
                for table in self._expectations.unbound_tables()
            ),
        ]


def _seen(evidence: Evidence) -> Seen | None:
    """Give the partitions that were touched: observed ones, else those of reported locations."""
    if evidence.observed:
        subset = evidence.subset
        return Seen(subset.dimensions, subset.partitions) if subset else None
    partitions = located(evidence)
    if partitions is None:
        return None
    labels = dict.fromkeys(label for p in partitions for label, _ in p.values)
    return Seen(tuple(Dimension.of(label) for label in labels), partitions)
