"""Writes the pieces of the tables, and makes a layout (:mod:`.layouts`), with DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    copy,
    count_of,
    create_view,
    scan_of,
    text_literal,
)
from airflow_provider_sparklineage.history.engines.layouts import (
    DATASET,
    FIRST,
    columns_of,
    key,
    same,
    starts,
)
from airflow_provider_sparklineage.history.store import Layout, Piece
from airflow_provider_sparklineage.history.tables import ACCESSES, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.engines.layouts import Sizes
    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table


def time_of(table: Table, row: str) -> str:
    """Give SQL for the time of a row of a table; ``infinity`` if it is null."""
    return f"COALESCE({row}.{table.time}, TIMESTAMP 'infinity')"


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
        number = next(self._building.numbers)
        named = file.with_name(f"{table.name}.{number:05}.parquet")
        self._files.append(file.rename(named))
        return Piece(f"{self._building.tables_folder}/{named.name}", rows, start, bucket)

    def _starts(self, table: Table, file: Path) -> list[str]:
        """Give the times at which a file is cut, the least of all first."""
        rows = self._connection.execute(
            f"SELECT CAST(min(time) AS VARCHAR) FROM (SELECT time, "
            f"CAST(sum(n) OVER (ORDER BY time) - n AS BIGINT) // {self._sizes.fill} AS nth FROM "
            f"(SELECT {time_of(table, 'r')} AS time, count(*) AS n FROM {scan_of([file])} AS r "
            f"GROUP BY ALL)) GROUP BY nth ORDER BY nth"
        ).fetchall()
        return [start for (start,) in rows]


def starts_of(connection: duckdb.DuckDBPyConnection, spread: int) -> list[str]:
    """Give the first datasets of buckets (:func:`.layouts.starts`)."""
    return ["", *(start for (start,) in connection.execute(starts(spread)).fetchall()[1:])]


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


def make(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    files: Mapping[str, Path],
    sizes: Sizes,
    accesses: int,
) -> Layout:
    """Make a new layout of whole tables, and put its pieces into the store.

    :param connection: has a view of each table
    :param files: the file of each table, by its name; its rows are sorted, unless the table is
        :attr:`.tables.Table.is_by_dataset`
    :param accesses: number of accesses for which there are buckets
    """
    spread = sizes.spread(accesses)
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


def divided_anew(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    layout: Layout,
    sizes: Sizes,
    accesses: int,
) -> Layout:
    """Divide the rows of tables among other buckets, and put the new pieces into the store.

    The tables that are not :attr:`.tables.Table.is_by_dataset` stay as they are.

    :param layout: the layout of the tables before
    :param accesses: number of accesses for which there are buckets
    """
    spread = sizes.spread(accesses)
    files = building.store.local(piece.file for piece in layout.pieces[ACCESSES.name])
    create_view(connection, ACCESSES, files)
    buckets = starts_of(connection, spread)
    pieces, writing = dict(layout.pieces), Pieces(connection, building, sizes)
    for table in TABLES:
        if table.is_by_dataset:
            pieces[table.name] = [
                piece
                for bucket, query in enumerate(_queries(building, layout, table, buckets))
                if query
                for piece in writing.write(table, query, bucket)
            ]
    writing.put()
    return Layout(spread, buckets, pieces)


def _queries(
    building: Building, layout: Layout, table: Table, buckets: Sequence[str]
) -> Iterator[str]:
    """Give for each of the new buckets SQL for its rows; empty if it has none."""
    for start, end in zip(buckets, (*buckets[1:], None), strict=True):
        # Only the old buckets that have datasets of the new one.
        ends = (*layout.buckets[1:], None)
        old = {
            number
            for number, (first, last) in enumerate(zip(layout.buckets, ends, strict=True))
            if (end is None or first < end) and (last is None or last > start)
        }
        names = [piece.file for piece in layout.pieces[table.name] if piece.bucket in old]
        is_inside = f"{key('r')} >= {text_literal(start)}"
        is_inside += "" if end is None else f" AND {key('r')} < {text_literal(end)}"
        files = building.store.local(names)
        yield f"SELECT * FROM {scan_of(files)} AS r WHERE {is_inside}" if files else ""
