"""The queries on Spark, for tables that are too large to be asked from one machine.

The functions of :mod:`airflow_provider_sparklineage.history.queries` answer as they do with DuckDB:
they ask whatever gives rows. A question takes seconds here instead of milliseconds, as each of its
queries is a job.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_sparklineage.history.engines.spark.building import session_of, table_of
from airflow_provider_sparklineage.history.engines.spark.sql import spark_sql
from airflow_provider_sparklineage.history.tables import TABLES
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from airflow_provider_sparklineage.history.store import Store

_LIST, _TIME = "FROM_JSON({}, 'ARRAY<STRING>')", "CAST({} AS TIMESTAMP_NTZ)"


class History:
    """A generation of a store, to ask it; a context, and the twin of DuckDB's.

    ::

        with History(session, Store.open("s3://lake/history")) as history:
            hops = trace(history, dataset_of(history, "revenue"), "dt=2024-10-15")

    :param session: its settings and views stay as they are
    :param store: where Spark can read it, too
    """

    def __init__(self, session: SparkSession, store: Store) -> None:
        self.manifest = store.manifest
        self._session = session_of(session)
        for table in TABLES:
            names = self.manifest.tables.get(table.name, ())
            rows = table_of(self._session, store.url, table, names)
            rows.createOrReplaceTempView(table.name)

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Give the rows of a query of the tables, each by the names of its columns.

        :param sql: in DuckDB's dialect
        :param parameters: of ``$name`` in the query; lists are lists of SQL
        :raise HistoryError: if the query is none for Spark, or a file cannot be read
        """
        from pyspark.errors import PySparkException

        given = dict(parameters or {})
        try:
            text = spark_sql(sql, {name: written for name, value in given.items()
                                   if (written := _written(value))})  # fmt: skip
            found = self._session.sql(text, {name: _bound(one) for name, one in given.items()})
            return [row.asDict() for row in found.collect()]
        except PySparkException as error:
            problem = f"The history could not be asked ({reason(error)})."
            raise HistoryError(problem) from error

    def close(self) -> None:
        """Forget the tables."""
        for table in TABLES:
            self._session.catalog.dropTempView(table.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _written(value: object) -> str:
    """Say what makes a parameter of a type again from what is bound; empty if it is that."""
    if isinstance(value, list | tuple):
        return _LIST
    return _TIME if isinstance(value, datetime) else ""


def _bound(value: object) -> object:
    """Give what is bound: one text for a whole list, where Spark would take each of its elements.

    Times are texts too: Spark gives those of Python the zone of the machine.
    """
    if isinstance(value, list | tuple):
        return json.dumps([None if one is None else str(one) for one in value])
    return str(value) if isinstance(value, datetime) else value
