"""Evaluation of a predicate for a partition: all rows fulfil it, none does, or it is not known.

AND and OR follow three-valued logic; what decides are comparisons of partition columns with
literals:

- numbers, dates, timestamps and booleans compare as such, by the type that Spark reports;
- texts are equal as texts. Which is less is known of times in one format, and of numbers where
  their order as numbers and as texts agree;
- a column of which an Iceberg transform is a dimension has values from the start of the
  partition's hour, day, month or year to its end. Literals are times of the session's zone and
  partitions are in UTC, so a day of 14 hours more on both ends must agree;
- a null compares with nothing.

All else is not known: columns of the data, functions, NOT, LIKE, buckets.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model import timestamps
from airflow_provider_sparklineage.model.partitioning import IDENTITY, NULL
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Comparison,
    Condition,
    Operator,
    Partitions,
)
from airflow_provider_sparklineage.model.timestamps import PRECISION, may_be_date, to_datetime
from airflow_provider_sparklineage.model.values import ValueKind, canonical_value, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

_ZONES = timedelta(hours=14)  # no zone is further from UTC
_DIGIT = re.compile(r"\d", re.ASCII)
_TAKES = {
    Comparison.EQUAL: (0,),
    Comparison.GREATER_THAN: (1,),
    Comparison.GREATER_EQUAL_THAN: (0, 1),
    Comparison.LESS_THAN: (-1,),
    Comparison.LESS_EQUAL_THAN: (-1, 0),
}


def both(verdicts: Iterable[bool | None]) -> bool | None:
    """AND of what is true, false, or not known."""
    found = set(verdicts)
    return False if False in found else None if None in found else True


def either(verdicts: Iterable[bool | None]) -> bool | None:
    """OR of what is true, false, or not known."""
    found = set(verdicts)
    return True if True in found else None if None in found else False


class Evaluation:
    """Evaluates conditions for partitions of one dataset."""

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self._by_label: dict[str, Dimension] = {}
        self._by_column: dict[str, Dimension] = {}
        for dimension in dimensions:
            self._by_label.setdefault(dimension.label.casefold(), dimension)
            if dimension.transform in PRECISION and len(dimension.fields) == 1:
                self._by_column.setdefault(dimension.fields[0].casefold(), dimension)

    def selects(self, condition: Condition, partition: Partition) -> bool | None:
        """Whether a condition selects all rows of a partition (True), or none (False)."""
        return self._selects(condition, partition.as_dict())

    def _selects(self, condition: Condition, values: Mapping[str, str]) -> bool | None:
        match condition:
            case Compare():
                return self._compares(condition, values)
            case Binary():
                join = both if condition.operator is Operator.AND else either
                return join(self._selects(c, values) for c in (condition.left, condition.right))
            case Partitions():
                return either(
                    both(
                        self._compares(Compare(label, Comparison.EQUAL, value), values)
                        for label, value in partition.values
                    )
                    for partition in condition.partitions
                )
            case _:
                return None

    def _compares(self, compare: Compare, values: Mapping[str, str]) -> bool | None:
        name = compare.field.replace("`", "").casefold()
        dimension = self._by_label.get(name)
        if dimension is None or (dimension.transform != IDENTITY and name in self._by_column):
            dimension = self._by_column.get(name)
            value = values.get(dimension.label) if dimension else None
            if dimension is None or value is None:
                return None
            return False if value == NULL else _within(compare, value, dimension)
        value = values.get(dimension.label)
        if value is None:
            return None
        if value == NULL:
            return compare.value == NULL and compare.comparison is Comparison.EQUAL
        if dimension.transform != IDENTITY and dimension.transform not in PRECISION:
            return None  # a bucket has other values than its column
        order = _order(value, compare.value, dimension)
        if order is None:
            is_equality = compare.comparison is Comparison.EQUAL
            return False if is_equality and _differ(value, compare.value, dimension) else None
        return order in _TAKES[compare.comparison]


def _order(value: str, literal: str, dimension: Dimension) -> int | None:
    """Compare a partition's value with a literal: -1, 0 or 1; None: not known."""
    one = canonical_value(value, dimension.format, dimension)
    kind = kind_of(dimension)
    if dimension.transform in PRECISION:
        other = canonical_value(literal, "", dimension)
        are_times = to_datetime(one, dimension.transform) and to_datetime(
            other, dimension.transform
        )
        return _sign(one, other) if are_times and len(one) == len(other) else None
    if kind in (ValueKind.DATE, ValueKind.TIMESTAMP):
        left, right = to_datetime(one), to_datetime(canonical_value(literal, "", None))
        return _sign(left, right) if left is not None and right is not None else None
    if kind is ValueKind.BOOLEAN:
        return 0 if one == literal.casefold() else None
    if kind in (ValueKind.INTEGRAL, ValueKind.FRACTIONAL):
        numbers = _number(value), _number(literal)
        return _sign(*numbers) if None not in numbers else None
    return _order_of_texts(value, literal, is_text=kind is ValueKind.TEXT)


def _order_of_texts(value: str, literal: str, *, is_text: bool) -> int | None:
    if value == literal:
        return 0
    by_text = _sign(value, literal)
    left, right = _number(value), _number(literal)
    if left is not None and right is not None:
        by_number = _sign(left, right)
        return by_text if by_text == by_number else None
    if _DIGIT.sub("0", value) == _DIGIT.sub("0", literal):
        return by_text
    if may_be_date(value) or may_be_date(literal):
        return None  # perhaps one time in two formats
    return by_text if is_text and left is None and right is None else None


def _differ(value: str, literal: str, dimension: Dimension) -> bool:
    """Whether a value whose order is not known is another one than a literal for certain."""
    if kind_of(dimension) is ValueKind.BOOLEAN:
        return literal.casefold() in ("true", "false")
    if kind_of(dimension) not in (ValueKind.TEXT, ValueKind.UNKNOWN):
        return False
    left, right = _number(value), _number(literal)
    if left is not None and right is not None:
        return left != right
    return not any(may_be_date(canonical_value(text, "", None)) for text in (value, literal))


def _within(compare: Compare, value: str, dimension: Dimension) -> bool | None:
    """Compare all times of a transform's partition with a literal."""
    transform = dimension.transform
    start = to_datetime(canonical_value(value, dimension.format, dimension), transform)
    literal = to_datetime(canonical_value(compare.value, "", None))
    if start is None or literal is None:
        return None
    try:
        first, end = start - _ZONES, timestamps.end_of(start, transform) + _ZONES
    except (ValueError, OverflowError):
        return None
    upward = compare.comparison in (Comparison.GREATER_THAN, Comparison.GREATER_EQUAL_THAN)
    if compare.comparison is Comparison.EQUAL:
        return None if first <= literal < end else False
    if first > literal:
        return upward
    if end <= literal:
        return not upward
    return None


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _sign(left: Any, right: Any) -> int:
    """Compare what is of one kind."""
    return int(left > right) - int(left < right)
