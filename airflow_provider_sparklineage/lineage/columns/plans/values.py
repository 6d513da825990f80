"""What a column of a plan is made of, while the plan is followed: sources and how they got there.

Plans of thousands of nodes are followed column by column, so the ways from a source are a set of
bits; they become :class:`.Transformation` only for the columns that are written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.combining import combine
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT, Transformation
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KINDS = (
    *((DIRECT, subtype) for subtype in ("IDENTITY", "TRANSFORMATION", "AGGREGATION")),
    *(
        (INDIRECT, subtype)
        for subtype in ("CONDITIONAL", "WINDOW", "FILTER", "JOIN", "GROUP_BY", "SORT")
    ),
)
_WAYS = tuple(
    Transformation(kind, subtype, masking=masking)
    for masking in (False, True)
    for kind, subtype in _KINDS
)
_BIT = {way: 1 << at for at, way in enumerate(_WAYS)}

IDENTITY, TRANSFORMATION, AGGREGATION, CONDITIONAL, WINDOW, FILTER, JOIN, GROUP_BY, SORT = (
    1 << at for at in range(len(_KINDS))
)
MASKING = len(_KINDS)
"""Shift a way by so many bits, and it masks."""

Sources = dict[int, int]
"""Number of a source -> its ways, as bits."""


def ways(bits: int) -> list[Transformation]:
    """Give the transformations that the bits stand for."""
    return [way for at, way in enumerate(_WAYS) if bits >> at & 1]


@lru_cache(maxsize=4096)
def _in_a_row(this: int, upstream: int) -> int:
    """Combine a way with those upstream of it, by the rule for two queries in a row."""
    [step] = ways(this)
    bits = 0
    for way in ways(upstream):
        bits |= _BIT[combine(step, way)]
    return bits


def through(step: int, sources: Mapping[int, int]) -> Sources:
    """Lead sources through one more step."""
    if step == IDENTITY:
        return dict(sources)
    return {source: _in_a_row(step, bits) for source, bits in sources.items()}


def unite(into: Sources, sources: Mapping[int, int]) -> None:
    """Add sources to others."""
    for source, bits in sources.items():
        into[source] = into.get(source, 0) | bits


class Value(Frozen, frozen=True):
    """What a column or expression is made of.

    :param sources: columns that were read
    :param is_whole: whether there are no other sources, which could not be followed
    :param guess: the function of whole rows that made it, into which nobody can see
    :param made_of: what else it is made of: ``literal``, ``count``, ``rdd`` and so on
    :param text: the expression that made it; empty for a column as it was read
    """

    sources: Mapping[int, int]
    is_whole: bool = True
    guess: str = ""
    made_of: frozenset[str] = frozenset()
    text: str = ""

    def by(self, step: int) -> Value:
        """Lead the value through one more step."""
        return self if step == IDENTITY else replace(self, sources=through(step, self.sources))


NULL = "NULL"
"""The text of a literal null."""
UNKNOWN = Value({}, is_whole=False)
ELSEWHERE = replace(UNKNOWN, made_of=frozenset({"relation"}))
"""A column of what is no dataset of the application, such as a query in a database."""
NOTHING = Value({})


def together(values: Iterable[Value]) -> Value:
    """Unite values: of two branches of a union, or of the operands of an expression."""
    found = list(values)
    if len(found) == 1:
        return found[0]
    sources: Sources = {}
    for value in found:
        unite(sources, value.sources)
    made_of = frozenset[str]().union(*(value.made_of for value in found))
    return Value(
        sources,
        all(value.is_whole for value in found),
        next((value.guess for value in found if value.guess), ""),
        made_of,
        next((value.text for value in found if value.text), ""),
    )


def of_many_rows(values: Iterable[Value]) -> Value:
    """Unite what rows that are made of one have in a column: nulls stand for no value."""
    found = list(values)
    return together([value for value in found if value.text != NULL] or found)


def chosen_for(value: Value, condition: Value) -> Value:
    """Give a value that is used only where a condition holds."""
    found = together([value, condition.by(CONDITIONAL)])
    return replace(found, made_of=value.made_of, guess=value.guess, text=value.text)
