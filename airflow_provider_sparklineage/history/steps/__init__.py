"""The steps from facts to tables: files of SQL, each with one ``SELECT``, for every engine.

The steps use the part of DuckDB's dialect that sqlglot translates to Spark one to one. A step reads
``facts`` and the results of the steps before it, each under the step's name. No step sorts its
rows; an engine sorts them when it writes a table (:attr:`.tables.Table.sorted_by`). The work of a
step grows linearly with the number of reads and writes: rows are joined by equality of dataset,
partition (*cell*) and *epoch*, the number of times that the partition was replaced before. Times
are compared only among the few rows that a join gives.

A step looks at each run alone, or at each dataset alone: no window or join has rows of two. Rows of
a dataset depend on rows of its other cells only where an access of more than one cell was written,
or where cells have different dimensions. Merging (:mod:`..engines.merging`) relies on this.
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_sparklineage.history.tables import TABLES, Table
from airflow_provider_sparklineage.model.terms import Frozen

_FOLDER = Path(__file__).parent
_TABLES = {table.name: table for table in TABLES}


class Step(Frozen, frozen=True):
    """A query, and the name under which later steps read its rows.

    :param name: also the name of its file, without ``.sql``
    :param sql: the query, in DuckDB's dialect
    :param table: the table of the history that the step makes; None if only later steps read its
        rows
    """

    name: str
    sql: str
    table: Table | None


STEPS = tuple(
    Step(name, (_FOLDER / f"{name}.sql").read_text(encoding="utf-8"), _TABLES.get(name))
    for name in (
        *("runs", "winners", "accesses", "columns", "writes", "covered", "ranged", "changes"),
        *("timeline", "beyond", "bindings", "changes_by_run", "bindings_by_run"),
    )
)
"""All steps in order: each step comes after the steps whose rows it reads."""
