"""Builds a generation by DuckDB: lines of facts to Parquet, and the steps to tables.

What does not fit into the memory that it may take, it has on the disk of the store meanwhile.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    connect,
    create_view,
    failing,
    literal,
    text_literal,
)
from airflow_provider_sparklineage.history.engines.staging import staged
from airflow_provider_sparklineage.history.sources.reading import Reading
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, VERSION
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta

    import duckdb

    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.steps import Step
    from airflow_provider_sparklineage.history.store import Building, Store

_MEMORY = "500MB"  # DuckDB's own; with Python and what it does not count, a process has below 1 GB
_PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"


UNREADABLE = "unreadable"
"""Count of lines that are no facts."""


class Built(Frozen, frozen=True):
    """What a build did.

    :param events: how many were given
    :param new: how many of them were not in the store
    :param skipped: what had no facts, by reason
    :param rows: how many rows each table has now, and ``events``, all facts
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float


def build(
    store: Store,
    lines_of: Callable[[Reading], Iterable[Line]],
    *,
    progress: Callable[[int], None] | None = None,
    keep: timedelta | None = None,
) -> Built:
    """Do what :meth:`.Store.build` and :meth:`.Store.add` say.

    :param lines_of: gives the facts, of what the builds before have not read
    """
    begun = time.monotonic()
    with store.building() as building, failing("built"):
        connection = _connection(building.scratch)
        reading = Reading(building.marks)
        found = staged(connection, lines_of(reading), building.scratch, progress)
        skipped = {**reading.skipped, UNREADABLE: found.unreadable}
        skipped = {str(key): count for key, count in skipped.items() if count}
        new, files = _new(connection, building, found.files)
        if new or keep or building.before.version < VERSION or not building.before.generation:
            parts = {**building.before.facts, **_part(building, files)}
            rows = _publish(connection, building, parts, skipped, keep, reading.marks)
        else:
            rows = building.before.rows
        connection.close()
    return Built(max(reading.events, found.lines), new, skipped, rows, time.monotonic() - begun)


def merge(store: Store, other: Store) -> Built:
    """Do what :meth:`.Store.merge` says."""
    begun = time.monotonic()
    theirs = other.manifest
    with store.building() as building, failing("merged"):
        connection = _connection(building.scratch)
        files = [file for part in theirs.facts.values() for file in other.local(part)]
        new, files_of_new = _new(connection, building, files, is_own=False)
        parts = {**building.before.facts, **_part(building, files_of_new)}
        rows = _publish(connection, building, parts, {}, None)
        connection.close()
    return Built(theirs.rows.get("events", 0), new, {}, rows, time.monotonic() - begun)


def compact(store: Store, keep: timedelta | None) -> Built:
    """Do what :meth:`.Store.compact` says."""
    begun = time.monotonic()
    with store.building() as building, failing("compacted"):
        connection = _connection(building.scratch)
        before = building.before
        create_view(connection, FACTS, _local(building, before.facts))
        target = building.scratch / "facts.parquet"
        _copy(
            connection,
            f"SELECT * FROM facts {_where(building, keep)}",
            target,
            "ROW_GROUP_SIZE 4096",
        )
        connection.execute("DROP VIEW facts")
        rows = _publish(connection, building, _part(building, [target]), {}, keep)
        connection.close()
    return Built(0, 0, {}, rows, time.monotonic() - begun)


def _connection(scratch: Path) -> duckdb.DuckDBPyConnection:
    return connect(
        memory_limit=_MEMORY,
        temp_directory=str(scratch / "spilled"),
        preserve_insertion_order=False,  # which takes memory
    )


def _new(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    files: Sequence[str | Path],
    *,
    is_own: bool = True,
) -> tuple[int, list[Path]]:
    """Give how many events in files are new to the store, and files with these alone.

    :param is_own: whether the files may be kept as they are
    """
    if not files:
        return 0, []
    names_here = [str(file) for file in files]
    create_view(connection, FACTS, _local(building, building.before.facts), "known")
    names = ", ".join(map(literal, names_here))
    connection.execute(
        "CREATE TABLE ids AS SELECT event_id, filename, file_row_number AS place FROM "
        f"read_parquet([{names}], filename = true, file_row_number = true, union_by_name = true)"
    )
    connection.execute(
        "CREATE TABLE fresh AS SELECT filename, place FROM (SELECT *, row_number() OVER "
        "(PARTITION BY event_id ORDER BY filename, place) AS nth FROM ids) "
        "WHERE nth = 1 AND event_id IS NOT NULL AND event_id NOT IN (SELECT event_id FROM known)"
    )
    counts = dict(
        connection.execute("SELECT filename, count(*) FROM fresh GROUP BY ALL").fetchall()
    )
    totals = dict(connection.execute("SELECT filename, count(*) FROM ids GROUP BY ALL").fetchall())
    kept: list[Path] = []
    for number, file in enumerate(names_here):
        if not (count := counts.get(file, 0)):
            continue
        if is_own and count == totals[file]:
            kept.append(Path(file))
            continue
        view = f"added_{number}"
        target = building.scratch / f"{view}.parquet"
        connection.execute(
            f"CREATE VIEW {view} AS SELECT * EXCLUDE (file_row_number) FROM "
            f"read_parquet({literal(file)}, file_row_number = true) WHERE file_row_number IN "
            f"(SELECT place FROM fresh WHERE filename = {text_literal(file)})"
        )
        _copy(connection, f"SELECT * FROM {view}", target)
        kept.append(target)
    return sum(counts.values()), kept


def _part(building: Building, files: Sequence[Path]) -> dict[str, list[str]]:
    """Bring files of facts to the store, as a part of it; none is none."""
    if not files:
        return {}
    return {building.facts_part: building.put(building.facts_folder, files)}


def _publish(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    parts: Mapping[str, Sequence[str]],
    skipped: Mapping[str, int],
    keep: timedelta | None,
    marks: Mapping[str, str] | None = None,
) -> dict[str, int]:
    create_view(connection, FACTS, _local(building, parts), "all_facts")
    connection.execute(f"CREATE VIEW facts AS SELECT * FROM all_facts {_where(building, keep)}")
    rows = {"events": _count(connection, "facts")}
    tables = {}
    for step in STEPS:
        file = _run(connection, building, step)
        if step.table is not None:
            rows[step.name] = _count(connection, step.name)
            tables[step.name] = file
    connection.execute("DROP VIEW facts")
    named = {name: building.put(building.tables_folder, [file]) for name, file in tables.items()}
    building.publish(parts, named, rows, skipped, marks)
    return rows


def _run(connection: duckdb.DuckDBPyConnection, building: Building, step: Step) -> Path:
    """Write what a step gives to a file, sorted if it is a table, as a view for those after it."""
    file = building.scratch / f"{step.name}.parquet"
    order = f" ORDER BY {', '.join(step.table.sorted_by)}" if step.table else ""
    _copy(connection, f"SELECT * FROM ({step.sql}){order}", file)
    connection.execute(f"CREATE VIEW {step.name} AS SELECT * FROM read_parquet({literal(file)})")
    return file


def _copy(connection: duckdb.DuckDBPyConnection, query: str, file: Path, options: str = "") -> None:
    target = text_literal(str(file))
    connection.execute(f"COPY ({query}) TO {target} ({_PARQUET}{', ' * bool(options)}{options})")


def _count(connection: duckdb.DuckDBPyConnection, view: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {view}").fetchone()
    return int(found[0]) if found else 0


def _where(building: Building, keep: timedelta | None) -> str:
    if keep is None:
        return ""
    since = (building.now() - keep).replace(tzinfo=None)
    return f"WHERE event_time >= TIMESTAMP '{since.isoformat(' ')}'"


def _local(building: Building, parts: Mapping[str, Sequence[str]]) -> list[str]:
    return [file for names in parts.values() for file in building.store.local(names)]
