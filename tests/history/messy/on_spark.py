"""Many messy worlds in one store that Spark has built, each to be asked by itself, on Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.engines.spark import History
from airflow_provider_sparklineage.history.tables import TABLES
from tests.history.built import sent
from tests.history.ledger import Ledger
from tests.history.messy.comparing import differences, questions
from tests.history.messy.worlds import is_exact, world

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from airflow_provider_sparklineage.history.store import Store
    from tests.history.ledger import Access, Run, Table


def named_world(seed: int) -> Ledger:
    """Make a world under names of its own, so that it can be in a store with others."""
    ledger = world(seed)
    runs = [_run(run, seed) for run in ledger.runs]
    named = Ledger([_table(table, seed) for table in ledger.tables], runs)
    named.happen()
    return named


def _table(table: Table, seed: int) -> Table:
    return replace(table, namespace=f"{table.namespace}-{seed}")


def _access(access: Access, seed: int) -> Access:
    return replace(access, table=_table(access.table, seed))


def _run(run: Run, seed: int) -> Run:
    edges = (
        edge._replace(output=_table(edge.output, seed), input=_table(edge.input, seed))
        for edge in run.edges
    )
    return replace(
        run,
        namespace=f"{run.namespace}-{seed}",
        reads=tuple(_access(one, seed) for one in run.reads),
        writes=tuple(_access(one, seed) for one in run.writes),
        edges=tuple(edges),
    )


def write(seed: int, folder: Path) -> None:
    """Write the events of a world into a file."""
    events = sent(named_world(seed), is_sent=seed % 3 == 0)
    (folder / f"{seed}.ndjson").write_text("".join(f"{json.dumps(one)}\n" for one in events))


class Part(History):
    """The rows of one world in the tables of a store."""

    def __init__(self, session: SparkSession, store: Store, seed: int) -> None:
        super().__init__(session, store)
        for table in TABLES:
            names = {column.name for column in table.columns}
            of = "namespace" if "namespace" in names else "out_namespace"
            rows = self._session.table(table.name).where(f"{of} LIKE '%-{seed}'")
            rows.coalesce(1).localCheckpoint().createOrReplaceTempView(table.name)


def asked(session: SparkSession, store: Store, seed: int, count: int) -> list[str]:
    """Ask Spark about a world; give what the oracle says otherwise."""
    ledger: Any = named_world(seed)
    with Part(session, store, seed) as part:
        wrong = differences(ledger, part, questions(ledger, seed, count), is_exact=is_exact(seed))
    return [str(one) for one in wrong]
