"""What is there that was made of a partition, or of a column of it, and what to run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries.answers import (
    Dataset,
    Impact,
    Reason,
    of_tables,
    values_of,
)
from airflow_provider_sparklineage.history.queries.columns import check_column
from airflow_provider_sparklineage.history.queries.content import content
from airflow_provider_sparklineage.history.queries.datasets import cell_of
from airflow_provider_sparklineage.history.queries.downstream import (
    Reading,
    Readings,
    add_reading,
    links_of,
    results,
)
from airflow_provider_sparklineage.history.queries.frontier import (
    REPLACING,
    UNCERTAIN,
    found_by,
    meets,
    within,
)
from airflow_provider_sparklineage.history.queries.plan import plan_for
from airflow_provider_sparklineage.history.queries.reasons import reasons_of
from airflow_provider_sparklineage.history.queries.unwritten import (
    Part,
    unwritten,
    with_unwritten,
)
from airflow_provider_sparklineage.history.queries.walk import breadth_first, hops
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.answers import Plan
    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.history.queries.walk import Level, Node

_OF_DATASET = "namespace = $namespace AND name = $name"
# Of a read of all, the versions that it found of what is asked about; none, and nobody wrote any.
_READINGS = f"""
WITH versions AS (
    SELECT c.*, CASE WHEN c.cell IS NULL THEN (
        SELECT min(x.valid_from) FROM changes AS x
        WHERE x.namespace = $namespace AND x.name = $name AND x.cell = $cell
            AND x.mode IN {REPLACING} AND (x.valid_from > c.valid_from
                OR (x.valid_from = c.valid_from AND x.run_id > c.run_id))
    ) END AS without_cell_from
    FROM changes AS c WHERE {_OF_DATASET} AND ($cell IS NULL
        OR (c.cell IS NOT NULL AND {meets("c.cell", "$cell")})
        OR (c.cell IS NULL AND (c.extent <> 'range' OR {within("$cell", "c")})))
), whole AS (
    SELECT b.*, r.ended FROM (SELECT * FROM bindings WHERE {_OF_DATASET}) AS b
    JOIN runs AS r ON r.run_id = b.reader_run_id WHERE b.extent <> 'partition'
)
SELECT b.reader_run_id, b.read_at, b.version_run_id,
    COALESCE(b.evidence, '') NOT IN {UNCERTAIN} AS is_certain
FROM bindings AS b
WHERE {_OF_DATASET} AND b.extent = 'partition' AND ($cell IS NULL OR {meets("b.cell", "$cell")})
UNION ALL
SELECT b.reader_run_id, b.read_at, c.run_id,
    b.extent = 'all' AND ($cell IS NULL OR c.run_id IS NOT NULL)
FROM whole AS b LEFT JOIN versions AS c ON {found_by("b", "c")}
    AND (c.without_cell_from IS NULL OR c.without_cell_from > b.read_at)
WHERE ($cell IS NULL OR b.extent <> 'range' OR {within("$cell", "b")})
    AND ($cell IS NULL OR c.run_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM versions))
"""


def impact(
    history: Rows,
    dataset: DatasetName,
    partition: str | None = None,
    column: str | None = None,
    as_of: datetime | None = None,
    depth: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    is_planned: bool = True,
) -> Impact:
    """Give all that is there and was made of a partition, by whichever of its versions.

    What was made of a version that has been replaced since is in it, if that is there: it goes
    through versions that are not there any more. Of a column it goes along the columns that were
    made of it; column None is a condition of all of them, or columns that are not known. The plan
    of a partition has also what is due, is not there and would be made of it (:mod:`.unwritten`).

    :param partition: None: all of them
    :param as_of: only what was made of the versions that were there then
    :param progress: is called with each depth and the number of hops until then
    :param is_planned: False: the hops alone, for who needs no plan
    :raises HistoryError: there is no such partition or column, or there are too many hops
    """
    cell = cell_of(history, dataset, partition)
    readings = _readings(history, dataset, cell, column, as_of)
    is_of_column = column is not None
    found = breadth_first(
        links_of(history, readings, is_of_column=is_of_column),
        lambda level: results(history, level, is_of_column=is_of_column),
        depth,
        1,
        progress,
    )
    if column is not None and not found:
        check_column(history, dataset, column)
    there = {
        node: one
        for node, one in found.items()
        if one.valid_to is None and not _is_asked(node, dataset, cell)
    }
    listed = hops(history, there)
    if not is_planned:
        return Impact(tuple(listed))
    asked = Reason(Dataset(*dataset), values_of(cell), () if column is None else (column,))
    affected = _affected(there)
    plan = plan_for(history, affected, reasons_of(history, found, affected, asked))
    if cell is not None:
        parts = _parts(there, plan) | {Part(dataset, cell): 0}
        plan = with_unwritten(plan, unwritten(history, parts))
    return Impact(tuple(listed), plan)


def _parts(there: Level, plan: Plan) -> dict[Part, int]:
    """Give the partitions that a plan writes again, and the first wave that can read each."""
    waves = {step.run_id: step.wave for step in plan.steps}
    waves |= {one.run_id: one.wave for one in plan.by_hand}
    return {
        Part(DatasetName(*node[:2]), node.cell): waves[node.run_id] + 1
        for node in there
        if node.cell is not None and node.run_id in waves
    }


def _readings(
    history: Rows,
    dataset: DatasetName,
    cell: str | None,
    column: str | None,
    as_of: datetime | None,
) -> Readings:
    readings: Readings = {}
    wanted = None
    if as_of is not None:
        there = content(history, dataset, cell, of_tables(as_of))
        wanted = {row["run_id"] for row in there} or {None}
    for row in history.rows(_READINGS, {**dataset._asdict(), "cell": cell}):
        if wanted is None or row["version_run_id"] in wanted:
            reading = Reading(row["reader_run_id"], row["read_at"], *dataset, column)
            add_reading(readings, reading, row["version_run_id"], row["is_certain"])
    return readings


def _is_asked(node: Node, dataset: DatasetName, cell: str | None) -> bool:
    if node[:2] != dataset:
        return False
    return cell is None or node.cell is None or _meet(node.cell, cell)


def _meet(one: str, other: str) -> bool:
    values = values_of(one) or {}
    others = values_of(other) or {}
    return all(others.get(label, value) == value for label, value in values.items())


def _affected(there: Level) -> dict[str, Any]:
    return {node.run_id: found.at for node, found in there.items() if node.run_id}
