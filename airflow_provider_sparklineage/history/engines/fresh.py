"""Which of the facts that come are new to a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import (
    PARQUET,
    create_view,
    literal,
    text_literal,
)
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import duckdb


class Given(Frozen, frozen=True):
    """A file of facts.

    :param since: when those begin that count; None: all do
    :param is_own: whether the file may be kept as it is
    """

    file: str
    since: datetime | None
    is_own: bool


class Fresh(Frozen, frozen=True):
    """What is new.

    :param count: of events
    :param files: with these alone
    """

    count: int
    files: list[Path]


def fresh(
    connection: duckdb.DuckDBPyConnection,
    known: Sequence[str],
    given: Sequence[Given],
    scratch: Path,
) -> Fresh:
    """Find what is new; an event that is in several files is that of the first.

    :param known: the files of facts that the store has
    """
    if not given:
        return Fresh(0, [])
    create_view(connection, FACTS, known, "known")
    connection.execute(
        "CREATE TABLE ids (file INTEGER, place BIGINT, event_id VARCHAR, event_time TIMESTAMP)"
    )
    for number, one in enumerate(given):
        connection.execute(
            f"INSERT INTO ids SELECT {number}, file_row_number, event_id, event_time FROM "
            f"{_scan(one)} WHERE event_id IS NOT NULL AND event_time >= COALESCE(?, event_time)",
            [one.since and one.since.replace(tzinfo=None)],
        )
    connection.execute(
        "CREATE TABLE fresh AS SELECT file, place FROM (SELECT *, row_number() OVER "
        "(PARTITION BY event_id ORDER BY file, place) AS nth FROM ids) "
        "WHERE nth = 1 AND event_id NOT IN (SELECT event_id FROM known)"
    )
    found = connection.execute("SELECT file, count(*) FROM fresh GROUP BY ALL ORDER BY ALL")
    counts = found.fetchall()
    files = [_file(connection, given[number], number, count, scratch) for number, count in counts]
    return Fresh(sum(count for _, count in counts), files)


def _scan(one: Given) -> str:
    return f"read_parquet({literal(one.file)}, file_row_number = true)"


def _file(
    connection: duckdb.DuckDBPyConnection, one: Given, number: int, count: int, scratch: Path
) -> Path:
    """Give a file with what is new in one."""
    if one.is_own:
        total = connection.execute(f"SELECT count(*) FROM {_scan(one)}").fetchone()
        if total == (count,):
            return Path(one.file)
    target = scratch / f"added-{number:05}.parquet"
    connection.execute(
        f"COPY (SELECT * EXCLUDE (file_row_number) FROM {_scan(one)} WHERE file_row_number IN "
        f"(SELECT place FROM fresh WHERE file = {number})) "
        f"TO {text_literal(str(target))} ({PARQUET})"
    )
    return target
