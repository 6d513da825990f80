"""Which rows of the tables new events affect: SQL for both engines, so that they always agree.

1. *Affected* runs are those that new events name. The first steps, which look at each run alone,
   give the rows of these runs in ``runs``, ``accesses`` and ``columns`` from all of their facts.
2. The other steps look at each dataset alone, and nearly always at each cell (partition) alone: at
   a whole dataset only if an access of more than one partition was written, or if its partitions
   have different dimensions, before the merge or after it. They give the rows of the datasets and
   cells that an affected run wrote, and the reads of the affected runs, from the accesses that
   these rows depend on. A read changes no version, and no version that another run got.
3. The rows that the affected runs, datasets and cells have in the tables are replaced by these
   rows.

Runs whose events are forgotten are affected, too. The datasets of an affected run before the merge
are those that its facts name, with the facts that are forgotten now.

An engine (:mod:`.merging`, :mod:`.spark.building`) gives each view of this module its name, runs
the steps in between, and replaces the rows.
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_sparklineage.history.engines.layouts import DATASET, columns_of, same
from airflow_provider_sparklineage.history.tables import (
    ACCESSES,
    BINDINGS,
    BINDINGS_BY_RUN,
    CHANGES,
    CHANGES_BY_RUN,
    COLUMNS,
    RUNS,
    Table,
)

OF_RUNS = ("runs", "winners", "accesses", "columns")
"""The steps that look at each run alone."""
RENAMED = {"runs": "new_runs", "accesses": "new_accesses", "columns": "new_columns"}
"""The names that the results of these steps have, when later steps read others by their names."""
BY_RUN = {CHANGES_BY_RUN: CHANGES, BINDINGS_BY_RUN: BINDINGS}
"""Tables that have the rows of another table."""


_OLD_RUNS = "run_id, state, started, ended, is_time_certain"


class View(NamedTuple):
    """A query, and the name under which later queries read its rows.

    :param is_kept: whether several queries read its rows, so that they should be computed once
    """

    name: str
    sql: str
    is_kept: bool = True


AFFECTED = View("affected", "SELECT DISTINCT run_id FROM fresh_facts")
"""The runs that new events name, from ``fresh_facts``, the facts of the new events."""

NAMED = (
    View(
        "named",
        "SELECT a.namespace, a.name, a.cell, BOOL_OR(a.side = 'write') AS is_written "
        "FROM facts AS f, UNNEST(f.accesses) AS t(a) GROUP BY a.namespace, a.name, a.cell",
    ),
    View(
        "datasets",
        "SELECT namespace, name, BOOL_OR(is_written) AS is_written FROM named "
        "GROUP BY namespace, name",
    ),
)
"""The cells and the datasets that affected runs name, from ``facts``, all facts of these runs."""

_SHAPE = "a.namespace, a.name, a.side, a.extent, a.cell, a.dims"
_OLD_AND_NEW = (
    f"SELECT {_SHAPE} FROM stored_accesses AS a "
    f"SEMI JOIN datasets AS d ON {same('a', 'd', *DATASET)} "
    f"UNION ALL SELECT {_SHAPE} FROM new_accesses AS a"
)
_IS_COARSE = f"SEMI JOIN coarse AS c ON {same('d', 'c', *DATASET)}"

ACCESSED = (
    View(
        "all_accesses",
        f"SELECT {columns_of(ACCESSES, 'a')} FROM stored_accesses AS a "
        f"SEMI JOIN datasets AS d ON {same('a', 'd', *DATASET)} "
        "ANTI JOIN affected AS f ON a.run_id = f.run_id "
        f"UNION ALL SELECT {columns_of(ACCESSES)} FROM new_accesses",
        is_kept=False,
    ),
    # Before the merge or after it: a write of all that is taken back affects all cells, too.
    View(
        "coarse",
        f"SELECT namespace, name FROM ({_OLD_AND_NEW}) AS o GROUP BY namespace, name HAVING "
        "COUNT(DISTINCT COALESCE(dims, '')) FILTER (WHERE cell IS NOT NULL) > 1 OR "
        "BOOL_OR(side = 'write' AND extent <> 'none' AND (extent <> 'partition' OR cell IS NULL))",
    ),
    View("whole", f"SELECT d.namespace, d.name FROM datasets AS d {_IS_COARSE} WHERE d.is_written"),
    View(
        "cells",
        f"SELECT d.namespace, d.name, d.cell FROM named AS d "
        f"ANTI JOIN coarse AS c ON {same('d', 'c', *DATASET)} WHERE d.is_written",
    ),
    # An access counts if it is of an affected run, of a whole dataset or cell to be replaced,
    # or a write that a read of an affected run may have got.
    View(
        "accesses",
        f"SELECT {columns_of(ACCESSES, 'a')} FROM all_accesses AS a "
        f"LEFT JOIN (SELECT d.*, TRUE AS is_coarse FROM datasets AS d {_IS_COARSE}) AS b "
        f"ON {same('a', 'b', *DATASET)} "
        f"LEFT JOIN named AS n ON {same('a', 'n', *DATASET, 'cell')} "
        "WHERE a.run_id IN (SELECT run_id FROM affected) OR CASE WHEN b.is_coarse "
        "THEN b.is_written OR a.side = 'write' "
        "ELSE n.is_written IS NOT NULL AND (n.is_written OR a.side = 'write') END",
    ),
)
"""The datasets and cells (``whole``, ``cells``) whose rows in ``changes`` and ``bindings`` are
replaced, and the ``accesses`` that these rows depend on; from ``stored_accesses``, which has those
of the named datasets before."""

RAN = (
    View(
        "old_runs",
        f"SELECT {_OLD_RUNS} FROM stored_runs WHERE run_id IN "
        "(SELECT run_id FROM accesses UNION SELECT run_id FROM affected)",
    ),
    View(
        "runs",
        f"SELECT {_OLD_RUNS} FROM old_runs AS r ANTI JOIN affected AS f ON r.run_id = f.run_id "
        f"UNION ALL SELECT {_OLD_RUNS} FROM new_runs",
        is_kept=False,
    ),
)
"""The runs of ``accesses``, of which steps use few columns; from ``stored_runs``."""


def new_rows(table: Table) -> str:
    """Give SQL for the rows that come into a table."""
    if table.name in RENAMED:
        return f"SELECT {columns_of(table, 'r')} FROM {RENAMED[table.name]} AS r"
    rows = f"SELECT {columns_of(table, 'r')} FROM {BY_RUN.get(table, table).name} AS r"
    return f"{rows} WHERE {is_replaced(table)}"


def is_replaced(table: Table) -> str:
    """Give the SQL condition that the row ``r`` of a table is to be replaced by new rows."""
    if table in (RUNS, ACCESSES, COLUMNS):
        return _is_affected("run_id")
    replaced = (
        f"EXISTS (SELECT 1 FROM whole AS w WHERE {same('r', 'w', *DATASET)}) "
        f"OR EXISTS (SELECT 1 FROM cells AS w WHERE {same('r', 'w', *DATASET, 'cell')})"
    )
    if table in (BINDINGS, BINDINGS_BY_RUN):
        return f"({replaced} OR {_is_affected('reader_run_id')})"
    return f"({replaced})"


def _is_affected(column: str) -> str:
    return f"r.{column} IN (SELECT run_id FROM affected)"
