"""The SQL of the steps, written for DuckDB, in the words of Spark.

sqlglot knows both; what it would hand on word for word, or translate to something else than DuckDB
does, is refused here, so that it is a failing test and not another answer on another engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.tables import Column, Table

_READ, _WRITE = "duckdb", "spark"

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Anonymous, "a function that sqlglot does not know"),
    (exp.GroupConcat, "string_agg(), which Spark has from 4.0 on"),
    (exp.ArrayAgg, "list(), whose order Spark does not keep"),
    (exp.Qualify, "QUALIFY, whose condition becomes a column in Spark"),
)


def spark_sql(sql: str) -> str:
    """Translate a query of DuckDB for Spark 3.5 and newer.

    Zones: a ``TIMESTAMP`` becomes ``TIMESTAMP_NTZ``, which has none either.

    :raise HistoryError: if it is no SQL, or uses what the two do not have in common
    """
    try:
        query = sqlglot.parse_one(sql, read=_READ)
        _check(query)
        return query.sql(_WRITE, unsupported_level=ErrorLevel.RAISE, identify=True)
    except SqlglotError as error:
        problem = f"A step of the history cannot be translated for Spark: {error}"
        raise HistoryError(problem, "Report it; DuckDB builds it.") from error


def spark_schema(columns: tuple[Column, ...]) -> str:
    """Give the schema of columns as Spark's readers take it: ``a STRING, b ARRAY<…>``."""
    return ", ".join(f"`{one.name}` {spark_type(one.type)}" for one in columns)


def spark_type(type_: str) -> str:
    """Give the type that Spark has for one of DuckDB's."""
    return exp.DataType.build(type_, dialect=_READ).sql(_WRITE, identify=True)


def spark_selection(table: Table) -> list[str]:
    """Give what selects the columns of a table, by name and in its types."""
    return [
        f"CAST(`{one.name}` AS {spark_type(one.type)}) AS `{one.name}`" for one in table.columns
    ]


def _check(query: exp.Expr) -> None:
    for kind, what in _REFUSED:
        for found in query.find_all(kind):
            msg = f"{what} ({found.sql(_READ)})"
            raise SqlglotError(msg)
