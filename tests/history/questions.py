"""Questions about a simulated world: random ones, of what is in it."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from tests.history.ledger import Cell, Ledger, Table


class Question(NamedTuple):
    """What is asked of a table: of a cell or all of it, of a column or all, then or now."""

    table: Table
    cell: Cell | None
    column: str | None
    as_of: datetime | None = None

    @property
    def partition(self) -> str | None:
        """The cell as people write it."""
        return None if self.cell is None else self.table.text(self.cell)


def questions(ledger: Ledger, seed: int, count: int) -> list[Question]:
    """Choose questions about cells, columns and times that a world has."""
    chance = random.Random(seed)
    cells = sorted(
        {
            (access.table.name, cell)
            for run in ledger.runs
            for access in (*run.reads, *run.claimed())
            for cell in access.cells
        }
    )
    tables = {table.name: table for table in ledger.tables}
    times = [run.ended for run in ledger.runs]
    found = []
    for _ in range(count):
        table, cell = tables[chance.choice(sorted(tables))], None
        if cells and chance.random() < 0.7:
            name, cell = chance.choice(cells)
            table = tables[name]
        column = chance.choice((None, None, "key", "amount"))
        since = timedelta(minutes=chance.choice((-1, 0, 0, 3)))
        as_of = chance.choice(times) + since if chance.random() < 0.3 else None
        found.append(Question(table, cell, column, as_of))
    return found
