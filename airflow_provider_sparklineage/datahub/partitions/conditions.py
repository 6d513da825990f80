"""The facet ``subset`` of an event as a condition of the model, of which it was made."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.values import number_text
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Comparison,
    Condition,
    Locations,
    Operator,
    Partitions,
)

_Kind = TypeVar("_Kind", bound=StrEnum)
_DEEPEST = 50
"""Operators below each other: what is deeper was made to be deep."""


def condition(document: Any, depth: int = 0) -> Condition | None:
    """Read a condition of OpenLineage's ``BaseSubsetDatasetFacet``.

    :return: None for what is none, or has a part that is none: half of a condition is another one
    """
    found = lenient.mapping(document)
    match found.get("type"):
        case "partition":
            return Partitions(frozenset(map(_partition, lenient.items(found.get("partitions")))))
        case "location":
            return Locations(frozenset(lenient.texts(found.get("locations"))))
        case "compare":
            return _compare(found)
        case "binary" if depth < _DEEPEST:
            return _binary(found, depth)
        case _:
            return None


def _partition(document: dict[str, Any]) -> Partition:
    values = lenient.mapping(document.get("dimensions"))
    return Partition.of((lenient.text(k), _literal(v)) for k, v in values.items())


def _compare(found: dict[str, Any]) -> Condition | None:
    comparison = _one_of(Comparison, found.get("comparison"))
    if comparison is None:
        return None
    left, right = found.get("left"), found.get("right")
    if lenient.at(left, "type") == "literal":
        left, right, comparison = right, left, comparison.flipped
    field, value = lenient.at(left, "field"), _literal(lenient.at(right, "value"))
    if not isinstance(field, str) or value is None:
        return None
    return Compare(lenient.text(field), comparison, value)


def _literal(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else lenient.text(value)
    return number_text(value) if isinstance(value, int | float) else lenient.text(str(value))


def _binary(found: dict[str, Any], depth: int) -> Condition | None:
    left, right = (condition(found.get(side), depth + 1) for side in ("left", "right"))
    operator = _one_of(Operator, found.get("operator"))
    if left is None or right is None or operator is None:
        return None
    return Binary(operator, left, right)


def _one_of(kinds: type[_Kind], value: Any) -> _Kind | None:
    try:
        return kinds(value)
    except ValueError:
        return None
