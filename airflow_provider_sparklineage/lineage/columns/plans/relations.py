"""Relations of a plan: which columns they have, what those are made of, and what chooses rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.columns.plans.trees import trees
from airflow_provider_sparklineage.lineage.columns.plans.values import (
    UNKNOWN,
    Sources,
    Value,
    through,
    together,
    unite,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.lineage.columns.plans.trees import Node, Tree
    from airflow_provider_sparklineage.lineage.columns.plans.walk import Walk

    Find = Callable[[int], Value]


@dataclass
class Relation:
    """The output of one node; a node above takes it over and changes it, as a plan is a tree.

    :ivar order: (id, name) of its columns
    :ivar known: what they are made of, and others that expressions above may still refer to
    """

    order: list[tuple[int, str]] = field(default_factory=list)
    known: dict[int, Value] = field(default_factory=dict)

    def add(self, number: int, name: str, value: Value) -> None:
        """Add a column."""
        self.order.append((number, name))
        self.known[number] = value

    def find(self, number: int) -> Value:
        """Give what a column is made of."""
        return self.known.get(number, UNKNOWN)

    def values(self) -> list[Value]:
        """Give what its columns are made of, in their order."""
        return [self.find(number) for number, _ in self.order]

    def all(self) -> Value:
        """Give all columns as one value."""
        return together(self.values())


def joined(left: Relation, right: Relation) -> Relation:
    """Join two relations: the columns of both."""
    left.order += right.order
    if len(left.known) < len(right.known):
        left.known, right.known = right.known, left.known
    left.known.update(right.known)
    return left


@dataclass
class Choice:
    """What chooses, groups and sorts the rows of a plan or subquery.

    :ivar is_whole: whether there is nothing else
    """

    sources: Sources = field(default_factory=dict)
    is_whole: bool = True


class Level:
    """One plan: the written query's, or that of a subquery in it.

    :param outer: finds columns of the plan around a subquery
    :ivar choices: what chooses rows; the last one is where it is collected now
    """

    def __init__(self, outer: Find | None = None) -> None:
        self.outer = outer
        self.choices = [Choice()]

    @property
    def choice(self) -> Choice:
        """What chooses the rows here."""
        return self.choices[-1]

    def trees(self, node: Node, field: str) -> Iterator[Tree]:
        """Give the expressions of a field; of some lists Spark writes none, but null."""
        if field in node and node[field] is None:
            self.choice.is_whole = False
        return trees(node.get(field))

    def chosen_by(self, value: Value, step: int) -> None:
        """Note what chooses rows."""
        unite(self.choice.sources, through(step, value.sources))
        if not value.is_whole:
            self.choice.is_whole = False

    def include(self, choice: Choice) -> None:
        """Note what chooses the rows of a part."""
        unite(self.choice.sources, choice.sources)
        self.choice.is_whole = self.choice.is_whole and choice.is_whole

    def finder(self, relation: Relation) -> Find:
        """Find columns of a relation, else those around it."""
        known, outer = relation.known, self.outer

        def find(number: int) -> Value:
            value = known.get(number)
            if value is None:
                value = outer(number) if outer is not None else UNKNOWN
            return value

        return find


class Step(NamedTuple):
    """One operator on its turn.

    :param inputs: the relations below it
    """

    walk: Walk
    node: Node
    inputs: list[Relation]
    level: Level
