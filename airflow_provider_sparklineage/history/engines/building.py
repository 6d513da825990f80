"""Builds the tables of a store with DuckDB: runs the steps on facts, and merges new ones.

1. Lines of facts become Parquet files, and a query finds the facts that are new to the store
   (:mod:`.staging`).
2. The new facts are merged into the tables (:mod:`.merging`); if that is not possible, the steps
   make the tables from all facts. Many facts are taken in rounds, so that memory has a bound: the
   steps make the tables from those of the first round, and the others are merged into them.
3. If many builds have added files of facts to the store, or if events are to be forgotten, facts of
   several builds are written into one file. The store publishes facts and tables.

Data that exceeds DuckDB's memory limit is written to the store's disk while the build runs.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    connect,
    copy,
    count_of,
    create_view,
    failing,
    literal,
    scan_of,
)
from airflow_provider_sparklineage.history.engines.layouts import MAX_PARTS, Sizes, smallest
from airflow_provider_sparklineage.history.engines.merging import ChangedFacts, merge
from airflow_provider_sparklineage.history.engines.pieces import divided_anew, make
from airflow_provider_sparklineage.history.engines.staging import FactsFile, new_facts, stage
from airflow_provider_sparklineage.history.sources import MAX_DELIVERED, Delivered, Reading, Source
from airflow_provider_sparklineage.history.steps import STEPS, Step
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import FACTS, VERSION
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    import duckdb

    from airflow_provider_sparklineage.history.store import Building, Layout


_MEMORY = "500MB"  # DuckDB's limit; with Python and uncounted memory, a process stays below 1 GB

UNREADABLE = "unreadable"
"""The key of :attr:`Built.skipped` for lines that DuckDB could not parse as facts."""


class Built(Frozen, frozen=True):
    """The result of a build.

    :param events: number of JSON documents read, also of those that are not events; a source that
        is a store counts with all its events
    :param new: number of events in the sources that were not in the store
    :param delivered: number of events that tasks had delivered, and that need not wait any more
    :param waiting: number of those that were too many for this build
    :param skipped: number of texts and files without facts, by reason
    :param rows: number of rows that each table has now; the key ``events`` has the number of facts
    :param seconds: duration of the build
    """

    events: int
    new: int
    delivered: int
    waiting: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float


def build(
    store: Store,
    sources: Sequence[Source | Store],
    *,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
    keep: timedelta | None = None,
    sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
) -> Built:
    """Add the events of sources, and those that tasks delivered, to a store; merge the tables.

    The tables are made anew from all facts if the store is new or of an older version, or if many
    events are forgotten at once.

    :param progress: a function that is called with the number of events so far
    :param say: a function that gets a line about each round, if there are several
    :param keep: age from which events are forgotten for good: the store deletes them, and no later
        build of this store adds them again
    :param sizes: how the tables are divided among files
    :raise HistoryError: if DuckDB is missing, another build runs, or the disk is full
    """
    begun = time.monotonic()
    others = [one for one in sources if isinstance(one, Store)]
    with store.building() as building, failing("built"):
        reading = Reading(building.marks)
        connection = _connected(building)
        delivered = Delivered(store, MAX_DELIVERED)
        files_of_events = [one for one in sources if not isinstance(one, Store)]
        lines = reading.lines([*files_of_events, delivered])
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
            facts = ChangedFacts(known, new, _between(before.since, since), _kept(since))
            gone = _forgotten(connection, facts)
            is_many = gone > before.rows.get("events", 0) * _MOST_FORGOTTEN
            layout = None if is_many or before.version < VERSION else before.layout
            if layout is None:
                facts = ChangedFacts([], [*map(Path, known), *new], "", facts.kept)
                events = _count_kept(connection, facts)
            else:
                events = before.rows["events"] + count - gone
            layout = _layout_with(connection, building, layout, facts, sizes, say)
            parts = _parts(connection, building, new, since)
            tables = {t: [one.file for one in pieces] for t, pieces in layout.pieces.items()}
            rows = {t: sum(one.rows for one in pieces) for t, pieces in layout.pieces.items()}
            rows = {"events": events, **rows}
            building.publish(parts, tables, rows, skipped, reading.marks, since, layout)
        else:
            building.note(reading.marks, skipped)
            rows = before.rows
        connection.close()
        merged = delivered.remove()
    theirs = sum(other.manifest.rows.get("events", 0) for other in others)
    seconds = time.monotonic() - begun
    read = reading.events + theirs
    return Built(read, count, merged, delivered.more, skipped, rows, seconds)


_MOST_FORGOTTEN = 0.25  # share of the events; if more are forgotten, the tables are made anew
_REWRITTEN = 0.1  # share of the events of a part; if so many are forgotten, it is written anew


def _forgotten(connection: duckdb.DuckDBPyConnection, facts: ChangedFacts) -> int:
    """Count the facts that the tables have, and that this build forgets."""
    if not facts.known or not facts.forgotten:
        return 0
    known = scan_of(facts.known, "union_by_name = true")
    return count_of(connection, f"{known} WHERE {facts.forgotten}")


def _count_kept(connection: duckdb.DuckDBPyConnection, facts: ChangedFacts) -> int:
    """Count the new facts that are not forgotten."""
    if not facts.new:
        return 0
    return count_of(connection, f"{scan_of(facts.new, 'union_by_name = true')} WHERE {facts.kept}")


def _between(before: datetime | None, since: datetime | None) -> str:
    """Give the SQL condition that a build forgets a fact which the build before it did not.

    :param before: time before which events had been forgotten already
    :return: empty if no more is forgotten than before
    """
    if since is None or since == before:
        return ""
    older = f"event_time < {_timestamp(since)}"
    return older if before is None else f"{older} AND event_time >= {_timestamp(before)}"


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


def _parts(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    new: Sequence[Path],
    since: datetime | None,
) -> dict[str, list[str]]:
    """Put the facts of new events into the store, as one part: the files that one build wrote.

    If the store has :data:`MAX_PARTS` parts, the new part has the facts of the smallest ones, too:
    of a store with many events not all facts are written again. So it has what is left of a part
    of which much is forgotten. If there are more than :data:`_FILES` new files, they become one,
    because each later build opens all files.

    :param new: the files with the facts of the new events, on this machine
    :param since: time before which events are forgotten; None if no event is forgotten
    :return: the names of the files of all parts in the store, by name of the part
    """
    parts = dict(building.before.facts)
    joined = _outdated(connection, building, since)
    if len(parts) >= MAX_PARTS:
        joined |= _smallest(connection, building, new)
    if joined or len(new) > _FILES:
        old = _local(building, {part: parts.pop(part) for part in sorted(joined)})
        create_view(connection, FACTS, [*old, *map(str, new)], "compacted")
        query = f"SELECT * FROM compacted WHERE {_kept(since)}"
        file = building.scratch / "compacted.parquet"
        # The rows are long.
        new = [file] if copy(connection, query, file, ", ROW_GROUP_SIZE 4096") else []
    if new:
        parts[building.facts_part] = building.put(building.facts_folder, new)
    return parts


_FILES = 8  # most files that a build adds


def _outdated(
    connection: duckdb.DuckDBPyConnection, building: Building, since: datetime | None
) -> set[str]:
    """Give the parts of which :data:`_REWRITTEN` is forgotten.

    Until then facts that are forgotten are in the files, and nobody reads them.
    """
    if since is None:
        return set()
    found = set()
    for part, files in building.before.facts.items():
        facts = scan_of(building.store.local(files))
        old = count_of(connection, f"{facts} WHERE NOT ({_kept(since)})")
        if old and old >= count_of(connection, facts) * _REWRITTEN:
            found.add(part)
    return found


def _smallest(
    connection: duckdb.DuckDBPyConnection, building: Building, new: Sequence[Path]
) -> set[str]:
    """Give the parts to write again (:func:`.layouts.smallest`)."""
    sizes = {
        part: count_of(connection, scan_of(building.store.local(files)))
        for part, files in building.before.facts.items()
    }
    return {*smallest(sizes, count_of(connection, scan_of(new)) if new else 0)}


def _connected(building: Building) -> duckdb.DuckDBPyConnection:
    return connect(
        memory_limit=_MEMORY,
        temp_directory=str(building.scratch / "spilled"),
        preserve_insertion_order=False,  # which takes memory
    )


def _layout_with(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    layout: Layout | None,
    facts: ChangedFacts,
    sizes: Sizes,
    say: Callable[[str], None] | None,
) -> Layout:
    """Bring a change of the facts into the tables, in rounds; put their pieces into the store.

    :param layout: the layout of the tables before; None if they are made from the new facts alone
    :param say: a function that gets a line about each round, if there are several
    :return: the layout of the tables with the change
    """
    counts = _accesses_of(connection, facts.new)
    new = accesses = sum(counts.values())
    if layout is not None:
        accesses += building.before.rows["accesses"]
        if sizes.is_outgrown(layout, accesses):
            with closing(_connected(building)) as other:
                layout = divided_anew(other, building, layout, sizes, accesses)
    number = max(1, -(-new // sizes.round))
    rounds = _saying(say, _rounds(connection, building, counts, max(1, -(-new // number))), number)
    known, forgotten = [*facts.known], facts.forgotten
    if layout is None:
        first = next(rounds)
        known += map(str, first)
        with closing(_connected(building)) as other:
            layout = _made(other, building, first, facts.kept, sizes, accesses)
    for some in rounds:
        change = ChangedFacts(known, some, forgotten, facts.kept)
        with closing(_connected(building)) as other:
            after = merge(other, building, layout, change, sizes)
        _remove_replaced(building, layout, after)
        layout, forgotten = after, ""
        known += map(str, some)
    return layout


def _saying(
    say: Callable[[str], None] | None, rounds: Iterator[list[Path]], number: int
) -> Iterator[list[Path]]:
    """Say of each round that it begins.

    :param number: how many rounds there are, about
    """
    for nth, files in enumerate(rounds, 1):
        if say and number > 1:
            say(f"Bringing the events into the tables: part {nth} of {max(nth, number)}.")
        yield files


def _accesses_of(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> dict[Path, int]:
    """Count the accesses in files of facts, by what the files say of themselves.

    A fact without accesses counts as one.
    """
    if not files:
        return {}
    names = ", ".join(map(literal, files))
    query = (
        f"SELECT file_name, sum(num_values) FROM parquet_metadata([{names}]) "
        "WHERE starts_with(path_in_schema, 'accesses') AND ends_with(path_in_schema, 'side') "
        "GROUP BY ALL"
    )
    counts = dict(connection.execute(query).fetchall())
    return {file: int(counts.get(str(file)) or 0) for file in files}


def _rounds(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    counts: Mapping[Path, int],
    most: int,
) -> Iterator[list[Path]]:
    """Divide files of facts into groups of about ``most`` accesses; give at least one group.

    :param counts: number of accesses in each file
    """
    group: list[Path] = []
    size = 0
    for file, count in counts.items():
        for part in _slices(connection, building, file, -(-count // most)):
            if group and size + min(count, most) > most:
                yield group
                group, size = [], 0
            group.append(part)
            size += min(count, most)
    yield group


def _slices(
    connection: duckdb.DuckDBPyConnection, building: Building, file: Path, number: int
) -> Iterator[Path]:
    """Divide a file of facts by its rows."""
    if number <= 1:
        yield file
        return
    scan = scan_of([file], "file_row_number = true")
    rows = -(-count_of(connection, scan) // number)
    for nth in range(number):
        # Files of several parts have the same name.
        part = building.scratch / f"slice-{next(building.numbers):05}.parquet"
        place = f"file_row_number >= {nth * rows} AND file_row_number < {(nth + 1) * rows}"
        query = f"SELECT * EXCLUDE (file_row_number) FROM {scan} WHERE {place}"
        copy(connection, query, part, ", ROW_GROUP_SIZE 4096")
        yield part


def _remove_replaced(building: Building, before: Layout, after: Layout) -> None:
    """Remove pieces of this build that a later round of it has replaced: no reader knows them."""
    for name in sorted(before.files() - after.files()):
        if name.startswith(f"{building.tables_folder}/"):
            building.store.files.remove(name)


def _made(
    connection: duckdb.DuckDBPyConnection,
    building: Building,
    facts: Sequence[Path],
    kept: str,
    sizes: Sizes,
    accesses: int,
) -> Layout:
    """Run all steps on facts.

    :param facts: files of facts
    :param kept: SQL condition that a fact is of an event that is not forgotten
    :param accesses: number of accesses for which the layout is made
    :return: the layout of the new tables
    """
    create_view(connection, FACTS, map(str, facts), "all_facts")
    connection.execute(f"CREATE VIEW facts AS SELECT * FROM all_facts WHERE {kept}")
    files = {step.name: _run(connection, building, step) for step in STEPS}
    return make(connection, building, files, sizes, accesses)


def _run(connection: duckdb.DuckDBPyConnection, building: Building, step: Step) -> Path:
    """Write the rows of a step to a file, and create a view of the file with the step's name.

    The rows are sorted if the step makes a table that is not divided by dataset.

    :return: the path of the file
    """
    file = building.scratch / f"{step.name}.parquet"
    table = None if step.table and step.table.is_by_dataset else step.table
    order = f" ORDER BY {', '.join(table.sorted_by)}" if table else ""
    copy(connection, f"SELECT * FROM ({step.sql}){order}", file)
    connection.execute(f"CREATE VIEW {step.name} AS FROM {scan_of([file])}")
    return file


def _kept(since: datetime | None) -> str:
    """Give the SQL condition that a fact is of an event that is not forgotten."""
    return "TRUE" if since is None else f"event_time >= {_timestamp(since)}"


def _timestamp(time: datetime) -> str:
    return f"TIMESTAMP '{time.replace(tzinfo=None).isoformat(' ')}'"


def _local(building: Building, parts: Mapping[str, Sequence[str]]) -> list[str]:
    return [file for names in parts.values() for file in building.store.local(names)]
