"""The tables of a simulated world, made of its events as they are made of real ones."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.facts import Line, facts_of
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.partitioning import unescape
from tests.history import events

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.history.ledger import Cell, Ledger


class Tables:
    """All tables in memory, of events that arrive in any order."""

    def __init__(self, ledger: Ledger, folder: Path, seed: int) -> None:
        import duckdb

        lines = [line.text for line in _lines(ledger, is_sent=seed % 3 == 0)]
        random.Random(seed).shuffle(lines)
        file = folder / "facts.ndjson"
        file.write_bytes(b"".join(lines))
        columns = {column.name: column.type for column in FACTS.columns}
        self._connection = duckdb.connect()
        self._connection.execute(
            f"CREATE TABLE facts AS SELECT * FROM read_json('{file}', "
            f"format = 'newline_delimited', columns = {columns})"
        )
        for step in STEPS:
            self._connection.execute(f"CREATE TABLE {step.name} AS {step.sql}")

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        found = self._connection.execute(sql, parameters)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        self._connection.close()


def sent(ledger: Ledger, *, is_sent: bool) -> Iterator[dict[str, Any]]:
    """Give events as the archive has them, or as they are sent."""
    for run in ledger.runs:
        is_kept = run.instance is not None and not is_sent
        yield from [events.archived(run)] if is_kept else events.events(run)


def _lines(ledger: Ledger, *, is_sent: bool) -> Iterator[Line]:
    for event in sent(ledger, is_sent=is_sent):
        line = facts_of(json.dumps(event), "world")
        assert isinstance(line, Line)
        assert line.left_out == 0
        yield line


def cell_of(text: str | None) -> Cell | None:
    """Read the text of a cell."""
    if text is None:
        return None
    pairs = (part.partition("=") for part in text.split("/"))
    return tuple(sorted((unescape(name), unescape(value)) for name, _, value in pairs))
