"""Subsets of datasets as conditions: their algebra, ranges of dates, and their readable texts.

A condition is data that says which part of a dataset was read or written, in a canonical form::

    Condition
    ├── Partitions    the rows in any of some partitions
    ├── Locations     the files at or below any of some paths
    ├── Compare       the rows of which one field fulfils a comparison with a literal
    ├── Binary        the AND or OR of two conditions
    └── Description   a readable text, which programs cannot interpret

The kinds are those of OpenLineage's BaseSubsetDatasetFacet 1-0-0, and the description is from the
proposal of that facet. A new kind is a new class in :data:`Condition`; mypy then names every
function that has to handle it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from airflow_provider_sparklineage.model.partitioning import (
    IDENTITY,
    NULL,
    Partition,
    ValueKind,
    canonical_value,
    kind_of,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.model.timestamps import (
    PRECISION,
    may_be_date,
    number_of,
    start_of,
    step_counter,
    to_datetime,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.partitioning import Dimension


class Comparison(StrEnum):
    """A comparison of a field with a literal, by its name in OpenLineage's subset facet."""

    EQUAL = "EQUAL"
    GREATER_THAN = "GREATER_THAN"
    GREATER_EQUAL_THAN = "GREATER_EQUAL_THAN"
    LESS_THAN = "LESS_THAN"
    LESS_EQUAL_THAN = "LESS_EQUAL_THAN"

    @property
    def symbol(self) -> str:
        """The sign of the comparison in SQL, such as ``>=``."""
        return _SYMBOLS[self]

    @property
    def flipped(self) -> Comparison:
        """The comparison after both sides are exchanged, as from ``5 < x`` to ``x > 5``."""
        return BY_SYMBOL[self.symbol.translate(_EXCHANGED)]


class Operator(StrEnum):
    """The operator that joins two conditions."""

    AND = "AND"
    OR = "OR"


_SYMBOLS = {
    Comparison.EQUAL: "=",
    Comparison.GREATER_THAN: ">",
    Comparison.GREATER_EQUAL_THAN: ">=",
    Comparison.LESS_THAN: "<",
    Comparison.LESS_EQUAL_THAN: "<=",
}
BY_SYMBOL = {symbol: comparison for comparison, symbol in _SYMBOLS.items()}
_EXCHANGED = str.maketrans("<>", "><")


class Partitions(Frozen, frozen=True):
    """A condition that selects the rows in any of its partitions; without partitions, no rows.

    A partition selects the rows that have all values of the partition. So ``dt=1`` contains
    ``dt=1/hour=2``, and the partition without values contains every row.
    """

    partitions: frozenset[Partition]


class Locations(Frozen, frozen=True):
    """A condition that selects the files at or below any of its paths, which are not globs."""

    locations: frozenset[str]


class Compare(Frozen, frozen=True):
    """A condition that compares a field with a literal; it selects no row whose field is null.

    The field is always on the left: ``5 < x`` is ``x > 5``. The value is text, as in
    OpenLineage's subset facet.
    """

    field: str
    comparison: Comparison
    value: str


class Binary(Frozen, frozen=True):
    """A condition that is the AND or the OR of two conditions."""

    operator: Operator
    left: Condition
    right: Condition


class Description(Frozen, frozen=True):
    """A condition in words, for conditions that no other kind can express."""

    text: str


Condition: TypeAlias = Partitions | Locations | Compare | Binary | Description

NOTHING = Partitions(frozenset())
"""The empty selection."""

EVERYTHING = Partitions(frozenset({Partition()}))
"""The full dataset."""


def disjunction(conditions: Iterable[Condition]) -> Condition:
    """Give the canonical form of the OR of conditions; :data:`NOTHING` for no conditions.

    The form is described at :func:`conjunction`.
    """
    return _joined(Operator.OR, conditions)


def conjunction(conditions: Iterable[Condition]) -> Condition:
    """Give the canonical form of the AND of conditions; :data:`EVERYTHING` for no conditions.

    Nested ANDs, and nested ORs, become one list of terms. Terms are dropped if they are duplicates,
    or if another term absorbs them (``x OR (x AND y)`` is ``x``). The other terms are sorted and
    become a balanced tree, so that later recursion is not deep. Joining is associative, commutative
    and idempotent. Nothing else is simplified: ``x > 1 AND x > 2`` is not changed, nor are the
    partitions or locations of a term.
    """
    return _joined(Operator.AND, conditions)


def terms(condition: Condition, operator: Operator | None = None) -> Iterator[Condition]:
    """Yield the terms of nested conditions of one operator, from left to right.

    :param operator: AND or OR; by default the condition's own operator. A condition with another
        operator, or of another kind, is its own single term
    """
    wanted = operator or (condition.operator if isinstance(condition, Binary) else None)
    waiting = [condition]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Binary) and term.operator == wanted:
            waiting += (term.right, term.left)
        else:
            yield term


def _joined(operator: Operator, conditions: Iterable[Condition]) -> Condition:
    neutral, absorbing = EVERYTHING, NOTHING
    if operator is Operator.OR:
        neutral, absorbing = absorbing, neutral
    flat: dict[Condition, None] = {}  # an ordered set
    for condition in conditions:
        if isinstance(condition, Binary):
            # The condition's canonical form may have this operator, or be a single term.
            condition = _joined(condition.operator, terms(condition))
        flat.update(dict.fromkeys(terms(condition, operator)))
    if absorbing in flat:
        return absorbing
    flat.pop(neutral, None)
    return _tree(operator, sorted(_without_absorbed(operator, flat), key=_rank)) or neutral


def _tree(operator: Operator, level: Sequence[Condition]) -> Condition | None:
    while len(level) > 1:
        pairs = [Binary(operator, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0] if level else None


def _rank(condition: Condition) -> tuple[Any, ...]:
    """Give the sort key of a term; its first number differs for each kind of condition."""
    match condition:
        case Partitions():
            return 0, sorted(condition.partitions)
        case Locations():
            return 1, sorted(condition.locations)
        case Compare():
            return 2, condition.field, condition.comparison, condition.value
        case Binary():
            return 3, condition.operator, [_rank(t) for t in terms(condition)]
        case Description():
            return 4, condition.text
        case _:
            assert_never(condition)


def _without_absorbed(operator: Operator, joined: Iterable[Condition]) -> Iterator[Condition]:
    """Drop each term that adds nothing to another term: ``x AND y`` in ``x OR (x AND y)``.

    Such a term has all conditions of the other term, and more. The other term is looked up by its
    first condition, so that the time for long lists stays linear.

    :param operator: the operator that joins the terms
    :param joined: the terms
    """
    other = Operator.AND if operator is Operator.OR else Operator.OR
    factors = {term: dict.fromkeys(terms(term, other)) for term in joined}
    by_first: dict[Condition, list[Condition]] = {}
    for term, parts in factors.items():
        by_first.setdefault(next(iter(parts)), []).append(term)
    for term, parts in factors.items():
        candidates = (c for part in parts for c in by_first.get(part, ()))
        if not any(c != term and factors[c].keys() <= parts.keys() for c in candidates):
            yield term


# Limits of a text for one line of a table, which lets people recognise a subset, and is not a list.
_NAMED = 3
_TERMS = 8
_LONGEST = 300


def date_range(partitions: frozenset[Partition], format: str) -> Condition | None:
    """Describe dates without gaps as ``first <= label AND label <= last``.

    The step is the smallest part of the format: years, months, days, hours, minutes or seconds.
    Other labels must have one value each, and become EQUAL compares of the same AND. Hours are
    counted without regard to time changes: an hour that a time change leaves out is a gap.

    :param format: the format of the one label that varies, in the directives
        ``%Y %m %d %H %M %S``, from large to small as in ``%Y-%m-%d``: only such text sorts in the
        order of time
    :return: None if there are fewer than two partitions, if dates are missing between the first and
        the last, if several labels vary, if a value is null (which no compare selects) or in
        another format, or if the format has other directives
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
    """Describe a condition in a readable text of at most 300 characters.

    >>> to_text(Compare("dt", Comparison.EQUAL, "2024-05-06"))
    'dt=2024-05-06'
    """
    return truncated(_text(condition), _LONGEST)


def _values_by_label(partitions: frozenset[Partition]) -> dict[str, set[str]]:
    """Give all values of each label; {} if the partitions have different labels."""
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


class Extent(Frozen, frozen=True):
    """The first and the last partition of a set (both None if the set is empty), and its size."""

    first: Partition | None
    last: Partition | None
    count: int

    @property
    def summary(self) -> str:
        """Describe partitions in a few words: one by its name, several by the first and last."""
        if self.first is None:
            return "no partition"
        if self.count == 1:
            return str(self.first)
        return f"{self.first} … {self.last} ({self.count} partitions)"


def extent(partitions: Collection[Partition]) -> Extent:
    """Give the extent of partitions; no partition may occur twice."""
    return Extent(min(partitions, default=None), max(partitions, default=None), len(partitions))


def _names(names: Iterable[object], kind: str) -> str:
    """List up to three names; of more names, give the first, the last and their number.

    :param kind: the noun for one of the named things, such as ``partition``
    """
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
    """Format an AND of two compares that bound one field as ``first <= field <= last``.

    :return: None for any other condition
    """
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


# --- evaluation of a predicate for a partition: all its rows fulfil it, none does, or not known ---
#
# AND and OR follow three-valued logic. Only comparisons of partition columns with literals have a
# known verdict:
#
# - numbers, dates, timestamps and booleans are compared by the type that Spark reports;
# - texts are equal if they are the same text. Their order is known for times in one format, and for
#   numbers that have the same order as numbers and as texts;
# - if a dimension is an Iceberg transform of a column, the column's values are from the start of
#   the partition's hour, day, month or year to its end. Literals are times of the session's zone,
#   and partitions are in UTC, so the verdict must hold for 14 hours more on both ends;
# - a comparison with a null is false.
#
# The verdict on other predicates is "not known": on columns of the data, functions, NOT, LIKE and
# buckets.


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
    """Join verdicts with AND: False if one is False, else None if one is None, else True."""
    different = set(verdicts)
    return False if False in different else None if None in different else True


def either(verdicts: Iterable[bool | None]) -> bool | None:
    """Join verdicts with OR: True if one is True, else None if one is None, else False."""
    different = set(verdicts)
    return True if True in different else None if None in different else False


class Evaluation:
    """Evaluates conditions for the partitions of one dataset."""

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self._by_label: dict[str, Dimension] = {}
        self._by_column: dict[str, Dimension] = {}
        for dimension in dimensions:
            self._by_label.setdefault(dimension.label.casefold(), dimension)
            if dimension.transform in PRECISION and len(dimension.fields) == 1:
                self._by_column.setdefault(dimension.fields[0].casefold(), dimension)

    def selects(self, condition: Condition, partition: Partition) -> bool | None:
        """Whether a condition selects all rows of a partition (True) or none (False).

        :return: None if that is not known, or if the condition selects only some rows
        """
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
            return None  # a bucket's number is not a value of the column
        order = _order(value, compare.value, dimension)
        if order is None:
            is_equality = compare.comparison is Comparison.EQUAL
            return False if is_equality and _differ(value, compare.value, dimension) else None
        return order in _TAKES[compare.comparison]


def _order(value: str, literal: str, dimension: Dimension) -> int | None:
    """Compare a partition's value with a literal: -1, 0 or 1; None if their order is not known.

    :param dimension: the value's dimension, whose type decides how the two are compared
    """
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
    """Whether a value surely differs from a literal, although their order is not known.

    :param dimension: the value's dimension
    """
    if kind_of(dimension) is ValueKind.BOOLEAN:
        return literal.casefold() in ("true", "false")
    if kind_of(dimension) not in (ValueKind.TEXT, ValueKind.UNKNOWN):
        return False
    left, right = _number(value), _number(literal)
    if left is not None and right is not None:
        return left != right
    return not any(may_be_date(canonical_value(text, "", None)) for text in (value, literal))


def _within(compare: Compare, value: str, dimension: Dimension) -> bool | None:
    """Whether all times in a partition of a transform, such as a day, fulfil a comparison.

    :param value: the partition's value, e.g. ``2024-05-06`` for a day
    :param dimension: the value's dimension; its transform is a key of
        :data:`~.timestamps.PRECISION`
    :return: False if none of the times does; None if only some do, or if that is not known
    """
    transform = dimension.transform
    start = to_datetime(canonical_value(value, dimension.format, dimension), transform)
    literal = to_datetime(canonical_value(compare.value, "", None))
    if start is None or literal is None:
        return None
    try:
        next_start = start_of(transform, number_of(transform, start) + 1)
        first, end = start - _ZONES, next_start + _ZONES
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
    """Compare two values of one type: -1, 0 or 1."""
    return int(left > right) - int(left < right)
