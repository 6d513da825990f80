"""The subsets that the SQL of an application's actions names: filters, static partitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import EVERYTHING, disjunction

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.subset import Condition


class Statements:
    """The statements that read and wrote each dataset; an action without SQL has an empty one."""

    def __init__(self) -> None:
        self._reading: dict[DatasetName, set[str]] = {}
        self._writing: dict[DatasetName, set[str]] = {}

    def learn(self, action: Action) -> None:
        """Remember the statement of an action; what it was to write counts if it is complete."""
        for dataset in action.inputs:
            self._reading.setdefault(dataset.name, set()).add(action.sql)
        for dataset in action.outputs if action.state is ActionState.COMPLETE else ():
            self._writing.setdefault(dataset.name, set()).add(action.sql)

    def filter(self, dataset: LineageDataset) -> Condition | None:
        """Read the filter of the statements that read a dataset, if each reads it and no other.

        The columns of a view are not those of the datasets below it, so the table in the statement
        must have a name of the dataset.
        """
        names = {n.name for n in (dataset.name, *dataset.symlinks)}
        tables = sorted(names | {re.split("[./]", n.rstrip("/"))[-1] for n in names})
        conditions: list[Condition] = []
        for statement in sorted(self._reading.get(dataset.name, ())):
            known = (_where(statement, table) for table in tables)
            found = next((c for c in known if c is not None), None)
            if found is None:
                return None
            conditions.append(found)
        united = disjunction(conditions) if conditions else EVERYTHING
        return None if united == EVERYTHING else united

    def partitions(self, name: DatasetName) -> frozenset[Partition] | None:
        """Read the static partitions of the statements that wrote a dataset, if each has some."""
        statements = self._writing.get(name, ())
        parts = [predicates.static_partition(s) if s else () for s in statements]
        return frozenset(map(Partition, parts)) if parts and all(parts) else None


def _where(statement: str, table: str) -> Condition | None:
    return predicates.where(statement, table) if statement else None
