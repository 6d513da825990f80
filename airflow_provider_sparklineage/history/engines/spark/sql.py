"""Translates DuckDB's SQL, in which steps and queries are written, to the SQL of Spark.

sqlglot knows both dialects. Constructs that it would copy unchanged, or translate to SQL that
gives other rows than DuckDB, are refused here: then a test fails, and the two engines never give
different answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Column, Table

_READ, _WRITE = "duckdb", "spark"

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Anonymous, "a function that sqlglot does not know"),
    (exp.GroupConcat, "string_agg(), which Spark has from 4.0 on"),
    (exp.Qualify, "QUALIFY, whose condition becomes a column in Spark"),
)


def spark_sql(sql: str, parameters: Mapping[str, str] | None = None) -> str:
    """Translate a query from DuckDB's dialect to the SQL of Spark 3.5 and newer.

    A ``TIMESTAMP`` becomes ``TIMESTAMP_NTZ``, which has no zone either. A parameter ``$name``
    becomes ``:name``.

    :param parameters: SQL expressions that replace parameters, by name of the parameter; ``{}`` in
        an expression stands for ``:name``
    :raise HistoryError: if the query is not valid SQL, or uses a construct of :data:`_REFUSED`
    """
    try:
        query = sqlglot.parse_one(sql, read=_READ)
        _check(query)
        query = query.transform(_rewritten)
        for one in [*query.find_all(exp.Placeholder)]:
            if written := (parameters or {}).get(one.name):
                one.replace(sqlglot.parse_one(written.format(f":{one.name}"), read=_WRITE))
        return query.sql(_WRITE, unsupported_level=ErrorLevel.RAISE, identify=True)
    except SqlglotError as error:
        problem = f"A query of the history cannot be translated for Spark: {error}"
        raise HistoryError(problem, "Report it; DuckDB answers it.") from error


def spark_schema(columns: tuple[Column, ...]) -> str:
    """Give the schema of some columns as DDL for Spark's readers: ``a STRING, b ARRAY<…>``."""
    return ", ".join(f"`{one.name}` {spark_type(one.type)}" for one in columns)


def spark_type(type_: str) -> str:
    """Translate a column type from DuckDB's SQL to Spark's."""
    return exp.DataType.build(type_, dialect=_READ).sql(_WRITE, identify=True)


def spark_selection(table: Table) -> list[str]:
    """Give the expressions for ``selectExpr`` that cast a table's columns to their types."""
    return [
        f"CAST(`{one.name}` AS {spark_type(one.type)}) AS `{one.name}`" for one in table.columns
    ]


def _check(query: exp.Expr) -> None:
    for kind, what in _REFUSED:
        for refused in query.find_all(kind):
            msg = f"{what} ({refused.sql(_READ)})"
            raise SqlglotError(msg)
    for window in query.find_all(exp.Window):
        if window.alias and window.args.get("order"):
            msg = f"a named window with an order of its own ({window.sql(_READ)})"
            raise SqlglotError(msg)
    for unsorted in query.find_all(exp.ArrayAgg):
        if not isinstance(unsorted.parent, exp.ArraySort):
            msg = f"list() outside of list_sort(): Spark keeps no order ({unsorted.sql(_READ)})"
            raise SqlglotError(msg)
    for star in query.find_all(exp.Star):
        if any(star.args.get(key) for key in ("except_", "replace", "rename")):
            msg = "a star with EXCLUDE, REPLACE or RENAME, which Spark 3.5 does not have"
            raise SqlglotError(msg)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Rewrite a node that Spark would refuse if sqlglot copied it; return other nodes unchanged."""
    match node:
        case exp.CTE():
            node.set("materialized", None)
        case exp.Select() if len([*filter(_is_unnested, node.expressions)]) > 1:
            return _inlined(node)
    return node


def _is_unnested(column: exp.Expr) -> bool:
    return isinstance(column.unalias(), exp.Explode)


def _inlined(select: exp.Select) -> exp.Expr:
    """Rewrite a SELECT that unnests several lists, as Spark can unnest only one list in a SELECT.

    The new SELECT has one call of ``INLINE``.

    :raise SqlglotError: if the SELECT has other columns, or a FROM
    """
    if select.args.get("from_") or not all(map(_is_unnested, select.expressions)):
        msg = f"several lists to rows next to other columns ({select.sql(_READ)})"
        raise SqlglotError(msg)
    lists = ", ".join(column.unalias().this.sql(_WRITE) for column in select.expressions)
    names = ", ".join(f"`{column.alias}`" for column in select.expressions)
    return sqlglot.parse_one(f"SELECT INLINE(ARRAYS_ZIP({lists})) AS ({names})", read=_WRITE)


def on_disk(rows: DataFrame) -> DataFrame:
    """Keep rows on the disks of the executors, to be read several times.

    In memory, as Spark keeps rows else, those of ten million accesses leave too little of 6 GB for
    the sorting of others.
    """
    from pyspark import StorageLevel

    return rows.persist(StorageLevel.DISK_ONLY)


SESSION = {
    # Times in the tables have no zone; a session zone other than UTC could shift them.
    "spark.sql.session.timeZone": "UTC",
    # Errors in a query raise, as in DuckDB and by default in Spark 4; else Spark 3.5 gives null.
    "spark.sql.ansi.enabled": "true",
}


def session_of(session: SparkSession) -> SparkSession:
    """Give a new session of the same application, with views of its own and :data:`SESSION` set."""
    own = session.newSession()
    for key, value in SESSION.items():
        own.conf.set(key, value)
    return own
