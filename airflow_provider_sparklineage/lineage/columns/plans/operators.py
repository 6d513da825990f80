"""What operators make of the relations below them: those of rows, columns and values.

An operator that is not known hands on the columns that it has from below by their ids; a column
that nothing explains is ``UNKNOWN``, and whatever is made of it is not whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.plans import many_rows
from airflow_provider_sparklineage.lineage.columns.plans.relations import Relation, joined
from airflow_provider_sparklineage.lineage.columns.plans.trees import (
    attributes,
    conjuncts,
    contains,
    expression_id,
    kind,
)
from airflow_provider_sparklineage.lineage.columns.plans.values import (
    AGGREGATION,
    ELSEWHERE,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    SORT,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.lineage.columns.plans.relations import Step
    from airflow_provider_sparklineage.lineage.columns.plans.trees import Node

    Operator = Callable[[Step], Relation]

# Why columns of a leaf have no sources.
_MADE_OF = {
    "LogicalRDD": "rdd",
    "ExternalRDD": "rdd",
    "LocalRelation": "local",
    "EmptyRelation": "local",
    "Range": "range",
    "OneRowRelation": "literal",
}
_PASSING = frozenset(
    {
        *("SubqueryAlias", "View", "Subquery", "ReturnAnswer", "WriteFiles", "ResolvedHint"),
        *("LocalLimit", "GlobalLimit", "Limit", "Offset", "Tail", "Sample", "CollectMetrics"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions", "EventTimeWatermark"),
    }
)
"""Operators that leave columns as they are, and choose no rows by what is in them."""


def operator(node: Node) -> Operator:
    """Give the function that follows an operator."""
    return _OPERATORS.get(kind(node)) or many_rows.OPERATORS.get(kind(node), _other)


def _project(at: Step) -> Relation:
    return _named(at, "projectList")


def _named(at: Step, field: str) -> Relation:
    relation = Relation()
    for tree in at.level.trees(at.node, field):
        number = expression_id(tree[0])
        if number is not None:
            value = at.walk.value(tree, at.inputs[0], at.level)
            relation.add(number, str(tree[0].get("name", "")), value)
    return relation


def _aggregate(at: Step) -> Relation:
    for tree in at.level.trees(at.node, "groupingExpressions"):
        at.level.chosen_by(at.walk.value(tree, at.inputs[0], at.level), GROUP_BY)
    return _named(at, "aggregateExpressions")


def _distinct(at: Step) -> Relation:
    at.level.chosen_by(at.inputs[0].all(), GROUP_BY)
    return at.inputs[0]


def _deduplicate(at: Step) -> Relation:
    """Keep the first row of each key, as an aggregate does: the other columns are its."""
    [relation] = at.inputs
    keys = {number for number, _ in attributes(at.node.get("keys"))}
    for number, _ in relation.order:
        value = relation.find(number)
        if number in keys:
            at.level.chosen_by(value, GROUP_BY)
        else:
            relation.known[number] = value.by(AGGREGATION)
    return relation


def _filter(at: Step) -> Relation:
    find = at.level.finder(at.inputs[0])
    for condition in at.level.trees(at.node, "condition"):
        for tree in conjuncts(condition):
            # By what refers to the outer query Spark joins the subquery to it.
            step = JOIN if contains(tree, "OuterReference") else FILTER
            value = at.walk.of(tree, find, at.level.choice.sources)
            at.level.chosen_by(value, step)
    return at.inputs[0]


def _join(at: Step) -> Relation:
    left, right = at.inputs
    columns = len(left.order)
    relation = joined(left, right)
    _join_by(at, relation)
    if any(kept in str(at.node.get("joinType")) for kept in ("LeftSemi", "LeftAnti")):
        del relation.order[columns:]
    return relation


def _join_by(at: Step, relation: Relation) -> None:
    find = at.level.finder(relation)
    for tree in at.level.trees(at.node, "condition"):
        at.level.chosen_by(at.walk.of(tree, find, at.level.choice.sources), JOIN)


def _lateral_join(at: Step) -> Relation:
    [relation] = at.inputs
    for subquery in at.level.trees(at.node, "right"):
        found, choice = at.walk.relation(subquery[0]["plan"], at.level.finder(relation))
        at.level.include(choice)
        relation = joined(relation, found)
    _join_by(at, relation)
    return relation


def _sort(at: Step) -> Relation:
    for tree in at.level.trees(at.node, "order"):
        at.level.chosen_by(at.walk.value(tree, at.inputs[0], at.level), SORT)
    return at.inputs[0]


def _window(at: Step) -> Relation:
    [relation] = at.inputs
    return joined(relation, _named(at, "windowExpressions"))


def _other(at: Step) -> Relation:
    """Hand on what is below, by its ids; an operator that is not known may choose rows."""
    if not at.inputs:
        return _leaf(at)
    if kind(at.node) not in _PASSING:
        at.level.choice.is_whole = False
    relation = at.inputs[0]
    for right in at.inputs[1:]:
        relation = joined(relation, right)
    relation.order = attributes(at.node.get("output")) or relation.order
    return relation


def _leaf(at: Step) -> Relation:
    made_of = _MADE_OF.get(kind(at.node), "")
    other = Value({}, made_of=frozenset({made_of})) if made_of else ELSEWHERE
    relation = Relation()
    for number, name in attributes(at.node.get("output")):
        dataset = at.walk.datasets.get(number)
        value = other if dataset is None else Value({at.walk.number(dataset, name): IDENTITY})
        relation.add(number, name, value)
    return relation


_OPERATORS: dict[str, Operator] = {
    "Project": _project,
    "Aggregate": _aggregate,
    "Distinct": _distinct,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Filter": _filter,
    "Join": _join,
    "LateralJoin": _lateral_join,
    "Sort": _sort,
    "Window": _window,
}
