"""Whether a dataset has a column, as far as the history knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries.frontier import lists, table_of
from airflow_provider_sparklineage.model.exceptions import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

_LISTED = 20
_WRITTEN = f"""
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")})
SELECT 1 FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
WHERE c.out_namespace = $namespace AND c.out_name = $name AND c.out_column = $column LIMIT 1
"""
_COLUMNS = """
SELECT DISTINCT out_column AS name FROM columns
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
UNION
SELECT DISTINCT in_column FROM columns
WHERE in_namespace = $namespace AND in_name = $name AND in_column IS NOT NULL
ORDER BY name
"""


def is_written(
    history: Rows, dataset: DatasetName, column: str, versions: Iterable[tuple[str | None, Any]]
) -> bool:
    """Whether one of these versions, each by its run and when it ended, has sources of a column.

    Conditions of all columns are no sign of one: they feed each that anybody may name.
    """
    asked = {**lists(("run_id", "ended"), versions), **dataset._asdict(), "column": column}
    return bool(history.rows(_WRITTEN, asked))


def check_column(history: Rows, dataset: DatasetName, column: str) -> None:
    """Refuse a column that no run names; where no column is known, any may be there.

    A column that is made of nothing (a constant) is none that a run names: all that is known
    of it are the conditions of all columns, which would be the answer to a wrong name as well.

    It goes through all columns of all runs: to be asked where an answer is empty.

    :raises UnknownNameError: there is no such column; says which there are
    """
    known = [row["name"] for row in history.rows(_COLUMNS, dataset._asdict())]
    if not known or column in known:
        return
    near = difflib.get_close_matches(column, known, 3) or known[:_LISTED]
    msg = f"No run names a column {column!r} of {dataset}."
    raise UnknownNameError(msg, f"Known: {len(known):,}, e.g. {', '.join(near)}.")
