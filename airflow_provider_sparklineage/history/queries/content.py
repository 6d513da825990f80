"""Which versions are the content of a partition, or of a dataset, at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries.answers import of_tables
from airflow_provider_sparklineage.history.queries.frontier import (
    REMOVING,
    REPLACING,
    meets,
    within,
)

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

# What is written to more than a cell is no content of a cell that was replaced since.
_CONTENT = """
SELECT c.run_id, {own} AS cell, c.valid_from, c.valid_to, c.extent,
    c.extent IN ('partition', 'all') AND (c.uncertain_from IS NULL
        OR c.uncertain_from > COALESCE($as_of, TIMESTAMP '9999-12-31')) AS is_certain
FROM changes AS c
WHERE c.namespace = $namespace AND c.name = $name AND c.mode NOT IN {removing}
    AND ($as_of IS NULL OR c.valid_from <= $as_of)
    AND (c.valid_to IS NULL OR c.valid_to > $as_of)
    {condition}
"""
_OF_CELL = f"""
AND ((c.cell IS NOT NULL AND {meets("c.cell", "$cell")})
    OR (c.cell IS NULL AND (c.extent <> 'range' OR {within("$cell", "c")})
        AND NOT EXISTS (
            SELECT 1 FROM changes AS x
            WHERE x.namespace = $namespace AND x.name = $name AND x.cell = $cell
                AND x.mode IN {REPLACING} AND ($as_of IS NULL OR x.valid_from <= $as_of)
                AND (x.valid_from > c.valid_from
                    OR (x.valid_from = c.valid_from AND x.run_id > c.run_id)))))
"""
_OF_ALL_SQL = _CONTENT.format(own="c.cell", removing=REMOVING, condition="")
_OF_CELL_SQL = _CONTENT.format(own="COALESCE(c.cell, $cell)", removing=REMOVING, condition=_OF_CELL)


def content(
    history: Rows, dataset: DatasetName, cell: str | None, as_of: datetime | None
) -> list[dict[str, Any]]:
    """Give what a cell has at a time, or all of a dataset: run_id, cell, valid_from, is_certain.

    :param as_of: None: what is there
    """
    asked = {**dataset._asdict(), "as_of": of_tables(as_of)}
    if cell is None:
        return history.rows(_OF_ALL_SQL, asked)
    return history.rows(_OF_CELL_SQL, {**asked, "cell": cell})
