"""Conditions: which part of a dataset is meant, as data, and their canonical form.

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

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Partitions by their values, by their labels; both in the order of the labels.
_Shapes: TypeAlias = dict[tuple[str, ...], dict[tuple[str, ...], Partition]]


class Comparison(StrEnum):
    """How a field compares with a literal, in the words of the specification."""

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
    """How two conditions are put together."""

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


@dataclass(frozen=True)
class Partitions:
    """The rows of any of these partitions; none of them is legal: the empty selection.

    A partition selects the rows that have all of its values. One with fewer dimensions therefore
    holds those that extend it, and the partition without values holds every row.
    """

    partitions: frozenset[Partition]

    @cached_property
    def _shapes(self) -> _Shapes:
        return _by_shape(self.partitions)

    @property
    def labels(self) -> frozenset[str]:
        """The labels of all the partitions."""
        return frozenset(chain.from_iterable(self._shapes))

    def holds(self, values: dict[str, str]) -> bool:
        """Whether rows with these values by label, and whatever others, are all selected."""
        return _is_held(values, self._shapes)


@dataclass(frozen=True)
class Locations:
    """What lies at or below any of these paths; they are names, not globs."""

    locations: frozenset[str]


@dataclass(frozen=True)
class Compare:
    """The rows whose field compares so with a literal; a null compares with nothing.

    The field is on the left, always: ``5 < x`` is ``x > 5``. The value is text, as the
    specification has it.
    """

    field: str
    comparison: Comparison
    value: str


@dataclass(frozen=True)
class Binary:
    """AND or OR of two conditions."""

    operator: Operator
    left: Condition
    right: Condition


@dataclass(frozen=True)
class Description:
    """A condition in words, for what none of the other kinds can say."""

    text: str


Condition: TypeAlias = Partitions | Locations | Compare | Binary | Description

NOTHING = Partitions(frozenset())
"""The empty selection; also what an empty set of locations folds to."""

EVERYTHING = Partitions(frozenset({Partition()}))
"""The whole dataset."""


def union(a: Condition, b: Condition) -> Condition:
    """Select what either selects; associative, commutative, idempotent on folded conditions."""
    return disjunction((a, b))


def intersection(a: Condition, b: Condition) -> Condition:
    """Select what both select.

    Associative, commutative and idempotent on folded conditions, as far as all partitions spell
    their labels in one order.
    """
    return conjunction((a, b))


def disjunction(conditions: Iterable[Condition]) -> Condition:
    """Fold the OR of all; :data:`NOTHING` of none."""
    return _joined(Operator.OR, conditions)


def conjunction(conditions: Iterable[Condition]) -> Condition:
    """Fold the AND of all; :data:`EVERYTHING` of none."""
    return _joined(Operator.AND, conditions)


def folded(condition: Condition) -> Condition:
    """Give the canonical form, which selects the same; idempotent, linear in partitions.

    Nested ANDs and ORs are one list each; duplicates go, and what another term absorbs
    (``x OR (x AND y)`` is ``x``, ``dt=1`` absorbs ``dt=1/region=eu``); partitions of one list are
    one term, locations too; terms are sorted; the list is a balanced tree, so that no later walk
    is deep. Values are compared as text only: ``x > 1 AND x > 2`` stays.
    """
    match condition:
        case Partitions():
            return _partitions(condition.partitions)
        case Locations():
            return _locations(condition.locations)
        case Compare() | Description():
            return condition
        case Binary():
            return _joined(condition.operator, terms(condition))
        case _:
            assert_never(condition)


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


def topmost(locations: Iterable[str]) -> frozenset[str]:
    """Drop trailing slashes, and the locations that lie below others."""
    spelled = {location.rstrip("/") or "/" for location in locations}
    return frozenset(s for s in spelled if not any(a in spelled for a in _ancestors(s)))


def lies_in(location: str, locations: frozenset[str]) -> bool:
    """Whether a location is one of others, or below one of them."""
    return location in locations or any(a in locations for a in _ancestors(location))


def _ancestors(location: str) -> Iterator[str]:
    at = location.rfind("/")
    while at > 0:
        yield location[:at]
        at = location.rfind("/", 0, at)
    if at == 0 and location != "/":
        yield "/"


def _joined(operator: Operator, conditions: Iterable[Condition]) -> Condition:
    """Fold a list; a condition of it, when folded, may itself have become such a list.

    Partitions and locations need no folding of their own: they become one term each.
    """
    flat: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Binary):
            flat.extend(terms(folded(condition), operator))
        else:
            flat.append(condition)
    partitions = [t for t in flat if isinstance(t, Partitions)]
    locations = [t for t in flat if isinstance(t, Locations)]
    kinds: tuple[Condition, Condition]
    if operator is Operator.OR:
        kinds = (
            _partitions(chain.from_iterable(t.partitions for t in partitions)),
            _locations(chain.from_iterable(t.locations for t in locations)),
        )
        neutral, absorbing = NOTHING, EVERYTHING
    else:
        kinds = (
            reduce(_partitions_of_both, partitions, EVERYTHING),
            _locations_of_all(locations),
        )
        neutral, absorbing = EVERYTHING, NOTHING
    if absorbing in kinds:
        return absorbing
    others = dict.fromkeys(t for t in flat if not isinstance(t, Partitions | Locations))
    found = [t for t in (*kinds, *others) if t != neutral]
    if len(found) > 1:
        found = sorted(_without_absorbed(operator, found), key=_rank)
    return _tree(operator, found) if found else neutral


def _tree(operator: Operator, level: Sequence[Condition]) -> Condition:
    while len(level) > 1:
        pairs = [Binary(operator, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0]


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


def _without_absorbed(operator: Operator, found: list[Condition]) -> Iterator[Condition]:
    """Drop the terms that others make superfluous: all that A asks for, B asks for too.

    Candidates are found by a factor that both must share as it is, so that long lists stay linear.
    """
    other = Operator.AND if operator is Operator.OR else Operator.OR
    factors = {term: list(terms(term, other)) for term in found}
    shared: dict[Condition | None, list[Condition]] = {}
    for term, parts in factors.items():
        key = next((f for f in parts if not isinstance(f, Partitions | Locations)), None)
        shared.setdefault(key, []).append(term)
    for term, parts in factors.items():
        candidates = chain.from_iterable(shared.get(key, ()) for key in (None, *parts))
        if not any(c != term and _absorbs(operator, factors[c], parts) for c in candidates):
            yield term


def _absorbs(operator: Operator, ours: list[Condition], theirs: list[Condition]) -> bool:
    if operator is Operator.OR:
        return all(any(_covers(a, b) for b in theirs) for a in ours)
    return all(any(_covers(b, a) for b in theirs) for a in ours)


def _covers(a: Condition, b: Condition) -> bool:
    if isinstance(a, Partitions) and isinstance(b, Partitions):
        return all(a.holds(p.as_dict()) for p in b.partitions)
    if isinstance(a, Locations) and isinstance(b, Locations):
        return all(lies_in(location, a.locations) for location in b.locations)
    return a == b


def _partitions(partitions: Iterable[Partition]) -> Partitions:
    """Drop partitions that extend others; of those that differ in order only, the first stays."""
    distinct = frozenset(partitions)
    if len({tuple([label for label, _ in p.values]) for p in distinct}) <= 1:
        return Partitions(distinct)
    shapes = _by_shape(distinct)
    kept: set[Partition] = set()
    for labels, same in shapes.items():
        wider = {other: shapes[other] for other in shapes if set(other) < set(labels)}
        kept.update(
            p
            for values, p in same.items()
            if not (wider and _is_held(dict(zip(labels, values, strict=True)), wider))
        )
    return Partitions(frozenset(kept))


def _is_held(values: dict[str, str], shapes: _Shapes) -> bool:
    return any(
        values.keys() >= set(labels) and tuple([values[label] for label in labels]) in same
        for labels, same in shapes.items()
    )


def _by_shape(partitions: Iterable[Partition]) -> _Shapes:
    shapes: _Shapes = {}
    for partition in partitions:
        pairs = partition.values
        if len(pairs) > 1:
            pairs = tuple(sorted(partition.as_dict().items()))
        labels, values = zip(*pairs, strict=True) if pairs else ((), ())
        same = shapes.setdefault(labels, {})
        known = same.setdefault(values, partition)
        if partition is not known and partition < known:
            same[values] = partition
    return shapes


def _partitions_of_both(a: Partitions, b: Partitions) -> Partitions:
    """Join on the labels that both have; the cost is that of the result, at most the product."""
    found: list[Partition] = []
    for ours, left in a._shapes.items():
        for theirs, right in b._shapes.items():
            common = [label for label in ours if label in theirs]
            by_common: dict[tuple[str, ...], list[Partition]] = {}
            for partition in right.values():
                row = partition.as_dict()
                by_common.setdefault(tuple(row[k] for k in common), []).append(partition)
            for partition in left.values():
                row = partition.as_dict()
                matches = by_common.get(tuple(row[k] for k in common), ())
                found.extend(_merged(partition, match) for match in matches)
    return _partitions(found)


def _merged(a: Partition, b: Partition) -> Partition:
    """Give the rows of both; a partition that already has all the labels keeps their order."""
    ours, theirs = a.as_dict(), b.as_dict()
    if ours.keys() == theirs.keys():
        return min(a, b)
    if ours.keys() > theirs.keys():
        return a
    return b if ours.keys() < theirs.keys() else Partition(tuple(sorted((ours | theirs).items())))


def _locations(locations: Iterable[str]) -> Condition:
    found = topmost(locations)
    return Locations(found) if found else NOTHING


def _locations_of_all(conditions: Iterable[Locations]) -> Condition:
    """Give what lies below some location of each: the deeper one where two lie on one path."""
    found: frozenset[str] | None = None
    for theirs in (condition.locations for condition in conditions):
        ours = theirs if found is None else found
        found = frozenset(x for x in ours if lies_in(x, theirs)) | frozenset(
            x for x in theirs if lies_in(x, ours)
        )
    return EVERYTHING if found is None else _locations(found)
