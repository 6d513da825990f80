"""The column lineage that the listener reported of one write, with what else is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage import columns
from airflow_provider_sparklineage.lineage.application.canonical_names import input_names
from airflow_provider_sparklineage.lineage.columns import ColumnLineage
from airflow_provider_sparklineage.lineage.columns.correction import corrected
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget, SpentError
from airflow_provider_sparklineage.model.datasets import is_database

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.columns import Column
    from airflow_provider_sparklineage.lineage.columns.plans import PlannedColumns
    from airflow_provider_sparklineage.model.datasets import DatasetName


class UnreadableColumnsError(Exception):
    """Raised when a facet of column lineage cannot be decoded; the message is a sentence."""


class ReportedColumns:
    """Decodes the column lineage of writes; knows the schemas of all datasets so far."""

    def __init__(self) -> None:
        self._schemas: dict[DatasetName, tuple[str, ...]] = {}

    def learn(self, action: Action) -> None:
        """Remember the columns of the datasets of an action."""
        for dataset in (*action.inputs, *action.outputs):
            if dataset.column_names:
                self._schemas[dataset.name] = dataset.column_names

    def schema(self, dataset: DatasetName) -> tuple[str, ...]:
        """Give the columns of a dataset; none where they are not known."""
        return self._schemas.get(dataset, ())

    def of_write(
        self,
        action: Action,
        output: ActionDataset,
        planned: Collection[PlannedColumns] = (),
        budget: Budget = UNLIMITED,
    ) -> ColumnLineage:
        """Give the column lineage of one write.

        :param planned: what Spark's own plan of the write says
        :raise UnreadableColumnsError: if the facet cannot be read
        :raise SpentError: if there is no time left, or the facet was not kept
        """
        if "columnLineage" in output.left_out:
            msg = "what the listener reports of it is too large to be read"
            raise SpentError(msg)
        facet = output.facets.get("columnLineage")
        try:
            reported = ColumnLineage()
            if facet:
                reported = columns.decode(facet, input_names(action), budget)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            msg = (
                f"The column lineage that the listener reported for {output.name} cannot be read: "
                f"{error}."
            )
            raise UnreadableColumnsError(msg) from error
        found = corrected(reported, planned) if planned else reported
        real = columns.metadata_columns_removed(found, self._has_column)
        return columns.unsure_identities(real, is_database)

    def _has_column(self, column: Column) -> bool:
        schema = self._schemas.get(column.dataset)
        if schema is None:
            return True
        return column.field in schema or column.field.partition(".")[0] in schema
