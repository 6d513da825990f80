"""The column lineage that the listener said of one write, mended by what else is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage import columns
from airflow_provider_sparklineage.lineage.application.canonical_names import relocation
from airflow_provider_sparklineage.lineage.columns import ColumnLineage
from airflow_provider_sparklineage.model.datasets import is_database

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.application.untraced_columns import UntracedColumns
    from airflow_provider_sparklineage.lineage.columns import Column
    from airflow_provider_sparklineage.model.datasets import DatasetName


class UnreadableColumnsError(Exception):
    """Raised when a facet of column lineage is none; the message is a sentence that says why."""


class ReportedColumns:
    """Reads what the listener says of columns; knows the schemas of all datasets so far."""

    def __init__(self) -> None:
        self._schemas: dict[DatasetName, frozenset[str]] = {}

    def learn(self, action: Action) -> None:
        """Remember the columns of the datasets of an action."""
        for dataset in (*action.inputs, *action.outputs):
            if schema := dataset.column_names:
                self._schemas[dataset.name] = frozenset(schema)

    def of(self, dataset: DatasetName) -> frozenset[str]:
        """Give the columns of a dataset; none where they are not known."""
        return self._schemas.get(dataset, frozenset())

    def said(
        self, action: Action, output: ActionDataset, untraced: Iterable[UntracedColumns]
    ) -> ColumnLineage:
        """Read the column lineage of one write.

        :param untraced: what was observed of columns that the listener does not know
        :raise UnreadableColumnsError: if the facet cannot be read
        """
        facet = output.facets.get("columnLineage")
        try:
            said = columns.decode(facet, relocation(action)) if facet else ColumnLineage()
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            msg = (
                f"The column lineage that the listener reported for {output.name} cannot be read: "
                f"{error}."
            )
            raise UnreadableColumnsError(msg) from error
        said = columns.metadata_columns_removed(columns.restored(said, untraced), self._has_column)
        return columns.unsure_identities(said, is_database)

    def _has_column(self, column: Column) -> bool:
        schema = self._schemas.get(column.dataset)
        if schema is None:
            return True
        return column.field in schema or column.field.partition(".")[0] in schema
