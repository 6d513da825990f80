"""Spark 3.5 and newer: builds the same tables as DuckDB from the same SQL, and answers queries.

The queries can run on Spark (:class:`History`) if the tables are too large for one machine. The
functions of :mod:`airflow_provider_sparklineage.history.queries` give the same answers as with
DuckDB: they take any object with the method ``rows``. A question takes seconds here instead of
milliseconds, because each of its queries is a job.

The modules import PySpark only inside functions, when a job calls them.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_sparklineage.history.engines.spark.files import table_of
from airflow_provider_sparklineage.history.engines.spark.sql import session_of, spark_sql
from airflow_provider_sparklineage.history.tables import TABLES
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from airflow_provider_sparklineage.history.store import Store

_LIST, _TIME = "FROM_JSON({}, 'ARRAY<STRING>')", "CAST({} AS TIMESTAMP_NTZ)"


class History:
    """A generation of a store (a version of all its tables), open for queries that run on Spark.

    It is a context manager, and is used like :class:`.duckdb.History`:

    ::

        with History(session, Store.open("s3://lake/history")) as history:
            hops = trace(history, dataset_of(history, "revenue"), "dt=2024-10-15")

    :param session: a Spark session, whose settings and views are not changed
    :param store: a store whose files Spark can read
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
        """Run a query on the tables; give each row as a mapping from column names to values.

        :param sql: in DuckDB's dialect
        :param parameters: values of ``$name`` in the query; a list becomes an array of strings
        :raise HistoryError: if Spark cannot run the query, or a file cannot be read
        """
        from pyspark.errors import PySparkException

        values = dict(parameters or {})
        try:
            text = spark_sql(sql, {name: written for name, value in values.items()
                                   if (written := _written(value))})  # fmt: skip
            rows = self._session.sql(text, {name: _bound(one) for name, one in values.items()})
            return [row.asDict() for row in rows.collect()]
        except PySparkException as error:
            problem = f"The history could not be asked ({reason(error)})."
            raise HistoryError(problem) from error

    def close(self) -> None:
        """Drop the views of the tables."""
        for table in TABLES:
            self._session.catalog.dropTempView(table.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _written(value: object) -> str:
    """Give the SQL that casts a parameter to its type; empty if its value needs no cast.

    :return: ``CAST({} AS …)``, in which ``{}`` stands for the parameter
    """
    if isinstance(value, list | tuple):
        return _LIST
    return _TIME if isinstance(value, datetime) else ""


def _bound(value: object) -> object:
    """Give the value to bind for a parameter.

    A list is bound as one JSON text, because Spark would bind each of its elements. A time is bound
    as a text, because Spark reads Python's times in the zone of the machine.
    """
    if isinstance(value, list | tuple):
        return json.dumps([None if one is None else str(one) for one in value])
    return str(value) if isinstance(value, datetime) else value
