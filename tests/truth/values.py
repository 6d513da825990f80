"""Which partitions matter to a query, by DuckDB; which were written, by the names of the files.

The values of a partition are texts, in the order in which the table is partitioned; null is None.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from tests.truth.planting import PARTITIONED_BY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.truth.queries import Query

Partition = tuple[str | None, ...]

EMPTY_IS_NULL = ("parquet", "delta")
"""Formats in which a partition of the empty string is that of null."""


class Values:
    """The planted tables in DuckDB, as they read in a format."""

    def __init__(self, planted: Path, kind: str) -> None:
        import duckdb

        self._duckdb = duckdb.connect()
        for table, columns in PARTITIONED_BY.items():
            source = f"'{planted}/{table}.parquet'"
            described = self._duckdb.sql(f"describe select * from {source}").fetchall()
            texts = [name for name, kind_, *_ in described if kind_ == "VARCHAR"]
            nullified = [f"nullif({c}, '') as {c}" for c in columns if c in texts]
            replaced = f"replace ({', '.join(nullified)})" if nullified else ""
            chosen = f"* {replaced}" if kind in EMPTY_IS_NULL else "*"
            self._duckdb.sql(f"create table {table} as select {chosen} from {source}")

    def columns(self, table: str) -> list[str]:
        """Give the names of a table's columns."""
        return [row[0] for row in self._duckdb.sql(f"describe {table}").fetchall()]

    def all(self, table: str, condition: str = "true") -> set[Partition]:
        """Give the partitions with rows that fulfil a condition."""
        columns = ", ".join(f"cast({c} as varchar)" for c in PARTITIONED_BY[table])
        rows = self._duckdb.sql(f"select distinct {columns} from {table} where {condition}")
        return set(rows.fetchall())

    def may(self, query: Query, table: str) -> set[Partition]:
        """Give the partitions that can matter to a query, by their values."""
        return self.all(table, query.may.get(table, "true"))

    def must(self, query: Query, table: str) -> set[Partition]:
        """Give the partitions that have rows without which the result would be another one."""
        condition = query.must.get(table, query.may.get(table, "true"))
        return self.all(table, condition) & self.may(query, table)


class Files:
    """The files with the data of a table, each with the partition that it is of."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        self._logged = dict(_logged(folder)) if kind == "delta" else {}

    def partitions(self) -> set[Partition]:
        """Give the partitions of all files."""
        if self._kind == "delta":
            return set(self._logged.values())
        return {p for f in self._folder.rglob("*.parquet") if (p := self.partition(f)) is not None}

    def counts(self) -> dict[Partition, tuple[int, int]]:
        """Give the rows, by DuckDB, and the bytes of the files of each partition."""
        import duckdb

        found: dict[Partition, tuple[int, int]] = {}
        for file in self._folder.rglob("*.parquet"):
            if (partition := self.partition(file)) is not None:
                rows, size = found.get(partition, (0, 0))
                [(counted,)] = duckdb.read_parquet(str(file)).count("*").fetchall()
                found[partition] = (rows + counted, size + file.stat().st_size)
        return found

    def partition(self, file: Path) -> Partition | None:
        """Give the partition of a file; None if it is no file with data of this table."""
        if file.name.startswith((".", "_")) or file.suffix != ".parquet":
            return None
        inside = file.relative_to(self._folder)
        if self._kind == "delta":
            return self._logged.get(str(inside))
        if self._kind == "iceberg":
            return tuple(_iceberg_value(name) for name in inside.parts[1:-1])
        return tuple(_hive_value(name) for name in inside.parts[:-1])


def _hive_value(folder: str) -> str | None:
    value = unquote(folder.partition("=")[2])
    return None if value == "__HIVE_DEFAULT_PARTITION__" else value


def _iceberg_value(folder: str) -> str | None:
    value = unquote_plus(folder.partition("=")[2])
    return None if value == "null" else value


def _logged(table: Path) -> Iterator[tuple[str, Partition]]:
    """Give what Delta's log has of each file that was added: its path, and its partition."""
    columns: list[str] = []
    for commit in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                columns = action["metaData"]["partitionColumns"]
        for action in actions:
            if added := action.get("add"):
                yield unquote(added["path"]), tuple(added["partitionValues"][c] for c in columns)
