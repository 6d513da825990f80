"""What the listener reports of a write's columns, corrected by Spark's own plan of it.

Where the plan could be followed to its end it decides: it has what the listener loses (scalar
subqueries, what MERGE and UPDATE set, the columns of a FILTER clause, columns beyond Python and
ROLLUP) and lacks what the listener has wrong. Elsewhere both are reported. A transformation that
both have keeps the listener's description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.decoding import is_nameless
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
    union,
    unite_into,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.lineage.columns.edges import Edges
    from airflow_provider_sparklineage.lineage.columns.plans import PlannedColumns


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
        name: _corrected(reported.fields.get(name, {}), ours.get(name, {}), decides=name in decided)
        for name in dict.fromkeys((*reported.fields, *ours))
    }
    theirs = reported.dataset
    if all(plan.is_whole for plan in planned):
        # Of what chooses rows anyway, the optimiser may know more: nulls are not joined by.
        theirs = {column: ts for column, ts in theirs.items() if column in rows}
    return ColumnLineage(
        {name: edges for name, edges in fields.items() if edges},
        _corrected(theirs, rows, decides=False),
    )


def _corrected(theirs: Edges, ours: Edges, *, decides: bool) -> Edges:
    """Give our edges with their descriptions; without deciding, theirs and what they lack."""
    found = {
        column: tuple(
            dict.fromkeys(same for t in ts for same in _described(t, theirs.get(column, ())))
        )
        for column, ts in ours.items()
    }
    return found if decides else union(theirs, found)


def _described(ours: Transformation, theirs: Collection[Transformation]) -> list[Transformation]:
    """Give a transformation with the listener's descriptions of it, if there are any."""
    same = [
        ours._replace(description=t.description)
        for t in theirs
        if t[:2] == ours[:2] and t.description and not is_nameless(t.description)
    ]
    return same or [ours]
