"""The column lineage that the listener reported of one write, corrected by Spark's own plan of it.

Where the plan could be followed to its end it decides: it has what the listener loses (scalar
subqueries, what MERGE and UPDATE set, the columns of a FILTER clause, columns beyond Python and
ROLLUP) and lacks what the listener has wrong. Elsewhere both are reported. A transformation that
both have keeps the listener's description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from airflow_provider_sparklineage.lineage.application.repairs import input_names
from airflow_provider_sparklineage.lineage.columns.decoding import (
    decode,
    is_nameless,
    metadata_columns_removed,
    unsure_identities,
)
from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage, union, unite_into
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget, SpentError
from airflow_provider_sparklineage.model.datasets import DatasetName, is_database

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.columns.edges import Column, Edges, Transformation
    from airflow_provider_sparklineage.lineage.columns.plans.commands import PlannedColumns


class UnreadableColumnsError(Exception):
    """Raised when a facet of column lineage cannot be decoded; the message is a sentence."""


MAX_REMEMBERED_BYTES = 4 * 1024 * 1024
"""Of facets whose column lineage is remembered."""


class _Decoded(NamedTuple):
    """The column lineage of a facet.

    :param names: the datasets that the names in it were taken for
    """

    lineage: ColumnLineage
    names: Mapping[DatasetName, DatasetName]


class ReportedColumns:
    """Decodes the column lineage of writes; knows the schemas of all datasets so far."""

    def __init__(self) -> None:
        self._schemas: dict[DatasetName, tuple[str, ...]] = {}
        self._decoded: dict[bytes, _Decoded] = {}
        self._room = MAX_REMEMBERED_BYTES

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
                reported = self._read(bytes(facet), input_names(action), budget)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            msg = (
                f"The column lineage that the listener reported for {output.name} cannot be read: "
                f"{error}."
            )
            raise UnreadableColumnsError(msg) from error
        found = corrected(reported, planned) if planned else reported
        real = metadata_columns_removed(found, self._has_column)
        return unsure_identities(real, is_database)

    def _read(
        self, facet: bytes, stands_for: Callable[[DatasetName], DatasetName], budget: Budget
    ) -> ColumnLineage:
        """Decode a facet, or remember it: a loop writes the same again and again."""
        known = self._decoded.get(facet)
        if known and all(stands_for(name) == found for name, found in known.names.items()):
            return known.lineage
        names: dict[DatasetName, DatasetName] = {}

        def noted(name: DatasetName) -> DatasetName:
            found = names[name] = stands_for(name)
            return found

        lineage = decode(facet, noted, budget)
        size = 0 if known else len(facet)
        if size > self._room:
            self._decoded.clear()
            self._room = MAX_REMEMBERED_BYTES
        if size <= self._room:
            self._room -= size
            self._decoded[facet] = _Decoded(lineage, names)
        return lineage

    def _has_column(self, column: Column) -> bool:
        schema = self._schemas.get(column.dataset)
        if schema is None:
            return True
        return column.field in schema or column.field.partition(".")[0] in schema


# --- corrected by plans ---------------------------------------------------------------------------


def corrected(reported: ColumnLineage, planned: Collection[PlannedColumns]) -> ColumnLineage:
    """Correct what the listener reports.

    :param planned: of all plans that the write has: a command may run another
    """
    decided = frozenset[str]().union(
        *(plan.lineage.fields.keys() | plan.made_of for plan in planned)
    )
    decided -= frozenset().union(*(plan.incomplete for plan in planned))
    ours: dict[str, dict[Column, tuple[Transformation, ...]]] = {}
    rows: dict[Column, tuple[Transformation, ...]] = {}
    for plan in planned:
        unite_into(rows, plan.lineage.dataset)
        for name, edges in plan.lineage.fields.items():
            unite_into(ours.setdefault(name, {}), edges)
    fields = {
        name: _corrected_edges(
            reported.fields.get(name, {}), ours.get(name, {}), decides=name in decided
        )
        for name in dict.fromkeys((*reported.fields, *ours))
    }
    theirs = reported.dataset
    if all(plan.is_whole for plan in planned):
        # Of what chooses rows anyway, the optimiser may know more: nulls are not joined by.
        theirs = {column: ts for column, ts in theirs.items() if column in rows}
    return ColumnLineage(
        {name: edges for name, edges in fields.items() if edges},
        _corrected_edges(theirs, rows, decides=False),
    )


def _corrected_edges(theirs: Edges, ours: Edges, *, decides: bool) -> Edges:
    """Give our edges with their descriptions; without deciding, theirs and what they lack."""
    found = {
        column: tuple(
            dict.fromkeys(
                same for t in ts for same in _with_descriptions(t, theirs.get(column, ()))
            )
        )
        for column, ts in ours.items()
    }
    return found if decides else union(theirs, found)


def _with_descriptions(
    ours: Transformation, theirs: Collection[Transformation]
) -> list[Transformation]:
    """Give a transformation with the listener's descriptions of it, if there are any."""
    same = [
        ours._replace(description=t.description)
        for t in theirs
        if t[:2] == ours[:2] and t.description and not is_nameless(t.description)
    ]
    return same or [ours]
