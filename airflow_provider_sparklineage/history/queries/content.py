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

_CONTENT = """
SELECT c.run_id, {own} AS cell, c.valid_from, c.cell IS NULL AS is_coarse,
    c.extent IN ('partition', 'all') AND (c.uncertain_from IS NULL
        OR c.uncertain_from > COALESCE($as_of, TIMESTAMP '9999-12-31')) AS is_certain
FROM changes AS c
WHERE c.namespace = $namespace AND c.name = $name AND c.mode NOT IN {removing}
    AND ($as_of IS NULL OR c.valid_from <= $as_of)
    AND (c.valid_to IS NULL OR c.valid_to > $as_of)
    AND {condition}
"""
_OF_ALL = _CONTENT.format(own="c.cell", removing=REMOVING, condition="TRUE")
_OF_CELL = _CONTENT.format(
    own="COALESCE(c.cell, $cell)",
    removing=REMOVING,
    condition=f"""(c.cell = $cell
    OR (c.cell IS NOT NULL AND {meets("c.cell", "$cell")})
    OR (c.cell IS NULL AND (c.extent <> 'range' OR {within("$cell", "c")})))""",
)
_REPLACED = f"""
SELECT valid_from, run_id FROM changes
WHERE namespace = $namespace AND name = $name AND cell = $cell AND mode IN {REPLACING}
    AND ($as_of IS NULL OR valid_from <= $as_of)
ORDER BY valid_from DESC, run_id DESC LIMIT 1
"""


def content(
    history: Rows, dataset: DatasetName, cell: str | None, as_of: datetime | None
) -> list[dict[str, Any]]:
    """Give what a cell has at a time, or all of a dataset: run_id, cell, valid_from, is_certain.

    :param as_of: None: what is there
    """
    asked = {**dataset._asdict(), "as_of": of_tables(as_of)}
    if cell is None:
        return history.rows(_OF_ALL, asked)
    asked["cell"] = cell
    rows = history.rows(_OF_CELL, asked)
    if any(row["is_coarse"] for row in rows):
        # What was written to more than a cell is no content of it if it was replaced since.
        for last in history.rows(_REPLACED, asked):
            since = (last["valid_from"], last["run_id"])
            rows = [
                row
                for row in rows
                if not row["is_coarse"] or (row["valid_from"], row["run_id"]) > since
            ]
    return rows
