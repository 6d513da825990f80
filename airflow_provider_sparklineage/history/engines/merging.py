"""Merges the facts of new events into the tables of a store, at the cost of the rows they change.

1. *Affected* runs are those that new events name. The first steps, which look at each run alone,
   give the rows of these runs in ``runs``, ``accesses`` and ``columns`` from all of their facts.
2. The other steps look at each dataset alone, and nearly always at each cell (partition) alone: at
   a whole dataset only if an access of more than one partition was written, or if its partitions
   have different dimensions. They give the rows of the datasets and cells that an affected run
   wrote, and the reads of the affected runs, from the accesses that these rows depend on. A read
   changes no version, and no version that another run got.
3. The rows that the affected runs, datasets and cells have in the tables are replaced by these
   rows, and each piece (:mod:`.pieces`) whose rows are other ones than before is written anew.

The datasets of an affected run before the merge are those that its facts name, as only
:func:`.building.build` forgets facts, and makes the tables anew then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    copy,
    create_view,
    scan_of,
)
from airflow_provider_sparklineage.history.engines.pieces import (
    DATASET,
    FIRST,
    Pieces,
    columns_of,
    create_buckets,
    same,
    time_of,
)
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.store import Layout, Piece
from airflow_provider_sparklineage.history.tables import (
    ACCESSES,
    BINDINGS,
    BINDINGS_BY_RUN,
    CHANGES,
    CHANGES_BY_RUN,
    COLUMNS,
    FACTS,
    RUNS,
    TABLES,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.engines.pieces import Sizes
    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table

_OF_RUNS = ("runs", "winners", "accesses", "columns")
"""The steps that look at each run alone."""
_BY_RUN = {CHANGES_BY_RUN: CHANGES, BINDINGS_BY_RUN: BINDINGS}
"""Tables that have the rows of another table."""
_DIVISION = "namespace, name, cell"


def merge(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    layout: Layout,
    known: Sequence[str],
    new: Sequence[Path],
    sizes: Sizes,
) -> Layout:
    """Merge the facts of new events into the tables, and put the new pieces into the store.

    :param layout: the layout of the tables before
    :param known: the store's files of facts, on this machine
    :param new: the files with the facts of the new events, on this machine
    :return: the layout of the tables with the new pieces
    """
    return _Merge(connection, building, layout, sizes).layout_with(known, new)


class _Merge:
    """A merge: the state is in views and tables of its connection, which each method names."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        building: Building,
        layout: Layout,
        sizes: Sizes,
    ) -> None:
        self._connection, self._building, self._layout = connection, building, layout
        self._writing = Pieces(connection, building, sizes)

    def layout_with(self, known: Sequence[str], new: Sequence[Path]) -> Layout:
        self._gather_facts(known, new)
        for step in STEPS:
            if step.name in _OF_RUNS:
                self._keep(step.name, step.sql)
        self._gather_datasets()
        self._gather_runs()
        for step in STEPS:
            if step.name not in _OF_RUNS and step.table not in _BY_RUN:
                self._keep(step.name, step.sql)
        pieces = {table.name: self._merged(table) for table in TABLES}
        self._writing.put()
        return Layout(self._layout.spread, self._layout.buckets, pieces)

    # --- what the new events affect ---------------------------------------------------------------

    def _gather_facts(self, known: Sequence[str], new: Sequence[Path]) -> None:
        """Create a view ``facts`` of all facts of affected runs."""
        create_view(self._connection, FACTS, map(str, new), "fresh_facts")
        self._execute("CREATE TABLE affected AS SELECT DISTINCT run_id FROM fresh_facts")
        # The other columns, which are long, are read only where there are such rows.
        places = self._execute(
            "SELECT filename, min(event_time)::TIMESTAMP, max(event_time)::TIMESTAMP FROM "
            f"{scan_of(known, 'union_by_name = true', 'filename = true')} "
            "SEMI JOIN affected USING (run_id) GROUP BY ALL"
        ).fetchall() if known else ()  # fmt: skip
        if not places:
            self._execute("CREATE VIEW facts AS FROM fresh_facts")
            return
        create_view(self._connection, FACTS, [file for file, *_ in places], "older")
        first, last = min(one for _, one, _ in places), max(one for *_, one in places)
        self._keep(
            "facts",
            "FROM fresh_facts UNION ALL FROM older SEMI JOIN affected USING (run_id) "
            f"WHERE event_time BETWEEN TIMESTAMP '{first}' AND TIMESTAMP '{last}'",
        )

    def _gather_datasets(self) -> None:
        """Find the rows to replace, and replace the view ``accesses`` by what they depend on.

        Tables ``whole`` and ``cells`` get the datasets and cells whose rows in ``changes`` and
        ``bindings`` are replaced.
        """
        self._rename("accesses", "new_accesses")
        self._execute(
            f"CREATE TABLE named AS SELECT {_DIVISION}, bool_or(side = 'write') AS is_written FROM "
            "(SELECT a.* FROM (SELECT unnest(accesses) AS a FROM facts)) GROUP BY ALL"
        )
        create_buckets(
            self._connection,
            "SELECT namespace, name, bool_or(is_written) AS is_written FROM named GROUP BY ALL",
            self._layout.buckets,
        )
        self._execute(
            f"CREATE VIEW all_accesses AS FROM {self._stored(ACCESSES)} AS a "
            f"SEMI JOIN buckets AS b ON {same('a', 'b', *DATASET)} "
            f"ANTI JOIN affected USING (run_id) SELECT {columns_of(ACCESSES)} "
            f"UNION ALL SELECT {columns_of(ACCESSES)} FROM new_accesses"
        )
        self._execute(
            "CREATE TABLE coarse AS SELECT namespace, name FROM all_accesses GROUP BY ALL "
            "HAVING count(DISTINCT COALESCE(dims, '')) FILTER (cell IS NOT NULL) > 1 OR "
            "bool_or(side = 'write' AND extent <> 'none' AND (extent <> 'partition' "
            "OR cell IS NULL))"
        )
        is_coarse = f"SEMI JOIN coarse AS c ON {same('d', 'c', *DATASET)}"
        self._execute(
            f"CREATE TABLE whole AS SELECT d.namespace, d.name FROM buckets AS d {is_coarse} "
            "WHERE d.is_written"
        )
        self._execute(
            f"CREATE TABLE cells AS SELECT {_DIVISION} FROM named AS d "
            f"ANTI JOIN coarse AS c ON {same('d', 'c', *DATASET)} WHERE d.is_written"
        )
        # An access counts if it is of an affected run, of a whole dataset or cell to be replaced,
        # or a write that a read of an affected run may have got.
        self._keep(
            "accesses",
            "SELECT a.* FROM all_accesses AS a "
            f"LEFT JOIN (SELECT d.*, TRUE AS is_coarse FROM buckets AS d {is_coarse}) AS b "
            f"ON {same('a', 'b', *DATASET)} "
            f"LEFT JOIN named AS n ON {same('a', 'n', *DATASET, 'cell')} "
            "WHERE a.run_id IN (FROM affected) OR CASE WHEN b.is_coarse "
            "THEN b.is_written OR a.side = 'write' "
            "ELSE n.is_written IS NOT NULL AND (n.is_written OR a.side = 'write') END",
        )

    def _gather_runs(self) -> None:
        """Replace the view ``runs`` by the runs of ``accesses``, of which steps use few columns."""
        self._rename("runs", "new_runs")
        self._rename("columns", "new_columns")
        columns = "run_id, state, started, ended, is_time_certain"
        self._execute(
            f"CREATE TABLE old_runs AS SELECT {columns} FROM {self._stored(RUNS)} "
            "WHERE run_id IN (SELECT run_id FROM accesses UNION FROM affected)"
        )
        self._execute(
            f"CREATE VIEW runs AS FROM old_runs ANTI JOIN affected USING (run_id) "
            f"UNION ALL SELECT {columns} FROM new_runs"
        )

    # --- the rows of a table ----------------------------------------------------------------------

    def _merged(self, table: Table) -> list[Piece]:
        """Write the pieces of a table whose rows change; give all pieces of the table."""
        pieces = self._layout.pieces[table.name]
        self._place(table, pieces)
        changed = self._changed(table)
        starts = {(piece.bucket, piece.start): piece for piece in pieces}
        merged = {place: [piece] for place, piece in starts.items() if place not in changed}
        for bucket, start in changed:
            place = f"bucket = {bucket} AND start = TIMESTAMP '{start}'"
            query = f"SELECT {columns_of(table)} FROM placed WHERE {place}"
            if piece := starts.get((bucket, start)):
                file = scan_of(self._building.store.local([piece.file]))
                query += f" UNION ALL SELECT {columns_of(table)} FROM {file} AS r "
                query += f"WHERE NOT ({self._is_replaced(table)})"
            merged[bucket, start] = self._writing.write(table, query, bucket, start)
        return [piece for place in sorted(merged, key=_order) for piece in merged[place]]

    def _place(self, table: Table, pieces: Sequence[Piece]) -> None:
        """Create a table ``places`` of the places of pieces, and ``placed`` of the new rows."""
        self._execute("CREATE OR REPLACE TABLE places (bucket INTEGER, start TIMESTAMP)")
        places = {(piece.bucket, piece.start) for piece in pieces}
        buckets = range(len(self._layout.buckets) if table.is_by_dataset else 1)
        places |= {(bucket, FIRST) for bucket in buckets}
        self._connection.executemany("INSERT INTO places VALUES (?, ?::TIMESTAMP)", [*places])
        rows = {RUNS: "new_runs", ACCESSES: "new_accesses", COLUMNS: "new_columns"}
        source = _BY_RUN.get(table, table)
        new = rows.get(source, source.name)
        replaced = "" if table in rows else f"WHERE {self._is_replaced(table)}"
        query = f"SELECT r.* FROM {new} AS r {replaced}"
        self._execute(f"CREATE OR REPLACE TABLE placed AS {self._placed(table, query)}")

    def _placed(self, table: Table, query: str) -> str:
        """Give SQL that adds to rows the bucket and the start of their pieces."""
        rows = f"SELECT r.*, 0 AS bucket FROM ({query}) AS r"
        if table.is_by_dataset:
            rows = (
                f"SELECT r.*, b.bucket FROM ({query}) AS r "
                f"JOIN buckets AS b ON {same('r', 'b', *DATASET)}"
            )
        return (
            f"SELECT r.*, p.start FROM ({rows}) AS r ASOF JOIN places AS p "
            f"ON r.bucket = p.bucket AND {time_of(table, 'r')} >= p.start"
        )

    def _changed(self, table: Table) -> list[tuple[int, str]]:
        """Give the places of the pieces whose rows are other ones than before.

        The rows to replace and the new rows of a piece are compared by their number and by the sum
        of their checksums, in any order.
        """
        old = f"SELECT r.* FROM {self._old(table)} AS r WHERE {self._is_replaced(table)}"
        rows = (("FROM placed", 1), (self._placed(table, old), -1))
        signed = " UNION ALL ".join(
            f"SELECT bucket, start, {sign} AS n, CAST(hash({columns_of(table)}) AS HUGEINT) AS sum "
            f"FROM ({query})"
            for query, sign in rows
        )
        return self._execute(
            f"SELECT bucket, CAST(start AS VARCHAR) FROM ({signed}) GROUP BY bucket, start "
            "HAVING sum(n) <> 0 OR sum(n * sum) <> 0 ORDER BY ALL"
        ).fetchall()

    def _is_replaced(self, table: Table) -> str:
        """Give the SQL condition that the row ``r`` of a table is to be replaced by new rows."""
        if table in (RUNS, ACCESSES, COLUMNS):
            return "r.run_id IN (FROM affected)"
        replaced = (
            f"EXISTS (FROM whole AS w WHERE {same('r', 'w', *DATASET)}) "
            f"OR EXISTS (FROM cells AS w WHERE {same('r', 'w', *DATASET, 'cell')})"
        )
        if table in (BINDINGS, BINDINGS_BY_RUN):
            return f"{replaced} OR r.reader_run_id IN (FROM affected)"
        return replaced

    def _old(self, table: Table) -> str:
        """Give SQL for the stored rows of a table among which those to be replaced are."""
        if table in (RUNS, COLUMNS):
            # Rows of a run are where its end was.
            places = self._execute(
                f"SELECT DISTINCT p.bucket, CAST(p.start AS VARCHAR) FROM (SELECT 0 AS bucket, * "
                f"FROM old_runs SEMI JOIN affected USING (run_id)) AS r ASOF JOIN places AS p "
                f"ON r.bucket = p.bucket AND {time_of(table, 'r')} >= p.start"
            ).fetchall()
            pieces = self._layout.pieces[table.name]
            return self._rows_of(table, [p for p in pieces if (p.bucket, p.start) in places])
        return self._stored(_BY_RUN.get(table, table))

    def _stored(self, table: Table) -> str:
        """Give SQL for the rows of a table: of tables by dataset, in the buckets that are named."""
        pieces = self._layout.pieces[table.name]
        if table.is_by_dataset:
            rows = self._execute("SELECT DISTINCT bucket FROM buckets").fetchall()
            buckets = {bucket for (bucket,) in rows}
            pieces = [piece for piece in pieces if piece.bucket in buckets]
        return self._rows_of(table, pieces)

    def _rows_of(self, table: Table, pieces: Sequence[Piece]) -> str:
        if pieces:
            return scan_of(self._building.store.local(piece.file for piece in pieces))
        nulls = ", ".join(f'CAST(NULL AS {one.type}) AS "{one.name}"' for one in table.columns)
        return f"(SELECT {nulls} WHERE FALSE)"

    # --- DuckDB -----------------------------------------------------------------------------------

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(statement)

    def _keep(self, name: str, query: str) -> None:
        """Write the rows of a query to a temporary file, and create a view of the file."""
        file = self._building.scratch / f"{name}.parquet"
        copy(self._connection, query, file)
        self._execute(f"CREATE VIEW {name} AS FROM {scan_of([file])}")

    def _rename(self, name: str, to: str) -> None:
        """Rename a view of :meth:`_keep` and its file, so that the name can be given again."""
        file = self._building.scratch / f"{name}.parquet"
        self._execute(f"DROP VIEW {name}")
        self._execute(
            f"CREATE VIEW {to} AS FROM {scan_of([file.rename(file.with_name(f'{to}.parquet'))])}"
        )


def _order(place: tuple[int, str]) -> tuple[int, bool, bool, str]:
    """Give the order of a piece in its table: by bucket, and then by time."""
    bucket, start = place
    return bucket, start != FIRST, start == "infinity", start
