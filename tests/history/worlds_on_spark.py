"""Many simulated worlds in one store that Spark has built, each to be asked by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.tables import TABLES
from tests.history.built import sent
from tests.history.simulation import world

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from tests.history.ledger import Ledger


class Named:
    """A world under names of its own, so that it can be in a store with others."""

    def __init__(self, dag: str, seed: int, days: int, *, is_exact: bool | None = None) -> None:
        self.dag, self.seed = dag, seed
        self.lake = f"s3://{dag}"
        self.ledger: Ledger = world(seed, days, is_exact=is_exact, dag=dag, lake=self.lake)

    def write(self, folder: Path) -> None:
        """Write its events into a file."""
        events = sent(self.ledger, is_sent=self.seed % 3 == 0)
        text = "".join(f"{json.dumps(event)}\n" for event in events)
        (folder / f"{self.dag}.ndjson").write_text(text)


class Part:
    """What the tables ``spark_…`` of all worlds have of one: rows of its jobs, and of its lake."""

    def __init__(self, connection: DuckDBPyConnection, named: Named) -> None:
        self._connection = connection.cursor()
        self._connection.execute(f'CREATE SCHEMA "{named.dag}"')
        for table in TABLES:
            names = {column.name for column in table.columns}
            of, value = "split_part(job, '.', 1)", named.dag
            if "job" not in names:
                of, value = "namespace" if "namespace" in names else "out_namespace", named.lake
            self._connection.execute(
                f'CREATE TABLE "{named.dag}".{table.name} AS '
                f"SELECT * FROM main.spark_{table.name} WHERE {of} = '{value}'"
            )
        self._connection.execute(f"SET schema = '{named.dag}'")

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        found = self._connection.execute(sql, parameters)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        self._connection.execute("SET schema = 'main'")
        self._connection.close()
