"""What operators make of the relations below them: those that make many rows of one, or others.

Unions, comparisons, expansions, common tables, functions of full rows, and MERGE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.plans.relations import Relation
from airflow_provider_sparklineage.lineage.columns.plans.trees import attributes, kind, parts
from airflow_provider_sparklineage.lineage.columns.plans.values import (
    FILTER,
    GROUP_BY,
    JOIN,
    TRANSFORMATION,
    UNKNOWN,
    Value,
    of_many_rows,
    together,
)

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.columns.plans.relations import Step

GROUPING_ID = "spark_grouping_id"
_PYTHON = frozenset({"python"})
_MAYBE_NONE = ("Explode", "PosExplode", "Inline")
_INSTRUCTIONS = ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions")
# Functions of full rows, by the names under which people call them.
_OF_ROWS = {
    "MapInPandas": "mapInPandas",
    "MapInArrow": "mapInArrow",
    "PythonMapInArrow": "mapInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "FlatMapCoGroupsInPandas": "applyInPandas",
    "FlatMapCoGroupsInArrow": "applyInArrow",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithStateInPandas": "transformWithStateInPandas",
    "TransformWithStateInPySpark": "transformWithState",
    "ScriptTransformation": "TRANSFORM",
    **dict.fromkeys(("MapElements", "MapPartitions", "MapGroups", "CoGroup"), "a typed function"),
    **dict.fromkeys(("AppendColumns", "FlatMapGroupsWithState"), "a typed function"),
}


def _generate(at: Step) -> Relation:
    """Give what makes rows of one; of an empty list most make none, and so choose rows."""
    [relation] = at.inputs
    value = UNKNOWN
    for tree in at.level.trees(at.node, "generator"):
        value = at.walk.value(tree, relation, at.level)
        if kind(tree[0]) in _MAYBE_NONE and not at.node.get("outer"):
            at.level.chosen_by(value, FILTER)
    for number, name in attributes(at.node.get("generatorOutput")):
        relation.add(number, name, value)
    return relation


def _expand(at: Step) -> Relation:
    """Unite each column of all projections: nulls and names of what was expanded are none."""
    order = attributes(at.node.get("output"))
    columns: list[list[Value]] = [[] for _ in order]
    for projection in at.node.get("projections") or ():
        for column, tree in zip(columns, projection, strict=False):
            column.append(at.walk.value(tree, at.inputs[0], at.level))
    relation = Relation()
    for (number, name), values in zip(order, columns, strict=True):
        # Of some lists Spark writes none; a column that keeps its id is what it was.
        value = of_many_rows(values) if values else at.inputs[0].find(number)
        if value.is_whole and not value.sources and value.made_of == {"literal"}:
            made_of = "grouping_id" if name == GROUPING_ID else "unpivot"
            value = Value({}, made_of=frozenset({made_of}))
        relation.add(number, name, value)
    return relation


def _union(at: Step) -> Relation:
    """Unite by position; the ids are those of the first."""
    columns = [relation.values() for relation in at.inputs]
    same = len({len(values) for values in columns}) == 1
    united = Relation()
    for place, (number, name) in enumerate(at.inputs[0].order):
        united.add(number, name, together(c[place] for c in columns) if same else UNKNOWN)
    return united


def _compared(at: Step) -> Relation:
    """Keep rows of the left that the right has, or has not: all columns are compared."""
    left = at.inputs[0]
    for relation in at.inputs:
        at.level.chosen_by(relation.all(), JOIN)
    if not at.node.get("isAll"):
        at.level.chosen_by(left.all(), GROUP_BY)
    return left


def _of_rows(at: Step) -> Relation:
    """Give every column from every column, as nobody can see into the function."""
    value = together([relation.all() for relation in at.inputs]).by(TRANSFORMATION)
    value = replace(value, guess=_OF_ROWS[kind(at.node)], text="", made_of=_PYTHON)
    for number, _ in attributes(at.node.get("groupingAttributes")):
        at.level.chosen_by(at.inputs[0].find(number), GROUP_BY)
    relation = Relation()
    for field in ("output", "outputObjAttr"):
        for number, name in attributes(at.node.get(field)):
            relation.add(number, name, value)
    return relation


def _object(at: Step) -> Relation:
    """Make an object of a row, or a row of an object: of all that it has."""
    value = at.inputs[0].all()
    relation = Relation()
    for field in ("outputObjAttr", "serializer"):
        for number, name in attributes(at.node.get(field)):
            relation.add(number, name, value)
    return relation


def _merge_rows(at: Step) -> Relation:
    """Unite what all instructions of a MERGE make of each column."""
    order = attributes(at.node.get("output"))
    columns: list[list[Value]] = [[] for _ in order]
    for field in _INSTRUCTIONS:
        for tree in at.level.trees(at.node, field):
            condition, outputs = parts(tree, "output", "otherOutput")
            for output in outputs:
                for (_, name), column, expression in zip(order, columns, output, strict=False):
                    column.append(at.walk.changed(name, expression, condition, at.inputs[0]))
    relation = Relation()
    for (number, name), values in zip(order, columns, strict=True):
        relation.add(number, name, of_many_rows(values) if values else UNKNOWN)
    return relation


def _with_common(at: Step) -> Relation:
    return at.inputs[-1]


def _definition(at: Step) -> Relation:
    at.walk.common[at.node.get("id")] = at.inputs[0], at.level.choices.pop()
    return at.inputs[0]


def _reference(at: Step) -> Relation:
    """Give a common table by its other ids; what refers to itself cannot be followed."""
    order = attributes(at.node.get("output"))
    defined = at.walk.common.get(at.node.get("cteId", at.node.get("loopId")))
    values = [UNKNOWN] * len(order)
    if defined is not None and len(defined[0].order) == len(order):
        at.level.include(defined[1])
        values = defined[0].values()
    relation = Relation()
    for (number, name), value in zip(order, values, strict=True):
        relation.add(number, name, value)
    return relation


def _loop(at: Step) -> Relation:
    """Unite the start of a recursion with its steps, which may mix columns further and on."""
    relation = _union(at)
    for number, value in relation.known.items():
        relation.known[number] = replace(value, is_whole=False)
    return relation


OPERATORS = {
    "Generate": _generate,
    "Expand": _expand,
    "Union": _union,
    "Except": _compared,
    "Intersect": _compared,
    "WithCTE": _with_common,
    "CTERelationDef": _definition,
    "CTERelationRef": _reference,
    "UnionLoop": _loop,
    "UnionLoopRef": _reference,
    "MergeRows": _merge_rows,
    "DeserializeToObject": _object,
    "SerializeFromObject": _object,
    **dict.fromkeys(_OF_ROWS, _of_rows),
}
