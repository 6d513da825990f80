"""Subsets of datasets as conditions: their algebra, ranges of dates, and words for people.

This is what the rest of the package imports. The kinds of conditions and their canonical form are
in :mod:`~airflow_provider_sparklineage.model.subset.conditions`; :mod:`.evaluation` decides them
for partitions.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, assert_never

from airflow_provider_sparklineage.model.partitioning import NULL
from airflow_provider_sparklineage.model.subset.conditions import (
    EVERYTHING,
    NOTHING,
    Binary,
    Compare,
    Comparison,
    Condition,
    Description,
    Locations,
    Operator,
    Partitions,
    conjunction,
    disjunction,
    terms,
)
from airflow_provider_sparklineage.model.timestamps import step_counter
from airflow_provider_sparklineage.model.truncation import truncated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.model.partitioning import Partition

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Binary",
    "Compare",
    "Comparison",
    "Condition",
    "Description",
    "Locations",
    "Operator",
    "Partitions",
    "conjunction",
    "date_range",
    "disjunction",
    "terms",
    "to_text",
]

# What people read in one line of a table or a summary: enough to recognise a subset, never a list.
_NAMED = 3
_TERMS = 8
_LONGEST = 300


def date_range(partitions: frozenset[Partition], format: str) -> Condition | None:
    """Describe a gap-free run of dates as ``first <= label AND label <= last``.

    The step is the smallest part of the format: years, months, days, hours, minutes or seconds.
    Other labels must have one value each, and become EQUAL compares of the same AND. Hours are
    those of a clock without changes: the hour that a change of time leaves out is a gap.

    :param format: the format of the one label that varies, in the directives
        ``%Y %m %d %H %M %S``, from large to small as in ``%Y-%m-%d``: only such text sorts in the
        order of time
    :return: None of fewer than two partitions, if there are gaps, values of another format,
        several labels that vary, or the format is another; nor of nulls, which no compare selects
    """
    columns = _values_by_label(partitions)
    varying = [label for label, values in columns.items() if len(values) > 1]
    step_of = step_counter(format)
    if len(varying) != 1 or step_of is None:
        return None
    (label,) = varying
    fixed = {field: value for field, (value, *_) in columns.items() if field != label}
    if NULL in fixed.values():
        return None
    by_step: dict[int, str] = {}
    for value in columns[label]:
        step = step_of(value)
        if step is None:
            return None
        by_step[step] = value
    first, last = min(by_step), max(by_step)
    if last - first + 1 != len(by_step):
        return None
    return conjunction(
        [
            Compare(label, Comparison.GREATER_EQUAL_THAN, by_step[first]),
            Compare(label, Comparison.LESS_EQUAL_THAN, by_step[last]),
            *(Compare(field, Comparison.EQUAL, value) for field, value in fixed.items()),
        ]
    )


def to_text(condition: Condition) -> str:
    """Describe a condition to people, in at most 300 characters.

    >>> to_text(Compare("dt", Comparison.EQUAL, "2024-05-06"))
    'dt=2024-05-06'
    """
    return truncated(_text(condition), _LONGEST)


def _values_by_label(partitions: frozenset[Partition]) -> dict[str, set[str]]:
    """Give all values of each label; nothing if some partition has other labels."""
    each = [partition.as_dict() for partition in partitions]
    if not each or any(values.keys() != each[0].keys() for values in each):
        return {}
    return {label: {values[label] for values in each} for label in each[0]}


def _text(condition: Condition) -> str:
    match condition:
        case Partitions():
            return _names(condition.partitions, "partition")
        case Locations():
            return _names(condition.locations, "location")
        case Compare():
            if condition.comparison is Comparison.EQUAL:
                return f"{condition.field}={condition.value}"
            return f"{condition.field} {condition.comparison.symbol} {condition.value}"
        case Binary():
            return _joined_text(condition)
        case Description():
            return condition.text
        case _:
            assert_never(condition)


def _names(names: Iterable[object], kind: str) -> str:
    """Name a few, or the first and the last with their number."""
    texts = {str(name) for name in names}
    if "" in texts:
        return "everything"
    if not texts:
        return f"no {kind}"
    if len(texts) <= _NAMED:
        return ", ".join(sorted(texts))
    return f"{min(texts)} … {max(texts)} ({len(texts)} {kind}s)"


def _joined_text(condition: Binary) -> str:
    if (as_range := _range_text(condition)) is not None:
        return as_range
    named = [
        f"({_text(term)})"
        if isinstance(term, Binary) and _range_text(term) is None
        else _text(term)
        for term in islice(terms(condition), _TERMS)
    ]
    more = sum(1 for _ in terms(condition)) - len(named)
    return f" {condition.operator} ".join([*named, *([f"… ({more} more)"] if more else [])])


def _range_text(condition: Binary) -> str | None:
    """Write ``first <= field <= last`` of an AND of two compares that bound one field."""
    low, high = condition.left, condition.right
    if not (
        condition.operator is Operator.AND
        and isinstance(low, Compare)
        and isinstance(high, Compare)
    ):
        return None
    if low.comparison.symbol[0] == "<":
        low, high = high, low
    if low.field != high.field or (low.comparison.symbol[0] + high.comparison.symbol[0] != "><"):
        return None
    flipped = low.comparison.symbol.replace(">", "<")
    return f"{low.value} {flipped} {low.field} {high.comparison.symbol} {high.value}"
