"""Writes facts to files with DuckDB, before a build brings them into tables (:mod:`.building`).

DuckDB writes one file while Python makes the next lines. Column lineage that several lines share is
parsed once, which saves half of the time.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    copy,
    count_of,
    create_view,
    literal,
    scan_of,
)
from airflow_provider_sparklineage.history.tables import FACTS, TEXT, Column
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    import duckdb

    from airflow_provider_sparklineage.history.facts import Line


class FactsFile(Frozen, frozen=True):
    """A file of facts that a build may add to the store.

    :param file: path of the Parquet file on this machine
    :param since: events in the file that are older are ignored; None if no event is ignored
    """

    file: str
    since: datetime | None

    @property
    def scan(self) -> str:
        """The call of DuckDB's ``read_parquet`` that reads the file."""
        return scan_of([self.file], "file_row_number = true")


def new_facts(
    connection: duckdb.DuckDBPyConnection,
    known: Sequence[str],
    files: Sequence[FactsFile],
    scratch: Path,
) -> tuple[int, list[Path]]:
    """Find the events that are new to the store; if several files have an event, use the first.

    :param known: the store's files of facts, on this machine
    :param files: the files that may have new events
    :param scratch: folder in which files with new events are written
    :return: the number of new events, and Parquet files with the facts of these events alone
    """
    if not files:
        return 0, []
    create_view(connection, FACTS, known, "known")
    connection.execute(
        "CREATE TABLE ids (file INTEGER, place BIGINT, event_id VARCHAR, event_time TIMESTAMP)"
    )
    for number, one in enumerate(files):
        connection.execute(
            f"INSERT INTO ids SELECT {number}, file_row_number, event_id, event_time FROM "
            f"{one.scan} WHERE event_id IS NOT NULL AND event_time >= COALESCE(?, event_time)",
            [one.since and one.since.replace(tzinfo=None)],
        )
    connection.execute(
        "CREATE TABLE fresh AS SELECT file, place FROM (SELECT *, row_number() OVER "
        "(PARTITION BY event_id ORDER BY file, place) AS nth FROM ids) "
        "WHERE nth = 1 AND event_id NOT IN "
        "(SELECT event_id FROM known SEMI JOIN ids USING (event_id))"
    )
    query = "SELECT file, count(*) FROM fresh GROUP BY ALL ORDER BY ALL"
    counts = connection.execute(query).fetchall()
    added = []
    for number, count in counts:
        one = files[number]
        if Path(one.file).parent == scratch and count_of(connection, one.scan) == count:
            added.append(Path(one.file))  # this build wrote the file, and all of its events are new
            continue
        added.append(scratch / f"added-{number:05}.parquet")
        places = f"SELECT place FROM fresh WHERE file = {number}"
        rows = f"{one.scan} WHERE file_row_number IN ({places})"
        copy(connection, f"SELECT * EXCLUDE (file_row_number) FROM {rows}", added[-1])
    return sum(count for _, count in counts), added


_CHUNK = 32 << 20  # bytes of lines for one file; the memory in use is a few times that
_SHORTEST = 4 << 20  # least limit for the longest line, in bytes; DuckDB takes memory for two such
_OFTEN = 1000  # events between two calls of `progress`


def stage(
    connection: duckdb.DuckDBPyConnection,
    lines: Iterable[Line],
    scratch: Path,
    progress: Callable[[int], None] | None,
) -> tuple[list[Path], int]:
    """Write lines of facts to new Parquet files in the folder ``scratch``.

    :param progress: a function that is called with the number of lines so far
    :return: the files, and the number of lines that DuckDB could not parse, and that are in no file
    """
    cursor, count = connection.cursor(), 0
    files: list[Path] = []
    written: list[Future[int]] = []
    with ThreadPoolExecutor(1, "sparklineage-history") as pool:
        for heads, columns in _chunks(lines, progress):
            count += len(heads)
            if written:
                written[-1].result()  # so that only two chunks are in memory
            files.append(scratch / f"facts-{len(files):05}.parquet")
            written.append(pool.submit(_write, cursor, heads, columns, files[-1]))
    if progress:
        progress(count)
    return files, count - sum(one.result() for one in written)


def _chunks(
    lines: Iterable[Line], progress: Callable[[int], None] | None
) -> Iterator[tuple[list[bytes], dict[bytes, bytes]]]:
    """Divide the lines into groups: the lines of a group are written to one file.

    :param progress: a function that is called with the number of lines so far
    :return: for each group, its lines, which have a checksum in place of their column lineage; and
        the texts of their column lineage, by checksum
    """
    heads: list[bytes] = []
    columns: dict[bytes, bytes] = {}
    size = 0
    for count, line in enumerate(lines, 1):
        text, checksum = line.columns
        heads.append(b'%b,"columns_id":"%b"}' % (line.head, checksum))
        columns[checksum] = text
        # Counted for each line: the join in DuckDB repeats the columns in each row.
        size += len(line.head) + len(text)
        if size >= _CHUNK:
            yield heads, columns
            heads, columns, size = [], {}, 0
        if progress and count % _OFTEN == 0:
            progress(count)
    if heads:
        yield heads, columns


_ID = Column("columns_id", TEXT, "Checksum of the columns.")
_HEAD = (*(one for one in FACTS.columns if one.name != "columns"), _ID)
_COLUMNS = (_ID, *(one for one in FACTS.columns if one.name == "columns"))


def _write(
    connection: duckdb.DuckDBPyConnection,
    heads: list[bytes],
    columns: dict[bytes, bytes],
    file: Path,
) -> int:
    """Write a group of lines to a Parquet file; give the number of lines that could be parsed.

    :param heads: the lines, which have a checksum in place of their column lineage
    :param columns: the texts of the lines' column lineage, by checksum
    """
    head, shared = file.with_suffix(".heads"), file.with_suffix(".columns")
    texts = [b'{"columns_id":"%b","columns":%b}' % one for one in columns.items()]
    names = ", ".join(f'"{one.name}"' for one in FACTS.columns)
    # With ignore_errors, a line that cannot be parsed becomes a row of nulls.
    query = (
        f"SELECT {names} FROM {_json_lines(head, heads, _HEAD)} "
        f"LEFT JOIN {_json_lines(shared, texts, _COLUMNS)} USING (columns_id) "
        "WHERE event_id IS NOT NULL AND run_id IS NOT NULL AND event_time IS NOT NULL"
    )
    count = copy(connection, query, file)
    head.unlink()
    shared.unlink()
    return count


def _json_lines(file: Path, lines: list[bytes], columns: Sequence[Column]) -> str:
    """Write lines to a file, and give the call of DuckDB's ``read_json`` that reads it.

    :param lines: JSON objects
    :param columns: the keys of these objects that the call reads, with their types
    """
    file.write_bytes(b"\n".join(lines))
    types = ", ".join(f"'{one.name}': '{one.type}'" for one in columns)
    longest = max(_SHORTEST, *map(len, lines)) + 1
    return (
        f"read_json({literal(file)}, format = 'newline_delimited', columns = {{{types}}}, "
        f"ignore_errors = true, maximum_object_size = {longest})"
    )
