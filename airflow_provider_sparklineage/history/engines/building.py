"""Builds the tables of a store with DuckDB: writes facts to files, and runs the steps on them.

1. Lines of facts become Parquet files: DuckDB writes one file while Python makes the next lines.
   Column lineage that several lines share is parsed once, which saves half of the time.
2. A query finds the facts that are new to the store.
3. If many builds have added files of facts to the store, or if events are to be forgotten, all
   facts are written into one file.
4. The steps make the tables from the facts, and the store publishes the tables.

Data that exceeds DuckDB's memory limit is written to the store's disk while the build runs.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    PARQUET,
    connect,
    create_view,
    failing,
    literal,
    text_literal,
)
from airflow_provider_sparklineage.history.sources import Reading, Source
from airflow_provider_sparklineage.history.steps import STEPS, Step
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import FACTS, TEXT, VERSION, Column
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    import duckdb

    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.store import Building


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
        return f"read_parquet({literal(self.file)}, file_row_number = true)"


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
        "WHERE nth = 1 AND event_id NOT IN (SELECT event_id FROM known)"
    )
    query = "SELECT file, count(*) FROM fresh GROUP BY ALL ORDER BY ALL"
    counts = connection.execute(query).fetchall()
    added = []
    for number, count in counts:
        one = files[number]
        if Path(one.file).parent == scratch and _count(connection, one.scan) == count:
            added.append(Path(one.file))  # this build wrote the file, and all of its events are new
            continue
        added.append(scratch / f"added-{number:05}.parquet")
        places = f"SELECT place FROM fresh WHERE file = {number}"
        rows = f"{one.scan} WHERE file_row_number IN ({places})"
        _copy(connection, f"SELECT * EXCLUDE (file_row_number) FROM {rows}", added[-1])
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
    count = _copy(connection, query, file)
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


_MEMORY = "500MB"  # DuckDB's limit; with Python and uncounted memory, a process stays below 1 GB

MAX_PARTS = 32
"""Number of parts of facts at which the next build writes all facts into one part.

Each build adds a part and reads the files of all parts; from an object store, the number of files
decides how long that takes. The tables are written anew by each build with new events in any case.
"""

UNREADABLE = "unreadable"
"""The key of :attr:`Built.skipped` for lines that DuckDB could not parse as facts."""


class Built(Frozen, frozen=True):
    """The result of a build.

    :param events: number of JSON documents read, also of those that are not events; a source that
        is a store counts with all its events
    :param new: number of events in the sources that were not in the store
    :param skipped: number of texts and files without facts, by reason
    :param rows: number of rows that each table has now; the key ``events`` has the number of facts
    :param seconds: duration of the build
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float


def build(
    store: Store,
    sources: Sequence[Source | Store],
    *,
    progress: Callable[[int], None] | None = None,
    keep: timedelta | None = None,
) -> Built:
    """Add the events of sources to a store; if there are new events, make the tables anew.

    The tables are also made anew if ``keep`` is given, or the store is new or of an older version.

    :param progress: a function that is called with the number of events so far
    :param keep: age from which events are forgotten for good: the store deletes them, and no later
        build of this store adds them again
    :raise HistoryError: if DuckDB is missing, another build runs, or the disk is full
    """
    begun = time.monotonic()
    others = [one for one in sources if isinstance(one, Store)]
    with store.building() as building, failing("built"):
        reading = Reading(building.marks)
        connection = connect(
            memory_limit=_MEMORY,
            temp_directory=str(building.scratch / "spilled"),
            preserve_insertion_order=False,  # which takes memory
        )
        lines = reading.lines(one for one in sources if not isinstance(one, Store))
        staged, unreadable = stage(connection, lines, building.scratch, progress)
        # Files that cannot be opened have the same key.
        counts = +reading.skipped + Counter({UNREADABLE: unreadable})
        skipped = {str(key): count for key, count in counts.items()}
        before, since = building.before, building.since(keep)
        files = [FactsFile(str(file), since) for file in staged]
        files += [one for other in others for one in _files_of(other, since)]
        known = _local(building, before.facts)
        count, new = new_facts(connection, known, files, building.scratch)
        if count or keep is not None or before.version < VERSION or not before.generation:
            if _is_compaction_due(connection, before.facts, known, since):
                create_view(connection, FACTS, [*known, *map(str, new)], "compacted")
                query = f"SELECT * FROM compacted {_where(since)}"
                whole = building.scratch / "compacted.parquet"
                _copy(connection, query, whole, ", ROW_GROUP_SIZE 4096")  # the rows are long
                parts = _put_facts(building, [whole])
            else:
                parts = {**before.facts, **_put_facts(building, new)}
            tables, rows = _tables(connection, building, parts, since)
            building.publish(parts, tables, rows, skipped, reading.marks, since)
        else:
            building.note(reading.marks, skipped)
            rows = before.rows
        connection.close()
    theirs = sum(other.manifest.rows.get("events", 0) for other in others)
    return Built(reading.events + theirs, count, skipped, rows, time.monotonic() - begun)


def _is_compaction_due(
    connection: duckdb.DuckDBPyConnection,
    parts: Mapping[str, Sequence[str]],
    files: Sequence[str],
    since: datetime | None,
) -> bool:
    """Whether this build has to write all facts of the store anew, into one part.

    It has to if the store has :data:`MAX_PARTS` parts (a part is the files that one build wrote),
    or if it has events older than ``since``.

    :param parts: names of the files of each part, by name of the part
    :param files: paths of the files of all parts, on this machine
    :param since: time before which events are forgotten; None if no event is forgotten
    """
    if len(parts) >= MAX_PARTS:
        return True
    if since is None:
        return False
    create_view(connection, FACTS, files, "held")
    older = f"SELECT 1 FROM held WHERE event_time < {_timestamp(since)} LIMIT 1"
    return connection.execute(older).fetchone() is not None


def _files_of(store: Store, since: datetime | None) -> list[FactsFile]:
    """Give the files of facts of another store, from which a build adds the events.

    :param since: time before which the build's own store forgets events; None if it forgets none.
        The later one of this time and the other store's is noted for each file
    """
    theirs = store.manifest
    starts = [one for one in (since, theirs.since) if one]
    return [
        FactsFile(file, max(starts, default=None))
        for names in theirs.facts.values()
        for file in store.local(names)
    ]


def _put_facts(building: Building, files: Sequence[Path]) -> dict[str, list[str]]:
    """Put files of facts into the store, as one part: a part is the files that one build wrote.

    :return: the names of the files in the store, by the name of the part; {} if there are no files
    """
    if not files:
        return {}
    return {building.facts_part: building.put(building.facts_folder, files)}


def _tables(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    parts: Mapping[str, Sequence[str]],
    since: datetime | None,
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Run all steps on the facts of the events that are not older than ``since``.

    :param parts: names of the files of the facts, by name of the part
    :return: for each table, the names of its files in the store; and for each table, the number of
        its rows. The second mapping has the number of facts too, with the key ``events``
    """
    create_view(connection, FACTS, _local(building, parts), "all_facts")
    connection.execute(f"CREATE VIEW facts AS SELECT * FROM all_facts {_where(since)}")
    rows = {"events": _count(connection, "facts")}
    files = {}
    for step in STEPS:
        file = _run(connection, building, step)
        if step.table is not None:
            rows[step.name] = _count(connection, step.name)
            files[step.name] = file
    # Only now: a later step reads the files of the steps before it.
    return {t: building.put(building.tables_folder, [f]) for t, f in files.items()}, rows


def _run(connection: duckdb.DuckDBPyConnection, building: Building, step: Step) -> Path:
    """Write the rows of a step to a file, and create a view of the file with the step's name.

    The rows are sorted if the step makes a table.

    :return: the path of the file
    """
    file = building.scratch / f"{step.name}.parquet"
    order = f" ORDER BY {', '.join(step.table.sorted_by)}" if step.table else ""
    _copy(connection, f"SELECT * FROM ({step.sql}){order}", file)
    connection.execute(f"CREATE VIEW {step.name} AS SELECT * FROM read_parquet({literal(file)})")
    return file


def _copy(connection: duckdb.DuckDBPyConnection, query: str, file: Path, options: str = "") -> int:
    """Write the rows of a query to a Parquet file; give their number.

    :param options: further options of ``COPY``, beginning with a comma
    """
    into = f"{text_literal(str(file))} ({PARQUET}{options})"
    return _number(connection, f"COPY ({query}) TO {into}")


def _count(connection: duckdb.DuckDBPyConnection, view: str) -> int:
    return _number(connection, f"SELECT count(*) FROM {view}")


def _number(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    row = connection.execute(statement).fetchone()
    return int(row[0]) if row else 0


def _where(since: datetime | None) -> str:
    if since is None:
        return ""
    return f"WHERE event_time >= {_timestamp(since)}"


def _timestamp(time: datetime) -> str:
    return f"TIMESTAMP '{time.replace(tzinfo=None).isoformat(' ')}'"


def _local(building: Building, parts: Mapping[str, Sequence[str]]) -> list[str]:
    return [file for names in parts.values() for file in building.store.local(names)]
