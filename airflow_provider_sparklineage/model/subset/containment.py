"""Whether one condition selects all that another does: yes, no, or not known.

The answer is *yes* where it follows from the two conditions, and *no* where there is a row that the
inner one selects and the outer one does not; both hold whatever the data are. Everything else is
not known. Assumptions, each where it is used:

- partitions are told apart by the text of their values, and labels may have values that neither
  condition names;
- a field whose literals are numbers holds numbers, and if they are whole numbers, all whole ones;
  a field whose literals are ISO dates holds every date;
- of a description nothing is known, not even that it means the same as one of the same words: two
  sub-queries are both ``dynamicpruningsubquery(dt)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain, islice, product
from math import inf
from typing import TYPE_CHECKING, assert_never

from airflow_provider_sparklineage.model.partitioning import NULL
from airflow_provider_sparklineage.model.subset.conditions import (
    Binary,
    Compare,
    Comparison,
    Condition,
    Description,
    Locations,
    Operator,
    Partitions,
    folded,
    lies_in,
    terms,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,30}", re.ASCII)
# Dates and times that sort as text if they are of one format; an offset other than Z does not.
_TIME = re.compile(r"\d{4}-\d\d(-\d\d([ T-]\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?", re.ASCII)
# What Spark may read as one date or time in several spellings: 2024 is also 2024-01-01 00:00:00.
_ANY_TIME = re.compile(r"\d{4}(-\d.*)?", re.ASCII | re.DOTALL)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)
_ANOTHER = "\0another value"
_BOOLEANS = frozenset({"true", "false"})

# How much is tried before the answer is "not known": partitions looked through for another
# spelling of a value, rows per alternative, rows in all, and those times what each is compared
# with. Each keeps an answer below a second.
_LOOKED_THROUGH = 1_000
_ROWS_EACH = 256
_ROWS = 4_096
_COMPARED = 50_000
_SHORT = 16  # comparisons that any number of alternatives is tried with
_VALUES = 8
# ORs within ANDs within ORs of the inner condition that are split: each level multiplies the work.
_NESTED = 3


@dataclass(frozen=True)
class _Row:
    """What is known of some rows: values by field; a field that is not there may have any.

    :param exact: whether the values are all those of partitions, spelled as their folders
    """

    values: dict[str, str]
    exact: bool


def contains(outer: Condition, inner: Condition) -> bool | None:
    """Whether the outer condition selects all that the inner one does.

    :return: always True or False for partitions in partitions; None: not known
    """
    if not (isinstance(outer, Partitions) and isinstance(inner, Partitions)):
        outer, inner = folded(outer), folded(inner)  # partitions are compared as they are
    if isinstance(outer, Partitions) and isinstance(inner, Partitions):
        return inner.partitions <= outer.partitions or all(
            outer.holds(p.as_dict()) for p in inner.partitions
        )
    if isinstance(outer, Locations) and isinstance(inner, Locations):
        return _locations_contain(outer.locations, inner.locations)
    listed = _listed(outer)
    size = _size(outer)
    rows_left = min(_ROWS, _COMPARED // size)
    tries = rows_left if size > _SHORT else inf
    verdict: bool | None = True
    for row, piece in _alternatives(inner):
        if any(value in listed.get(field, ()) for field, value in row.values.items()):
            continue
        if tries <= 0:
            return None
        tries -= 1
        if _follows(outer, row, piece):
            continue
        if _selects(piece, row) is True and _selects(outer, row) is False:
            return False
        rows = list(islice(_witnesses(outer, row, piece), rows_left))
        rows_left -= len(rows)
        if any(_selects(piece, r) is True and _selects(outer, r) is False for r in rows):
            return False
        verdict = None
    return verdict


def _listed(outer: Condition) -> dict[str, set[str]]:
    """Give the values by field of which a condition selects every row: those of an IN list."""
    listed: dict[str, set[str]] = {}
    for term in terms(outer, Operator.OR):
        if isinstance(term, Compare) and term.comparison is Comparison.EQUAL:
            listed.setdefault(term.field, set()).add(term.value)
    return {field: values - {NULL} for field, values in listed.items()}


def _size(condition: Condition) -> int:
    """Count what a row is compared with."""
    return sum(map(_size, terms(condition))) if isinstance(condition, Binary) else 1


def _locations_contain(outer: frozenset[str], inner: frozenset[str]) -> bool | None:
    """Decide by the paths; what lies partly below the outer ones may lie there as a whole."""
    outside = [location for location in inner if not lies_in(location, outer)]
    if not outside:
        return True
    apart = {x for x in outside if not any(lies_in(o, frozenset({x})) for o in outer)}
    return False if apart else None


def _alternatives(inner: Condition) -> Iterator[tuple[_Row, Condition]]:
    """Split a folded condition at its ORs and partitions: what is known of the rows of each."""
    for term in terms(inner, Operator.OR):
        factors = list(terms(term, Operator.AND))
        equal = {
            f.field: f.value
            for f in factors
            if isinstance(f, Compare) and f.comparison is Comparison.EQUAL
        }
        partitions = next((f.partitions for f in factors if isinstance(f, Partitions)), None)
        if partitions is None:
            yield _Row(equal, exact=False), term
        else:
            for partition in partitions:
                yield _Row(equal | partition.as_dict(), exact=not equal), term


def _follows(outer: Condition, row: _Row, piece: Condition, depth: int = _NESTED) -> bool:
    """Whether every such row of a piece (no OR) is selected, as far as that can be derived."""
    if _selects(outer, row) is True:
        return True
    for factor in terms(piece, Operator.AND):
        if (
            depth
            and isinstance(factor, Binary)
            and all(_follows(outer, r, p, depth - 1) for r, p in _alternatives(factor))
        ):
            return True
    match outer:
        case Binary(operator=Operator.AND):
            return all(_follows(term, row, piece, depth) for term in terms(outer))
        case Binary():
            return any(_follows(term, row, piece, depth) for term in terms(outer))
        case Compare():
            return any(_implies(factor, outer) for factor in terms(piece, Operator.AND))
        case Locations():
            return any(
                isinstance(factor, Locations)
                and all(lies_in(x, outer.locations) for x in factor.locations)
                for factor in terms(piece, Operator.AND)
            )
        case Partitions() | Description():
            return False
        case _:
            assert_never(outer)


def _implies(inner: Condition, outer: Compare) -> bool:
    if not isinstance(inner, Compare) or inner.field != outer.field:
        return False
    if outer.comparison is Comparison.EQUAL or inner.comparison is Comparison.EQUAL:
        return inner == outer  # an EQUAL inside is a known value of the row: decided there
    upward = (Comparison.GREATER_THAN, Comparison.GREATER_EQUAL_THAN)
    if (inner.comparison in upward) != (outer.comparison in upward):
        return False
    order = _order(inner.value, outer.value)
    if order is None:
        return False
    further = order if inner.comparison in upward else -order
    strict = (Comparison.GREATER_THAN, Comparison.LESS_THAN)
    return further > 0 or (
        further == 0 and (inner.comparison in strict or outer.comparison not in strict)
    )


def _selects(condition: Condition, row: _Row) -> bool | None:
    """Whether a condition selects all such rows (True), none (False), or that is not known."""
    match condition:
        case Partitions():
            return _some_selects(condition, row)
        case Compare():
            return _compares(condition, row.values.get(condition.field))
        case Binary():
            found = {_selects(term, row) for term in (condition.left, condition.right)}
            decisive = condition.operator is Operator.OR
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        case Locations() | Description():
            return None
        case _:
            assert_never(condition)


def _some_selects(condition: Partitions, row: _Row) -> bool | None:
    if condition.holds(row.values):
        return True
    if not row.values.keys() >= condition.labels:
        return None if condition.partitions else False
    if row.exact:
        return False
    if len(condition.partitions) > _LOOKED_THROUGH:
        return None
    for partition in condition.partitions:
        if all(_same(row.values[label], value) is not False for label, value in partition.values):
            return None
    return False


def _compares(condition: Compare, value: str | None) -> bool | None:
    if value is None:
        return None
    if value == NULL:
        return False
    if condition.comparison is Comparison.EQUAL:
        return _same(value, condition.value)
    order = _order(value, condition.value)
    if order is None:
        return None
    match condition.comparison:
        case Comparison.GREATER_THAN:
            return order > 0
        case Comparison.GREATER_EQUAL_THAN:
            return order >= 0
        case Comparison.LESS_THAN:
            return order < 0
        case Comparison.LESS_EQUAL_THAN:
            return order <= 0
        case _:
            assert_never(condition.comparison)


def _same(a: str, b: str) -> bool | None:
    """Whether two literals are one value; None: they may be two spellings of one."""
    if a == b:
        return True
    order = _order(a, b)
    if order is not None:
        return None if order == 0 else False
    times = _ANY_TIME.fullmatch(a) and _ANY_TIME.fullmatch(b)
    return None if times or a.strip().casefold() == b.strip().casefold() else False


def _order(a: str, b: str) -> int | None:
    """Compare two literals: numbers, or dates and times of one format; None: not known."""
    if a == b:
        return 0
    if _NUMBER.fullmatch(a) and _NUMBER.fullmatch(b):
        left, right = Decimal(a), Decimal(b)
        return (left > right) - (left < right)
    if _TIME.fullmatch(a) and _TIME.fullmatch(b) and _DIGIT.sub("0", a) == _DIGIT.sub("0", b):
        return (a > b) - (a < b)
    return None


def _witnesses(outer: Condition, row: _Row, piece: Condition) -> Iterator[_Row]:
    """Think of rows of a piece: known values, and for other fields those around the literals."""
    literals: dict[str, set[str]] = {}
    for condition in (outer, piece):
        for field, value in _literals(condition):
            literals.setdefault(field, set()).update(value)
    free = sorted(literals.keys() - row.values.keys())
    choices = product(*(_candidates(literals[field]) for field in free))
    for values in islice(choices, _ROWS_EACH):
        yield _Row(row.values | dict(zip(free, values, strict=True)), row.exact and not free)


def _literals(condition: Condition) -> Iterator[tuple[str, Iterable[str]]]:
    """Give fields and the literals that they are compared with; of partitions the labels only."""
    match condition:
        case Partitions():
            yield from ((label, ()) for label in condition.labels)
        case Compare():
            yield condition.field, (condition.value,)
        case Binary():
            yield from chain.from_iterable(_literals(term) for term in terms(condition))
        case Locations() | Description():
            return
        case _:
            assert_never(condition)


def _candidates(literals: set[str]) -> list[str]:
    """Give values that a field may have: the literals, their neighbours, and one unlike them.

    A flag has no third value.
    """
    near = sorted(literals | set(chain.from_iterable(_neighbours(v) for v in literals)))
    if len(near) > _VALUES:
        near = [*near[: _VALUES // 2], *near[-_VALUES // 2 :]]
    return near if {v.casefold() for v in literals} & _BOOLEANS else [*near, _ANOTHER]


def _neighbours(value: str) -> list[str]:
    """Give the next whole numbers or dates; none of years before 1 and after 9999."""
    if _WHOLE.fullmatch(value):
        return [str(int(value) - 1), str(int(value) + 1)]
    if not _DATE.fullmatch(value):
        return []
    try:
        day = date.fromisoformat(value)
        return [str(day - timedelta(days=1)), str(day + timedelta(days=1))]
    except (ValueError, OverflowError):
        return []
