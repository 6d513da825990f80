"""Whether a dataset has a column, as far as the history knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

_LISTED = 20
_COLUMNS = """
SELECT DISTINCT out_column AS name FROM columns
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
UNION
SELECT DISTINCT in_column FROM columns
WHERE in_namespace = $namespace AND in_name = $name AND in_column IS NOT NULL
ORDER BY name
"""


def check_column(history: Rows, dataset: DatasetName, column: str) -> None:
    """Refuse a column that no run wrote or read; where no column is known, any may be there.

    It goes through all columns of all runs: to be asked where an answer is empty.

    :raises HistoryError: there is no such column; says which there are
    """
    known = [row["name"] for row in history.rows(_COLUMNS, dataset._asdict())]
    if not known or column in known:
        return
    near = difflib.get_close_matches(column, known, 3) or known[:_LISTED]
    msg = f"No run wrote or read a column {column!r} of {dataset}."
    raise HistoryError(msg, f"Known: {len(known):,}, e.g. {', '.join(near)}.")
