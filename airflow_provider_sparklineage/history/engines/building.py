"""Builds a generation by DuckDB: lines of facts to Parquet, and the steps to tables.

What does not fit into the memory that it may take, it has on the disk of the store meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.engines.duckdb import (
    PARQUET,
    connect,
    create_view,
    failing,
    literal,
    text_literal,
)
from airflow_provider_sparklineage.history.engines.fresh import Given, fresh
from airflow_provider_sparklineage.history.engines.staging import staged
from airflow_provider_sparklineage.history.sources.reading import Reading
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, VERSION
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    import duckdb

    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.steps import Step
    from airflow_provider_sparklineage.history.store import Building, Store

_MEMORY = "500MB"  # DuckDB's own; with Python and what it does not count, a process has below 1 GB

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
    others: Sequence[Store] = (),
    *,
    progress: Callable[[int], None] | None = None,
    keep: timedelta | None = None,
) -> Built:
    """Do what :meth:`.Store.build` and :meth:`.Store.add` say.

    :param lines_of: gives the facts, of what the builds before have not read
    :param others: stores whose facts are added
    """
    begun = time.monotonic()
    with store.building() as building, failing("built"):
        connection, reading = _connection(building.scratch), Reading(building.marks)
        found = staged(connection, lines_of(reading), building.scratch, progress)
        skipped = {**reading.skipped, UNREADABLE: found.unreadable}
        skipped = {str(key): count for key, count in skipped.items() if count}
        before, since = building.before, building.since(keep)
        given = [Given(str(file), since, is_own=True) for file in found.files]
        given += [one for other in others for one in _given(other, since)]
        new = fresh(connection, _local(building, before.facts), given, building.scratch)
        if new.count or keep or before.version < VERSION or not before.generation:
            parts = {**before.facts, **_part(building, new.files)}
            tables = _tables(connection, building, parts, since)
            _publish(building, parts, tables, skipped, reading.marks, since)
            rows: Mapping[str, int] = tables.rows
        else:
            building.note(reading.marks, skipped)
            rows = before.rows
        connection.close()
    theirs = sum(other.manifest.rows.get("events", 0) for other in others)
    events = max(reading.events, found.lines) + theirs
    return Built(events, new.count, skipped, rows, time.monotonic() - begun)


def compact(
    store: Store, keep: timedelta | None, progress: Callable[[int], None] | None = None
) -> Built:
    """Do what :meth:`.Store.compact` says."""
    begun = time.monotonic()
    with store.building() as building, failing("compacted"):
        connection, since = _connection(building.scratch), building.since(keep)
        target = building.scratch / "facts.parquet"
        create_view(connection, FACTS, _local(building, building.before.facts), "all_facts")
        _copy(connection, f"SELECT * FROM all_facts {_where(since)}", target, "ROW_GROUP_SIZE 4096")
        connection.execute("DROP VIEW all_facts")
        parts = _part(building, [target])
        tables = _tables(connection, building, parts, since, progress)
        _publish(building, parts, tables, {}, None, since)
        connection.close()
    return Built(0, 0, {}, tables.rows, time.monotonic() - begun)


def _connection(scratch: Path) -> duckdb.DuckDBPyConnection:
    return connect(
        memory_limit=_MEMORY,
        temp_directory=str(scratch / "spilled"),
        preserve_insertion_order=False,  # which takes memory
    )


def _given(store: Store, since: datetime | None) -> list[Given]:
    """Give the files of facts of another store, of which it may have forgotten some."""
    theirs = store.manifest
    starts = [one for one in (since, theirs.since) if one]
    return [
        Given(file, max(starts, default=None), is_own=False)
        for names in theirs.facts.values()
        for file in store.local(names)
    ]


def _part(building: Building, files: Sequence[Path]) -> dict[str, list[str]]:
    """Bring files of facts to the store, as a part of it; none is none."""
    if not files:
        return {}
    return {building.facts_part: building.put(building.facts_folder, files)}


class _Made(NamedTuple):
    """The tables of a generation: their files here, and how many rows each has."""

    files: dict[str, Path]
    rows: dict[str, int]


def _tables(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    parts: Mapping[str, Sequence[str]],
    since: datetime | None,
    progress: Callable[[int], None] | None = None,
) -> _Made:
    """Make all tables of parts of the facts."""
    create_view(connection, FACTS, _local(building, parts), "all_facts")
    connection.execute(f"CREATE VIEW facts AS SELECT * FROM all_facts {_where(since)}")
    made = _Made({}, {"events": _count(connection, "facts")})
    for number, step in enumerate(STEPS, start=1):
        file = _run(connection, building, step)
        if step.table is not None:
            made.rows[step.name] = _count(connection, step.name)
            made.files[step.name] = file
        if progress:
            progress(number)
    return made


def _publish(
    building: Building,
    parts: Mapping[str, Sequence[str]],
    made: _Made,
    skipped: Mapping[str, int],
    marks: Mapping[str, str] | None,
    since: datetime | None,
) -> None:
    folder = building.tables_folder
    tables = {name: building.put(folder, [file]) for name, file in made.files.items()}
    building.publish(parts, tables, made.rows, skipped, marks, since)


def _run(connection: duckdb.DuckDBPyConnection, building: Building, step: Step) -> Path:
    """Write what a step gives to a file, sorted if it is a table, as a view for those after it."""
    file = building.scratch / f"{step.name}.parquet"
    order = f" ORDER BY {', '.join(step.table.sorted_by)}" if step.table else ""
    _copy(connection, f"SELECT * FROM ({step.sql}){order}", file)
    connection.execute(f"CREATE VIEW {step.name} AS SELECT * FROM read_parquet({literal(file)})")
    return file


def _copy(connection: duckdb.DuckDBPyConnection, query: str, file: Path, options: str = "") -> None:
    target = text_literal(str(file))
    connection.execute(f"COPY ({query}) TO {target} ({PARQUET}{', ' * bool(options)}{options})")


def _count(connection: duckdb.DuckDBPyConnection, view: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {view}").fetchone()
    return int(found[0]) if found else 0


def _where(since: datetime | None) -> str:
    if since is None:
        return ""
    return f"WHERE event_time >= TIMESTAMP '{since.replace(tzinfo=None).isoformat(' ')}'"


def _local(building: Building, parts: Mapping[str, Sequence[str]]) -> list[str]:
    return [file for names in parts.values() for file in building.store.local(names)]
