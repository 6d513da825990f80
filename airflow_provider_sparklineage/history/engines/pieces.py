"""Divides the rows of each table among files, of which a build with new events rewrites a few.

A file is a :class:`.store.Piece`. First the rows of ``accesses``, ``changes`` and ``bindings`` are
divided among buckets by dataset, so that a build finds the rows of a dataset without reading all.
A bucket has the datasets of a range in alphabetical order: with ranges a query skips most files by
their least and greatest names, and with hashes of the names it would read all. Then the rows of a
bucket are divided by time, because new rows are nearly always of the latest time, so that even of a
dataset that all runs read, a build rewrites the last file only.

A piece that has grown too large is cut at some of its times. The buckets stay as they are until
the tables are made anew (:meth:`Sizes.is_outgrown`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import copy, count_of, scan_of
from airflow_provider_sparklineage.history.store import Layout, Piece
from airflow_provider_sparklineage.history.tables import TABLES
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table

FIRST = "-infinity"
"""The start of the first piece of a bucket."""


class Sizes(Frozen, frozen=True):
    """How large buckets and pieces become.

    :param bucket: number of accesses for which there is a bucket
    :param buckets: greatest number of buckets
    :param piece: greatest number of rows of a piece. Each build rewrites the last pieces; each
        query opens all of them
    """

    bucket: int = 1_000_000
    buckets: int = 256
    piece: int = 400_000

    def spread(self, accesses: int) -> int:
        """Give the number of buckets for a number of accesses, a power of two."""
        wanted = 1
        while wanted < self.buckets and wanted * self.bucket < accesses:
            wanted *= 2
        return wanted

    def is_outgrown(self, layout: Layout, accesses: int) -> bool:
        """Whether there are so many more or fewer accesses now that buckets must be chosen anew."""
        return not layout.spread <= 2 * self.spread(accesses) <= 4 * layout.spread


def key(row: str) -> str:
    """Give SQL for the text of a row's dataset by which datasets are ordered.

    :param row: name of a row with namespace and name
    """
    return f"(COALESCE({row}.namespace, '') || chr(10) || COALESCE({row}.name, ''))"


def time_of(table: Table, row: str) -> str:
    """Give SQL for the time of a row of a table; ``infinity`` if it is null."""
    return f"COALESCE({row}.{table.time}, TIMESTAMP 'infinity')"


def columns_of(table: Table) -> str:
    """Give SQL for the list of a table's columns."""
    return ", ".join(f'"{column.name}"' for column in table.columns)


class Pieces:
    """Writes the pieces of a build to its temporary folder, and then puts them into the store."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, building: Building, sizes: Sizes
    ) -> None:
        self._connection, self._building, self._sizes = connection, building, sizes
        self._files: list[Path] = []

    def write(self, table: Table, query: str, bucket: int = 0, start: str = FIRST) -> list[Piece]:
        """Write rows of a bucket to as many files as are needed; [] if there are no rows.

        :param query: gives the rows, in any order
        :param start: where the first piece starts
        """
        file = self._building.scratch / "piece.parquet"
        query = f"SELECT {columns_of(table)} FROM ({query}) ORDER BY {', '.join(table.sorted_by)}"
        return self.cut(table, file, copy(self._connection, query, file), bucket, start)

    def cut(
        self, table: Table, file: Path, rows: int, bucket: int = 0, start: str = FIRST
    ) -> list[Piece]:
        """Make pieces of a file with sorted rows, which is removed or becomes the only piece.

        :param rows: number of its rows
        """
        starts = self._starts(table, file) if rows > self._sizes.piece else [start]
        if len(starts) > 1:
            # So late a row is in the last piece, in which null times are, too.
            ends = [*(f"< TIMESTAMP '{one}'" for one in starts[1:]), "IS NOT NULL"]
            pieces = []
            for at, end in zip((start, *starts[1:]), ends, strict=True):
                time = time_of(table, "r")
                query = f"SELECT * FROM {scan_of([file])} AS r "
                query += f"WHERE {time} >= TIMESTAMP '{at}' AND {time} {end}"
                part = file.with_name(f"{table.name}.part.parquet")
                order = ", ".join(table.sorted_by)
                count = copy(self._connection, f"{query} ORDER BY {order}", part)
                pieces.append(self._piece(table, part, count, bucket, at))
            file.unlink()
            return pieces
        if not rows:
            file.unlink()
            return []
        return [self._piece(table, file, rows, bucket, start)]

    def put(self) -> None:
        """Put all pieces into the store."""
        self._building.put(self._building.tables_folder, self._files)

    def _piece(self, table: Table, file: Path, rows: int, bucket: int, start: str) -> Piece:
        named = file.with_name(f"{table.name}.{len(self._files):05}.parquet")
        self._files.append(file.rename(named))
        return Piece(f"{self._building.tables_folder}/{named.name}", rows, start, bucket)

    def _starts(self, table: Table, file: Path) -> list[str]:
        """Give the times at which a file is cut, the least of all first.

        The pieces become four fifths as large as they may be, so that late rows find room.
        """
        fill = max(1, self._sizes.piece * 4 // 5)
        rows = self._connection.execute(
            f"SELECT CAST(min(time) AS VARCHAR) FROM (SELECT time, "
            f"CAST(sum(n) OVER (ORDER BY time) - n AS BIGINT) // {fill} AS nth FROM "
            f"(SELECT {time_of(table, 'r')} AS time, count(*) AS n FROM {scan_of([file])} AS r "
            f"GROUP BY ALL)) GROUP BY nth ORDER BY nth"
        ).fetchall()
        return [start for (start,) in rows]


def starts_of(connection: duckdb.DuckDBPyConnection, spread: int) -> list[str]:
    """Choose the first datasets of buckets so that each has about as many accesses as the others.

    :param spread: the wanted number of buckets; there are fewer if few datasets have most accesses
    """
    rows = connection.execute(
        f"SELECT min(key) FROM (SELECT key, "
        f"CAST((sum(n) OVER (ORDER BY key) - n) * {spread} // (sum(n) OVER ()) AS INTEGER) AS nth "
        f"FROM (SELECT {key('a')} AS key, count(*) AS n FROM accesses AS a GROUP BY ALL)) "
        "GROUP BY nth ORDER BY nth"
    ).fetchall()
    return ["", *(start for (start,) in rows[1:])]


def create_buckets(
    connection: duckdb.DuckDBPyConnection, datasets: str, buckets: Sequence[str]
) -> None:
    """Create a table ``buckets`` with the columns of a query, and the bucket of each dataset.

    :param datasets: a query that gives each dataset once, with namespace and name
    :param buckets: the first datasets of the buckets
    """
    connection.execute("CREATE TABLE starts (bucket INTEGER, start VARCHAR)")
    connection.executemany("INSERT INTO starts VALUES (?, ?)", [*enumerate(buckets)])
    connection.execute(
        f"CREATE TABLE buckets AS SELECT d.*, s.bucket FROM ({datasets}) AS d "
        f"ASOF JOIN starts AS s ON {key('d')} >= s.start"
    )


def same(one: str, other: str, *columns: str) -> str:
    """Give the SQL condition that two rows have the same values, or null, in some columns."""
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in columns)


DATASET = ("namespace", "name")


def make(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    files: Mapping[str, Path],
    sizes: Sizes,
) -> Layout:
    """Make a new layout of whole tables, and put its pieces into the store.

    :param connection: has a view of each table
    :param files: the file of each table, by its name; its rows are sorted, unless the table is
        :attr:`.tables.Table.is_by_dataset`
    """
    spread = sizes.spread(count_of(connection, "accesses"))
    buckets = starts_of(connection, spread)
    create_buckets(connection, "SELECT DISTINCT namespace, name FROM accesses", buckets)
    pieces, writing = {}, Pieces(connection, building, sizes)
    for table in TABLES:
        file = files[table.name]
        if table.is_by_dataset:
            pieces[table.name] = _divided(connection, writing, table, file, len(buckets))
        else:
            rows = count_of(connection, table.name)
            pieces[table.name] = writing.cut(table, file, rows)
    writing.put()
    return Layout(spread, buckets, pieces)


def _divided(
    connection: duckdb.DuckDBPyConnection, writing: Pieces, table: Table, file: Path, buckets: int
) -> list[Piece]:
    if buckets == 1:
        return writing.write(table, f"SELECT * FROM {table.name}")
    # Sorted by bucket, so that the rows of each bucket are found quickly.
    by_bucket = file.with_name("divided.parquet")
    query = (
        f"SELECT t.*, b.bucket FROM {table.name} AS t JOIN buckets AS b "
        f"ON {same('t', 'b', *DATASET)} ORDER BY b.bucket, {table.time}"
    )
    copy(connection, query, by_bucket)
    pieces = [
        piece
        for bucket in range(buckets)
        for piece in writing.write(
            table, f"SELECT * FROM {scan_of([by_bucket])} WHERE bucket = {bucket}", bucket
        )
    ]
    by_bucket.unlink()
    return pieces
