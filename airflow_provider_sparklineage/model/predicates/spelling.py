"""Conditions as SQL predicates of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from airflow_provider_sparklineage.model.partitioning import NULL
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Condition,
    Description,
    Locations,
    Partitions,
    terms,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.model.partitioning import Partition


def to_sql(condition: Condition) -> str:
    """Spell a condition as a predicate of Spark; :func:`condition` reads it back.

    Values are texts, which Spark converts to the type of the column. A description is put in as it
    is, and is SQL only if it came from SQL.

    :raise ValueError: of locations, which no predicate can say
    """
    match condition:
        case Partitions():
            return _any_of(_partition_sql(p) for p in sorted(condition.partitions))
        case Locations():
            msg = "Locations are no predicate: select by partitions or compares"
            raise ValueError(msg)
        case Compare():
            symbol = condition.comparison.symbol
            return f"{_name(condition.field)} {symbol} {_quoted(condition.value)}"
        case Binary():
            return f"({f' {condition.operator} '.join(to_sql(t) for t in terms(condition))})"
        case Description():
            return f"({condition.text})"
        case _:
            assert_never(condition)


def _partition_sql(partition: Partition) -> str:
    return _all_of(
        f"{_name(label)} IS NULL" if value == NULL else f"{_name(label)} = {_quoted(value)}"
        for label, value in partition.values
    )


def _all_of(parts: Iterable[str]) -> str:
    return f"({' AND '.join(spelled)})" if (spelled := list(parts)) else "TRUE"


def _any_of(parts: Iterable[str]) -> str:
    return f"({' OR '.join(spelled)})" if (spelled := list(parts)) else "FALSE"


def _name(field: str) -> str:
    escaped = field.replace("`", "``")
    return f"`{escaped}`"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
