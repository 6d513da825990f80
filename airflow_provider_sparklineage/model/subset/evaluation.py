"""Whether all rows of a partition fulfil a predicate, none of them does, or that is not known.

A predicate is put together by three-valued logic; what decides are its comparisons of partition
columns with literals:

- numbers, dates, timestamps and booleans compare as such, by the type that Spark reports;
- of texts, equality is that of the text. Which is less is said of times in one format, and of
  numbers where their order as numbers and as texts agree;
- a column of which an Iceberg transform is a dimension has values from the start of the
  partition's hour, day, month or year to its end. Literals are times of the session's zone and
  partitions are cut in UTC, so a day of 14 hours more on both ends must agree;
- a null compares with nothing.

All else is not known: columns of the data, functions, NOT, LIKE, buckets.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.partitioning import IDENTITY, NULL
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Comparison,
    Condition,
    Operator,
    Partitions,
)
from airflow_provider_sparklineage.model.values import KEPT, ValueKind, has_zone, kind_of, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

_ZONES = timedelta(hours=14)  # no zone is further from UTC
_DIGIT = re.compile(r"\d", re.ASCII)
_DATED = re.compile(r"\d{4}-\d\d(-\d\d.*)?", re.ASCII | re.DOTALL)
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


class Satisfying:
    """Decides predicates for partitions of one dataset."""

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self._own: dict[str, Dimension] = {}
        self._cut: dict[str, Dimension] = {}
        for dimension in dimensions:
            self._own.setdefault(dimension.label.casefold(), dimension)
            if dimension.transform in KEPT and len(dimension.fields) == 1:
                self._cut.setdefault(dimension.fields[0].casefold(), dimension)

    def holds(self, condition: Condition, partition: Partition) -> bool | None:
        """Whether a condition selects all rows of a partition (True), or none (False)."""
        return self._holds(condition, partition.as_dict())

    def _holds(self, condition: Condition, values: Mapping[str, str]) -> bool | None:
        match condition:
            case Compare():
                return self._compares(condition, values)
            case Binary():
                join = both if condition.operator is Operator.AND else either
                return join(self._holds(c, values) for c in (condition.left, condition.right))
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
        dimension = self._own.get(name)
        if dimension is None or (dimension.transform != IDENTITY and name in self._cut):
            dimension = self._cut.get(name)
            value = values.get(dimension.label) if dimension else None
            if dimension is None or value is None:
                return None
            return False if value == NULL else _within(compare, value, dimension)
        value = values.get(dimension.label)
        if value is None:
            return None
        if value == NULL:
            return compare.value == NULL and compare.comparison is Comparison.EQUAL
        if dimension.transform != IDENTITY and dimension.transform not in KEPT:
            return None  # a bucket has other values than its column
        order = _order(value, compare.value, dimension)
        if order is None:
            is_equality = compare.comparison is Comparison.EQUAL
            return False if is_equality and _differ(value, compare.value, dimension) else None
        return order in _TAKES[compare.comparison]


def _order(value: str, literal: str, dimension: Dimension) -> int | None:
    """Compare a partition's value with a literal: -1, 0 or 1; None: not known."""
    one = spelled(value, dimension.format, dimension)
    kind = kind_of(dimension)
    if dimension.transform in KEPT:
        other = spelled(literal, "", dimension)
        are_moments = _moment(one, dimension.transform) and _moment(other, dimension.transform)
        return _sign(one, other) if are_moments and len(one) == len(other) else None
    if kind in (ValueKind.DATE, ValueKind.TIMESTAMP):
        left, right = _moment(one), _moment(spelled(literal, "", None))
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
    if _DATED.fullmatch(value) or _DATED.fullmatch(literal):
        return None  # perhaps one moment in two formats
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
    moments = spelled(value, "", None), spelled(literal, "", None)
    return not any(map(_DATED.fullmatch, moments))


def _within(compare: Compare, value: str, dimension: Dimension) -> bool | None:
    """Compare all moments of a transform's partition with a literal."""
    start = _moment(spelled(value, dimension.format, dimension), dimension.transform)
    literal = _moment(spelled(compare.value, "", None))
    if start is None or literal is None:
        return None
    try:
        first, end = start - _ZONES, _after(start, dimension.transform) + _ZONES
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


def _after(start: datetime, transform: str) -> datetime:
    if transform == "year":
        return start.replace(year=start.year + 1)
    if transform == "month":
        later = start + timedelta(days=31)
        return later.replace(day=1)
    return start + (timedelta(days=1) if transform == "day" else timedelta(hours=1))


def _moment(text: str, transform: str = "") -> datetime | None:
    """Read a spelled date or time without a zone; None of others, and of what is coarser."""
    if has_zone(text) or (not transform and len(text) < KEPT["day"]):
        return None
    padded = f"{text}-01-01"[: KEPT["day"]] if len(text) < KEPT["day"] else text
    try:
        moment = datetime.fromisoformat(padded)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _sign(left: Any, right: Any) -> int:
    """Compare what is of one kind."""
    return int(left > right) - int(left < right)
