"""The queries: what they ask for, and of each table which rows matter.

A file of ``queries`` begins with the question. Then come, in DuckDB's SQL:

- ``may TABLE: CONDITION`` on the columns that partition the table: a partition that does not fulfil
  it cannot matter, whatever is in it, and is not to be read;
- ``must TABLE: CONDITION`` on the rows of a table: without them the result would be another one, so
  that their partitions have to be read;
- ``partitioned by: COLUMNS`` of the result, as it is written.

A table without a ``may`` may be read in full; without a ``must``, it must be where it may.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = Path(__file__).parent / "queries"
_HEADER = re.compile(r"-- (may|must|partitioned by)(?: (\w+))?: (.*)")


@dataclass(frozen=True)
class Query:
    """A query with what is known of it."""

    name: str
    sql: str
    may: Mapping[str, str]
    must: Mapping[str, str]
    partitioned_by: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it names."""
        tree = sqlglot.parse_one(self.sql, dialect="spark")
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        return tuple(sorted({table.name for table in tree.find_all(exp.Table)} - own))


def load(names: Iterable[str] = ()) -> list[Query]:
    """Read the named queries; all of them if none is named."""
    wanted = list(names) or sorted(file.stem for file in FOLDER.glob("*.sql"))
    return [_query(FOLDER / f"{name}.sql") for name in wanted]


def _query(file: Path) -> Query:
    conditions: dict[str, dict[str, str]] = {"may": {}, "must": {}}
    partitioned_by: tuple[str, ...] = ()
    lines = file.read_text().splitlines()
    for line in lines[1:]:
        if header := _HEADER.fullmatch(line):
            kind, table, text = header.groups()
            if table:
                conditions[kind][table] = text
            else:
                partitioned_by = tuple(text.split(", "))
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    return Query(file.stem, sql, conditions["may"], conditions["must"], partitioned_by)
