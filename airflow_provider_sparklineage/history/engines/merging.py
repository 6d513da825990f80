"""Merges a change of the facts into the tables of a store, at the cost of the rows it changes.

:mod:`.affected` tells which rows are replaced, and the steps give the rows that replace them. Then
each piece (:mod:`.layouts`) whose rows are other ones than before is written anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.affected import (
    ACCESSED,
    AFFECTED,
    BY_RUN,
    NAMED,
    OF_RUNS,
    RAN,
    RENAMED,
    View,
    is_replaced,
    new_rows,
)
from airflow_provider_sparklineage.history.engines.duckdb import (
    copy,
    count_of,
    create_view,
    scan_of,
)
from airflow_provider_sparklineage.history.engines.layouts import (
    DATASET,
    FIRST,
    LAST,
    columns_of,
    same,
)
from airflow_provider_sparklineage.history.engines.pieces import Pieces, create_buckets, time_of
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.store import Layout, Piece
from airflow_provider_sparklineage.history.tables import (
    ACCESSES,
    COLUMNS,
    FACTS,
    RUNS,
    TABLES,
)
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.engines.layouts import Sizes
    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table


class ChangedFacts(Frozen, frozen=True):
    """The facts of a store that a build changes.

    :param known: the store's files of facts, on this machine
    :param new: the files with the facts of new events, on this machine
    :param forgotten: SQL condition that a known fact is in the tables and will be no longer; empty
        if there are none
    :param kept: SQL condition that a fact is of an event that is not forgotten
    """

    known: Sequence[str]
    new: Sequence[Path]
    forgotten: str
    kept: str


def merge(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    layout: Layout,
    facts: ChangedFacts,
    sizes: Sizes,
) -> Layout:
    """Merge a change of the facts into the tables, and put the new pieces into the store.

    :param layout: the layout of the tables before
    :return: the layout of the tables with the new pieces
    """
    return _Merge(connection, building, layout, sizes).layout_with(facts)


_FEW = 4  # places of a bucket


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

    def layout_with(self, facts: ChangedFacts) -> Layout:
        self._gather_facts(facts)
        for step in STEPS:
            if step.name in OF_RUNS:
                self._keep(step.name, step.sql)
        for name in RENAMED:
            self._rename(name, RENAMED[name])
        self._gather_accesses()
        self._execute(f"CREATE VIEW stored_runs AS FROM {self._stored(RUNS)}")
        self._create(*RAN)
        for step in STEPS:
            if step.name not in OF_RUNS and step.table not in BY_RUN:
                self._keep(step.name, step.sql)
        pieces = {table.name: self._merged(table) for table in TABLES}
        self._writing.put()
        return Layout(self._layout.spread, self._layout.buckets, pieces)

    # --- what the new events affect ---------------------------------------------------------------

    def _gather_facts(self, changed: ChangedFacts) -> None:
        """Create a view ``facts`` of the facts of affected runs, and what they name.

        The names are those of forgotten facts, too.
        """
        create_view(self._connection, FACTS, map(str, changed.new), "fresh_facts")
        self._create(AFFECTED)
        if changed.known and changed.forgotten:
            scan = scan_of(changed.known, "union_by_name = true")
            self._execute(
                f"INSERT INTO affected SELECT DISTINCT run_id FROM {scan} WHERE "
                f"{changed.forgotten} AND run_id NOT IN (FROM affected)"
            )
        self._gather_facts_of_runs(changed.known)
        self._create(*NAMED)
        self._execute("ALTER VIEW facts RENAME TO facts_before_and_after")
        self._execute(f"CREATE VIEW facts AS FROM facts_before_and_after WHERE {changed.kept}")

    def _gather_facts_of_runs(self, known: Sequence[str]) -> None:
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

    def _gather_accesses(self) -> None:
        """Create ``whole``, ``cells`` and ``accesses``, and ``buckets`` of the named datasets."""
        query = "SELECT namespace, name FROM datasets"
        create_buckets(self._connection, query, self._layout.buckets)
        self._execute(f"CREATE VIEW stored_accesses AS FROM {self._stored(ACCESSES)}")
        *tables, accesses = ACCESSED
        self._create(*tables)
        self._keep(accesses.name, accesses.sql)

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
                query += f"WHERE NOT ({is_replaced(table)})"
            merged[bucket, start] = self._writing.write(table, query, bucket, start)
        return [piece for place in sorted(merged, key=_order) for piece in merged[place]]

    def _place(self, table: Table, pieces: Sequence[Piece]) -> None:
        """Create a table ``places`` of the places of pieces, and ``placed`` of the new rows.

        ``near`` has the places whose pieces can have new rows. These are nearly always one or two
        of a bucket: then a join by the bucket alone is quicker than one that sorts all new rows.
        """
        self._execute("CREATE OR REPLACE TABLE places (bucket INTEGER, start TIMESTAMP)")
        places = {(piece.bucket, piece.start) for piece in pieces}
        buckets = range(len(self._layout.buckets) if table.is_by_dataset else 1)
        places |= {(bucket, FIRST) for bucket in buckets}
        self._connection.executemany("INSERT INTO places VALUES (?, ?::TIMESTAMP)", [*places])
        rows = new_rows(table)
        time = time_of(table, "r")
        self._execute(
            "CREATE OR REPLACE TABLE near AS WITH t AS "
            f"(SELECT min({time}) AS first, max({time}) AS last FROM ({rows}) AS r) "
            "SELECT p.* FROM (SELECT *, lead(start) OVER (PARTITION BY bucket ORDER BY start) "
            "AS next FROM places) AS p JOIN t ON p.start <= t.last "
            "AND (p.next IS NULL OR p.next > t.first)"
        )
        many = f"(SELECT bucket FROM near GROUP BY bucket HAVING count(*) > {_FEW})"
        placed = self._placed(table, rows, is_near=not count_of(self._connection, many))
        self._execute(f"CREATE OR REPLACE TABLE placed AS {placed}")

    def _placed(self, table: Table, query: str, *, is_near: bool = False) -> str:
        """Give SQL that adds to rows the bucket and the start of their pieces.

        :param is_near: whether the places are among the few in ``near``
        """
        rows = f"SELECT r.*, 0 AS bucket FROM ({query}) AS r"
        if table.is_by_dataset:
            rows = (
                f"SELECT r.*, b.bucket FROM ({query}) AS r "
                f"JOIN buckets AS b ON {same('r', 'b', *DATASET)}"
            )
        is_in = f"ON r.bucket = p.bucket AND {time_of(table, 'r')} >= p.start"
        if is_near:
            is_in += f" AND COALESCE({time_of(table, 'r')} < p.next, TRUE)"
            return f"SELECT r.*, p.start FROM ({rows}) AS r JOIN near AS p {is_in}"
        return f"SELECT r.*, p.start FROM ({rows}) AS r ASOF JOIN places AS p {is_in}"

    def _changed(self, table: Table) -> list[tuple[int, str]]:
        """Give the places of the pieces whose rows are other ones than before.

        The rows to replace and the new rows of a piece are compared by their number and by the sum
        of their checksums, in any order.
        """
        old = f"SELECT r.* FROM {self._old(table)} AS r WHERE {is_replaced(table)}"
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

    def _old(self, table: Table) -> str:
        """Give SQL for the stored rows of a table among which those to be replaced are."""
        if table in (RUNS, COLUMNS):
            # Rows of a run are where its end was.
            runs = self._placed(table, "FROM old_runs SEMI JOIN affected USING (run_id)")
            places = self._execute(
                f"SELECT DISTINCT bucket, CAST(start AS VARCHAR) FROM ({runs})"
            ).fetchall()
            pieces = self._layout.pieces[table.name]
            return self._rows_of(table, [p for p in pieces if (p.bucket, p.start) in places])
        return self._stored(BY_RUN.get(table, table))

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

    def _create(self, *views: View) -> None:
        for name, query, is_kept in views:
            self._execute(f"CREATE {'TABLE' if is_kept else 'VIEW'} {name} AS {query}")

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
    return bucket, start != FIRST, start == LAST, start
