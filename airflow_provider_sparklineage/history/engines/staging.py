"""Lines of facts to Parquet files, as they come: DuckDB reads some while the next are made.

Columns that several lines have are read once, which is half of the time.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import PARQUET, literal, text_literal
from airflow_provider_sparklineage.history.tables import FACTS, TEXT, Column
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.facts import Line

_CHUNK = 32 << 20  # bytes of lines in a file: what is in memory at once is a few times that
_SHORTEST = 4 << 20  # bytes of the longest line; DuckDB takes memory for two such
_OFTEN = 1000  # events between two calls of who shows progress


class Staged(Frozen, frozen=True):
    """What sources had.

    :param files: of Parquet, with facts
    :param unreadable: how many lines are not in them, as they were no facts
    """

    files: list[Path]
    lines: int
    unreadable: int


def staged(
    connection: duckdb.DuckDBPyConnection,
    lines: Iterable[Line],
    scratch: Path,
    progress: Callable[[int], None] | None,
) -> Staged:
    """Write lines of facts to files in a folder."""
    writer, count = _Writer(connection, scratch), 0
    with writer.pool:
        for line in lines:
            writer.add(line)
            count += 1
            if progress and count % _OFTEN == 0:
                progress(count)
        writer.flush()
        writer.wait()
    if progress:
        progress(count)
    return Staged(writer.files, count, count - writer.rows)


class _Writer:
    """Collects lines, and has another thread make a file of them when they are enough."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, scratch: Path) -> None:
        self.pool = ThreadPoolExecutor(1, "sparklineage-history")
        self.files: list[Path] = []
        self.rows = 0
        self._connection = connection.cursor()
        self._scratch = scratch
        self._heads: list[bytes] = []
        self._columns: dict[bytes, bytes] = {}
        self._size = 0
        self._pending: Future[int] | None = None

    def add(self, line: Line) -> None:
        """Take a line."""
        columns = line.columns
        self._heads.append(b'%b,"columns_id":"%b"}' % (line.head, columns.checksum))
        self._columns[columns.checksum] = columns.text
        # In DuckDB each line has its own again.
        self._size += len(line.head) + len(columns.text)
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Have a file made of the lines so far, when the one before it is done."""
        self.wait()
        if self._heads:
            columns = [b'{"columns_id":"%b","columns":%b}' % one for one in self._columns.items()]
            self.files.append(self._scratch / f"facts-{len(self.files):05}.parquet")
            self._pending = self.pool.submit(self._write, self._heads, columns, self.files[-1])
            self._heads, self._columns, self._size = [], {}, 0

    def wait(self) -> None:
        """Wait for the file that is being made; raises what went wrong."""
        if self._pending is not None:
            self.rows += self._pending.result()
            self._pending = None

    def _write(self, heads: list[bytes], columns: list[bytes], file: Path) -> int:
        head = _Text(file.with_suffix(".heads"), heads, _HEAD)
        shared = _Text(file.with_suffix(".columns"), columns, _COLUMNS)
        names = ", ".join(f'"{one.name}"' for one in FACTS.columns)
        # A line that is none becomes a row of nulls.
        query = (
            f"SELECT {names} FROM {head.scan} LEFT JOIN {shared.scan} USING (columns_id) "
            "WHERE event_id IS NOT NULL AND run_id IS NOT NULL AND event_time IS NOT NULL"
        )
        copied = self._connection.execute(
            f"COPY ({query}) TO {text_literal(str(file))} ({PARQUET})"
        ).fetchone()
        for text in (head, shared):
            text.file.unlink()
        return int(copied[0]) if copied else 0


_ID = Column("columns_id", TEXT, "Checksum of the columns.")
_HEAD = (*(one for one in FACTS.columns if one.name != "columns"), _ID)
_COLUMNS = (_ID, *(one for one in FACTS.columns if one.name == "columns"))


class _Text:
    """A file of lines of JSON, for DuckDB to read."""

    def __init__(self, file: Path, lines: list[bytes], columns: Sequence[Column]) -> None:
        self.file = file
        file.write_bytes(b"\n".join(lines))
        types = ", ".join(f"'{one.name}': '{one.type}'" for one in columns)
        longest = max(_SHORTEST, *map(len, lines)) + 1
        self.scan = (
            f"read_json({literal(file)}, format = 'newline_delimited', columns = {{{types}}}, "
            f"ignore_errors = true, maximum_object_size = {longest})"
        )
