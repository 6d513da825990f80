"""Conditions: which part of a dataset was read or written, as data, and their canonical form.

::

    Condition
    ├── Partitions    the rows of any of these partitions
    ├── Locations     what lies at or below any of these paths
    ├── Compare       the rows whose field compares so with a literal
    ├── Binary        AND or OR of two conditions
    └── Description   words, of which nothing is known but their text

The kinds are those of OpenLineage's BaseSubsetDatasetFacet 1-0-0, and the description of the
proposal that it comes from. A new kind is a new class in :data:`Condition`; mypy then names every
function that has to learn it. They are used through
:mod:`airflow_provider_sparklineage.model.subset`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Comparison(StrEnum):
    """How a field compares with a literal; the names are those of the specification."""

    EQUAL = "EQUAL"
    GREATER_THAN = "GREATER_THAN"
    GREATER_EQUAL_THAN = "GREATER_EQUAL_THAN"
    LESS_THAN = "LESS_THAN"
    LESS_EQUAL_THAN = "LESS_EQUAL_THAN"

    @property
    def symbol(self) -> str:
        """How SQL and people write it."""
        return _SYMBOLS[self]

    @property
    def flipped(self) -> Comparison:
        """The same with the sides exchanged: ``5 < x`` is ``x > 5``."""
        return _FLIPPED.get(self, self)


class Operator(StrEnum):
    """How two conditions are joined."""

    AND = "AND"
    OR = "OR"


_SYMBOLS = {
    Comparison.EQUAL: "=",
    Comparison.GREATER_THAN: ">",
    Comparison.GREATER_EQUAL_THAN: ">=",
    Comparison.LESS_THAN: "<",
    Comparison.LESS_EQUAL_THAN: "<=",
}
_FLIPPED = {
    Comparison.GREATER_THAN: Comparison.LESS_THAN,
    Comparison.GREATER_EQUAL_THAN: Comparison.LESS_EQUAL_THAN,
    Comparison.LESS_THAN: Comparison.GREATER_THAN,
    Comparison.LESS_EQUAL_THAN: Comparison.GREATER_EQUAL_THAN,
}


class Partitions(Frozen, frozen=True):
    """The rows of any of these partitions; none of them is legal: the empty selection.

    A partition selects the rows that have all of its values. One with fewer dimensions therefore
    contains those that extend it, and the partition without values contains every row.
    """

    partitions: frozenset[Partition]


class Locations(Frozen, frozen=True):
    """What lies at or below any of these paths; they are names, not globs."""

    locations: frozenset[str]


class Compare(Frozen, frozen=True):
    """The rows whose field compares so with a literal; a null compares with nothing.

    The field is on the left, always: ``5 < x`` is ``x > 5``. The value is text, as the
    specification has it.
    """

    field: str
    comparison: Comparison
    value: str


class Binary(Frozen, frozen=True):
    """AND or OR of two conditions."""

    operator: Operator
    left: Condition
    right: Condition


class Description(Frozen, frozen=True):
    """A condition in words, for what none of the other kinds can express."""

    text: str


Condition: TypeAlias = Partitions | Locations | Compare | Binary | Description

NOTHING = Partitions(frozenset())
"""The empty selection."""

EVERYTHING = Partitions(frozenset({Partition()}))
"""The full dataset."""


def disjunction(conditions: Iterable[Condition]) -> Condition:
    """Give the canonical form of the OR of all; :data:`NOTHING` of none.

    See :func:`conjunction`.
    """
    return _joined(Operator.OR, conditions)


def conjunction(conditions: Iterable[Condition]) -> Condition:
    """Give the canonical form of the AND of all; :data:`EVERYTHING` of none.

    Nested ANDs and ORs are one list each; duplicates go, and what another term absorbs
    (``x OR (x AND y)`` is ``x``); terms are sorted; the list is a balanced tree, so that no later
    walk is deep. Joining is associative, commutative and idempotent. Terms are compared as they
    are: ``x > 1 AND x > 2`` stays, and so do the partitions or locations of one term.
    """
    return _joined(Operator.AND, conditions)


def terms(condition: Condition, operator: Operator | None = None) -> Iterator[Condition]:
    """Walk the terms of nested conditions of one operator, from left to right.

    :param operator: AND or OR; by default that of the condition. A condition that is no such list
        is its own and only term.
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
            # In canonical form it may be a list of this operator, or no list any more.
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
    """Give the key that sorts terms: kinds never compare beyond their first number."""
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


def _without_absorbed(operator: Operator, found: Iterable[Condition]) -> Iterator[Condition]:
    """Drop the terms that others make superfluous: those that have all factors of another one.

    Candidates are found by their first factor, so that long lists stay linear.
    """
    other = Operator.AND if operator is Operator.OR else Operator.OR
    factors = {term: dict.fromkeys(terms(term, other)) for term in found}
    by_first: dict[Condition, list[Condition]] = {}
    for term, parts in factors.items():
        by_first.setdefault(next(iter(parts)), []).append(term)
    for term, parts in factors.items():
        candidates = (c for part in parts for c in by_first.get(part, ()))
        if not any(c != term and factors[c].keys() <= parts.keys() for c in candidates):
            yield term
