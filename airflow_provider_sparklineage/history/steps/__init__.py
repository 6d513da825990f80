"""The steps from facts to tables: SQL, one ``SELECT`` a file, for every engine.

They are in DuckDB's dialect, in that part of it that sqlglot gives Spark one to one. A step reads
``facts`` and what the steps before it have made, each under its own name. No step sorts what it
gives; an engine does when it writes a table (:attr:`.tables.Table.sorted_by`). They grow linearly
with what is read and written: rows are joined by equality (of dataset, cell and epoch), and times
are compared among those few that are left.
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_sparklineage.history.tables import TABLES, Table
from airflow_provider_sparklineage.model.terms import Frozen

_FOLDER = Path(__file__).parent
_TABLES = {table.name: table for table in TABLES}


class Step(Frozen, frozen=True):
    """A query, and the name under which later steps read what it gives.

    :param name: of its file, too
    """

    name: str

    @property
    def sql(self) -> str:
        """The query, in DuckDB's dialect."""
        return (_FOLDER / f"{self.name}.sql").read_text(encoding="utf-8")

    @property
    def table(self) -> Table | None:
        """The table of the history that it makes; None: only later steps read it."""
        return _TABLES.get(self.name)


STEPS = tuple(
    Step(name)
    for name in (
        *("runs", "winners", "accesses", "columns", "writes", "covered", "ranged", "changes"),
        *("timeline", "beyond", "bindings", "changes_by_run", "bindings_by_run"),
    )
)
"""All steps in an order in which each finds what it reads."""
