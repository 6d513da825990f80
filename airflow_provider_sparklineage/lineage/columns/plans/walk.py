"""One walk over a plan and its subqueries, from the leaves upwards.

Plans may be thousands of operators deep, so the walk is no recursion but into subqueries, and each
operator is looked at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.edges import Column
from airflow_provider_sparklineage.lineage.columns.plans.expressions import Expressions
from airflow_provider_sparklineage.lineage.columns.plans.operators import operator
from airflow_provider_sparklineage.lineage.columns.plans.relations import (
    Choice,
    Level,
    Relation,
    Step,
)
from airflow_provider_sparklineage.lineage.columns.plans.trees import children, kind
from airflow_provider_sparklineage.lineage.columns.plans.values import (
    IDENTITY,
    NULL,
    Sources,
    Value,
    chosen_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.lineage.columns.plans.trees import Tree
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.datasets import DatasetName

    Find = Callable[[int], Value]


class Walk:
    """Follows the plan of one write.

    :param datasets: expression id of a column that is read -> the dataset that it is of
    :param target: the dataset that is written
    :ivar common: common tables by their ids, with what chooses their rows
    """

    def __init__(
        self, datasets: Mapping[int, DatasetName], target: DatasetName, budget: Budget
    ) -> None:
        self.datasets = datasets
        self.common: dict[object, tuple[Relation, Choice]] = {}
        self._target = target
        self._budget = budget
        self._numbers: dict[Column, int] = {}
        self._columns: list[Column] = []
        self._expressions = Expressions(self._subquery, budget)

    def number(self, dataset: DatasetName, name: str) -> int:
        """Give the number of a column as a source."""
        column = Column(dataset, name)
        number = self._numbers.setdefault(column, len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
        return number

    def column(self, number: int) -> Column:
        """Give the column of a number."""
        return self._columns[number]

    def relation(self, tree: Tree, outer: Find | None = None) -> tuple[Relation, Choice]:
        """Give the output of a plan, and what chooses its rows.

        :param outer: finds columns of the plan around a subquery
        :raise ValueError: if the plan is no tree
        """
        below = children(tree)
        level = Level(outer)
        made: dict[int, Relation] = {}
        waiting = [(0, False)]
        while waiting:
            at, is_ready = waiting.pop()
            node = tree[at]
            if is_ready:
                inputs = [made.pop(child) for child in below[at]]
                self._budget.work(1 + sum(len(relation.order) for relation in inputs))
                made[at] = operator(node)(Step(self, node, inputs, level))
                continue
            if kind(node) == "CTERelationDef":
                level.choices.append(Choice())
            waiting.append((at, True))
            waiting += ((child, False) for child in reversed(below[at]))
        return made[0], level.choice

    def of(self, tree: Tree, find: Find, chosen_by: Sources | None = None) -> Value:
        """Give what an expression is made of; as :meth:`.Expressions.value`."""
        return self._expressions.value(tree, find, chosen_by)

    def value(self, tree: Tree, relation: Relation, level: Level | None = None) -> Value:
        """Give what an expression over a relation is made of."""
        return self.of(tree, (level or Level()).finder(relation))

    def changed(self, column: str, tree: Tree, condition: Tree | None, relation: Relation) -> Value:
        """Give what a change of rows makes of a column of the target.

        A condition counts only for a column that does not keep its value.
        """
        value = self.value(tree, relation)
        if condition is None or value.text == NULL or self.keeps(column, value):
            return value
        return chosen_for(value, self.value(condition, relation))

    def keeps(self, column: str, value: Value) -> bool:
        """Whether a column of the target keeps its value."""
        return dict(value.sources) == {self.number(self._target, column): IDENTITY}

    def without_kept(self, column: str, value: Value) -> Value:
        """Leave out that a column of the target keeps its value, or does in some rows."""
        own = self.number(self._target, column)
        bits = value.sources.get(own, 0)
        if not bits & IDENTITY:
            return value
        others = {source: ways for source, ways in value.sources.items() if source != own}
        if bits != IDENTITY:
            others[own] = bits & ~IDENTITY
        return replace(value, sources=others)

    def _subquery(self, tree: Tree, find: Find) -> tuple[list[Value], Sources, bool]:
        relation, choice = self.relation(tree, find)
        return relation.values(), choice.sources, choice.is_whole
