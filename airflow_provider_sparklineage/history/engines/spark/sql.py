"""The SQL of steps and queries, written for DuckDB, in the words of Spark.

sqlglot knows both; what it would hand on word for word, or translate to something else than DuckDB
does, is refused here, so that it is a failing test and not another answer on another engine.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.history.tables import Column, Table

_READ, _WRITE = "duckdb", "spark"
_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Anonymous, "a function that sqlglot does not know"),
    (exp.GroupConcat, "string_agg(), which Spark has from 4.0 on"),
    (exp.Qualify, "QUALIFY, whose condition becomes a column in Spark"),
)


def spark_sql(sql: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> str:
    """Translate a query of DuckDB for Spark 3.5 and newer.

    Zones: a ``TIMESTAMP`` becomes ``TIMESTAMP_NTZ``, which has none either. Parameters: ``$name``
    becomes ``:name``.

    :param parameters: what is written for some of these, with ``{}`` where ``:name`` goes
    :raise HistoryError: if it is no SQL, or uses what the two do not have in common
    """
    try:
        query = sqlglot.parse_one(sql, read=_READ)
        _check(query)
        query = query.transform(_rewritten)
        for one in [*query.find_all(exp.Placeholder)]:
            if written := parameters.get(one.name):
                one.replace(sqlglot.parse_one(written.format(f":{one.name}"), read=_WRITE))
        return query.sql(_WRITE, unsupported_level=ErrorLevel.RAISE, identify=True)
    except SqlglotError as error:
        problem = f"A query of the history cannot be translated for Spark: {error}"
        raise HistoryError(problem, "Report it; DuckDB answers it.") from error


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
    for star in query.find_all(exp.Star):
        if any(star.args.get(key) for key in ("except_", "replace", "rename")):
            msg = "a star with EXCLUDE, REPLACE or RENAME, which Spark 3.5 does not have"
            raise SqlglotError(msg)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Write in other words what sqlglot would hand on as it is, and Spark does not take."""
    match node:
        case exp.CTE():
            node.set("materialized", None)
        case exp.Select() if len([*filter(_is_unnested, node.expressions)]) > 1:
            return _inlined(node)
        case exp.ArrayAgg():
            return _sorted_list(node)
    return node


def _is_unnested(column: exp.Expr) -> bool:
    return isinstance(column.unalias(), exp.Explode)


def _inlined(select: exp.Select) -> exp.Expr:
    """Make rows of several lists at once: a SELECT of Spark may unnest but one."""
    if select.args.get("from_") or not all(map(_is_unnested, select.expressions)):
        msg = f"several lists to rows next to other columns ({select.sql(_READ)})"
        raise SqlglotError(msg)
    lists = ", ".join(column.unalias().this.sql(_WRITE) for column in select.expressions)
    names = ", ".join(f"`{column.alias}`" for column in select.expressions)
    return sqlglot.parse_one(f"SELECT INLINE(ARRAYS_ZIP({lists})) AS ({names})", read=_WRITE)


def _sorted_list(found: exp.ArrayAgg) -> exp.Expr:
    """Sort what was collected, nulls included, which Spark collects in no order and leaves out."""
    order = found.this
    keys = order.expressions if isinstance(order, exp.Order) else []
    if not keys or any(key.args.get("desc") for key in keys):
        msg = f"list() without an ascending ORDER BY: Spark keeps none ({found.sql(_READ)})"
        raise SqlglotError(msg)
    parts = []
    for key in keys:  # fields of a struct are compared one by one, nulls first
        text = key.this.sql(_WRITE, identify=True)
        parts += [text] if key.args.get("nulls_first") else [f"{text} IS NULL", text]
    value = order.this.sql(_WRITE, identify=True)
    rows = f"ARRAY_SORT(COLLECT_LIST(STRUCT({', '.join(parts)}, {value} AS own)))"
    return sqlglot.parse_one(f"TRANSFORM({rows}, each -> each.own)", read=_WRITE)
