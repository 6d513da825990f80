"""Lines of facts to Parquet files, as they come: DuckDB reads some while the next are made."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import literal, text_literal
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import duckdb


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
    lines: Iterable[bytes],
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
        self._lines: list[bytes] = []
        self._size = 0
        self._pending: Future[int] | None = None

    def add(self, line: bytes) -> None:
        """Take a line."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Have a file made of the lines so far, when the one before it is done."""
        self.wait()
        if self._lines:
            number = len(self.files)
            self.files.append(self._scratch / f"facts-{number:05}.parquet")
            longest = max(_SHORTEST, *map(len, self._lines)) + 1
            lines = b"".join(self._lines)
            self._pending = self.pool.submit(self._write, lines, longest, self.files[-1])
            self._lines, self._size = [], 0

    def wait(self) -> None:
        """Wait for the file that is being made; raises what went wrong."""
        if self._pending is not None:
            self.rows += self._pending.result()
            self._pending = None

    def _write(self, lines: bytes, longest: int, file: Path) -> int:
        text = file.with_suffix(".ndjson")
        text.write_bytes(lines)
        del lines
        columns = ", ".join(f"'{one.name}': '{one.type}'" for one in FACTS.columns)
        # A line that is none becomes a row of nulls.
        self._connection.execute(
            f"COPY (SELECT * FROM read_json({literal(text)}, format = 'newline_delimited', "
            f"columns = {{{columns}}}, ignore_errors = true, maximum_object_size = {longest}) "
            f"WHERE event_id IS NOT NULL AND run_id IS NOT NULL AND event_time IS NOT NULL) "
            f"TO {text_literal(str(file))} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
        )
        text.unlink()
        found = self._connection.execute(
            f"SELECT count(*) FROM read_parquet({literal(file)})"
        ).fetchone()
        return int(found[0]) if found else 0
