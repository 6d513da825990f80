"""Follow the operators of a plan in one walk, from the leaves upwards.

Each operator makes a relation from the relations below it. A relation has columns, each with its
value. The sources that filter, join, group or sort rows belong to no column: a :class:`Level`
collects them, one for the plan and one for each subquery. Plans may be thousands of operators deep,
so the walk recurses only into subqueries, and visits each operator once.

An unknown operator hands on the columns from below it by their ids. A column whose id is not known
is ``UNKNOWN``: not all sources of a value that is made from it are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.edges import Column
from airflow_provider_sparklineage.lineage.columns.plans import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.lineage.columns.edges import Transformation
    from airflow_provider_sparklineage.model.allowance import Work
    from airflow_provider_sparklineage.model.datasets import DatasetName


# --- relations, and the sources that choose their rows --------------------------------------------


@dataclass
class Relation:
    """The output columns of one node, with their values.

    The node above changes this object: a plan is a tree, so no other node uses the object.

    :ivar order: (id, name) of each column
    :ivar known: id -> value (its sources), of the columns and of others to which expressions above
        may refer
    """

    order: list[tuple[int, str]] = field(default_factory=list)
    known: dict[int, exp.Value] = field(default_factory=dict)

    @classmethod
    def of(cls, order: list[tuple[int, str]], values: Iterable[exp.Value]) -> Relation:
        """Make a relation of columns, as (id, name) in their order, and the value of each."""
        numbers = (number for number, _ in order)
        return cls(order, dict(zip(numbers, values, strict=True)))

    def find(self, number: int) -> exp.Value:
        """Give the value of the column with the id ``number``; UNKNOWN if the id is not known."""
        return self.known.get(number, exp.UNKNOWN)

    def values(self) -> list[exp.Value]:
        """Give the values of the columns, in their order."""
        return [self.find(number) for number, _ in self.order]

    def all(self) -> exp.Value:
        """Unite the values of all columns."""
        return exp.together(self.values())


def joined_relation(left: Relation, right: Relation) -> Relation:
    """Join two relations to one with the columns of both; both arguments are changed."""
    left.order += right.order
    if len(left.known) < len(right.known):
        left.known, right.known = right.known, left.known
    left.known.update(right.known)
    return left


@dataclass
class Choice:
    """The sources that choose, group and sort the rows of a plan or subquery.

    :ivar is_whole: whether all such sources are known
    :ivar texts: (number of a source, subtype such as ``FILTER``) -> the expression that uses it so
    """

    sources: exp.Sources = field(default_factory=dict)
    is_whole: bool = True
    texts: dict[tuple[int, str | None], str] = field(default_factory=dict)

    def add(self, value: exp.Value, step: int) -> None:
        """Add the sources of a value that filters, joins, groups or sorts rows.

        :param step: FILTER, JOIN, GROUP_BY or SORT, as a bit
        """
        exp.unite(self.sources, exp.through(step, value.sources))
        self.is_whole = self.is_whole and value.is_whole
        [way] = exp.ways(step)
        self._add_texts({(source, way.subtype): value.text for source in value.sources})

    def _add_texts(self, texts: Mapping[tuple[int, str | None], str]) -> None:
        for of, text in texts.items():
            known = self.texts.get(of, "")
            both = exp.joined_text(known, text)
            if both != known:
                self.texts[of] = both

    def described(self, source: int, way: Transformation) -> Transformation:
        """Describe the transformation from a source by the expression that uses the source so."""
        return way._replace(description=self.texts.get((source, way.subtype), ""))

    def include(self, choice: Choice) -> None:
        """Add the sources of another choice, such as that of a subquery."""
        exp.unite(self.sources, choice.sources)
        self.is_whole = self.is_whole and choice.is_whole
        self._add_texts(choice.texts)


class Level:
    """The state of the walk in one plan: the plan of the written query, or of a subquery in it.

    :param outer: a function that finds columns of the plan around a subquery; None if the plan is
        that of the written query
    :ivar choices: the :class:`Choice` of the plan, and one for each common table expression (CTE)
        that the walk is in, the innermost last; the last one collects the sources
    """

    def __init__(self, outer: exp.Find | None = None) -> None:
        self.outer = outer
        self.choices = [Choice()]

    @property
    def choice(self) -> Choice:
        """The :class:`Choice` that now collects the sources that filter, join, group or sort rows.

        While the walk is in a common table expression (CTE), it is the one of that CTE; otherwise
        it is the one of the plan.
        """
        return self.choices[-1]

    def trees(self, node: exp.Node, field: str) -> Iterator[exp.Tree]:
        """Give the expressions in a field of a node.

        Spark writes some lists as null; then not all sources of :attr:`choice` are known.
        """
        if field in node and node[field] is None:
            self.choice.is_whole = False
        return exp.trees(node.get(field))

    def finder(self, relation: Relation) -> exp.Find:
        """Give a function that finds a column by its id: in a relation, or else in the plan around.

        Only a subquery has a plan around it; without one, the value of an id that the relation does
        not know is UNKNOWN.
        """
        known, outer = relation.known, self.outer
        if outer is None:
            return relation.find
        return lambda number: known[number] if number in known else outer(number)


class Step(NamedTuple):
    """One operator that the walk follows.

    :param inputs: the relations of the operator's children
    """

    walk: Walk
    node: exp.Node
    inputs: list[Relation]
    level: Level

    def value(self, tree: exp.Tree) -> exp.Value:
        """Give the sources of an expression, as a :class:`.Value`.

        :param tree: the expression; it refers to columns of the first input and, in a subquery,
            also to columns of the plan around
        """
        return self.walk.of(tree, self.level.finder(self.inputs[0]))


# --- operators that make many rows of one, or others ----------------------------------------------
#
# Unions, comparisons, expansions, common table expressions, functions of whole rows, and MERGE.


GROUPING_ID = "spark_grouping_id"
_MADE_OF_PYTHON = frozenset({"python"})
_MAYBE_NO_ROWS = ("Explode", "PosExplode", "Inline")
_MERGE_INSTRUCTIONS = (
    "matchedInstructions",
    "notMatchedInstructions",
    "notMatchedBySourceInstructions",
)
# Functions of whole rows, by the names under which people call them.
_ROW_FUNCTIONS = {
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
    """Follow a generator step such as ``explode``: add its columns to those of its input.

    Explode, posexplode and inline drop a row whose list is empty, so their arguments are sources
    that filter the rows, too.
    """
    [relation] = at.inputs
    order = exp.attributes(at.node.get("generatorOutput"))
    values = [exp.UNKNOWN] * len(order)
    for tree in at.level.trees(at.node, "generator"):
        name, value = exp.kind(tree[0]), at.value(tree)
        if name in _MAYBE_NO_ROWS and not at.node.get("outer"):
            at.level.choice.add(value, exp.FILTER)
        values = [value] * len(order)
        if name == "Inline" and len(value.fields) == len(order):
            values = list(value.fields)
        elif name == "Stack":
            values = _stacked(at, tree, len(order))
    return joined_relation(relation, Relation.of(order, values))


def _stacked(at: Step, tree: exp.Tree, columns: int) -> list[exp.Value]:
    """Give the values of the columns that ``stack(rows, value, value, …)`` makes.

    :param tree: the generator, whose values are those of the first row, then of the second one
    :param columns: the number of its columns
    """
    _, *parts = (at.value(exp.subtree(tree, child)) for child in exp.children(tree)[0])
    each = (exp.of_many_rows(parts[column::columns]) for column in range(columns))
    return [value.by(exp.TRANSFORMATION) for value in each]


def _expand(at: Step) -> Relation:
    """Follow an Expand step, which makes several rows of one, each by another projection.

    A ROLLUP has such a step. The values of a column in all projections are united; literal nulls
    are left out. A column of literals alone is the id of a grouping set, or the name of an
    unpivoted column.
    """
    order = exp.attributes(at.node.get("output"))
    columns: list[list[exp.Value]] = [[] for _ in order]
    for projection in at.node.get("projections") or ():
        for column, tree in zip(columns, projection, strict=False):
            column.append(at.value(tree))
    united = []
    for (number, name), values in zip(order, columns, strict=True):
        # Spark leaves some lists out; then a column that keeps its id has its old value.
        value = exp.of_many_rows(values) if values else at.inputs[0].find(number)
        if value.is_whole and not value.sources and value.made_of == {"literal"}:
            made_of = "grouping_id" if name == GROUPING_ID else "unpivot"
            value = exp.Value({}, made_of=frozenset({made_of}))
        united.append(value)
    return Relation.of(order, united)


def _union(at: Step) -> Relation:
    """Unite the columns of a step's inputs by position; the results have the first input's ids."""
    order, columns = at.inputs[0].order, [relation.values() for relation in at.inputs]
    if len({len(values) for values in columns}) > 1:
        return Relation.of(order, [exp.UNKNOWN] * len(order))
    return Relation.of(order, map(exp.together, zip(*columns, strict=True)))


def _compared_rows(at: Step) -> Relation:
    """Follow an INTERSECT or EXCEPT step: comparing all columns chooses rows of the left input."""
    left = at.inputs[0]
    for relation in at.inputs:
        at.level.choice.add(relation.all(), exp.JOIN)
    if not at.node.get("isAll"):
        at.level.choice.add(left.all(), exp.GROUP_BY)
    return left


def _row_function(at: Step) -> Relation:
    """Follow a step such as ``mapInPandas``: make each output column from all input columns.

    The code of the function is not known.
    """
    value = exp.together([relation.all() for relation in at.inputs]).by(exp.TRANSFORMATION)
    value = replace(
        value, guess=_ROW_FUNCTIONS[exp.kind(at.node)], text="", made_of=_MADE_OF_PYTHON
    )
    for number, _ in exp.attributes(at.node.get("groupingAttributes")):
        at.level.choice.add(at.inputs[0].find(number), exp.GROUP_BY)
    return _all_from(at, ("output", "outputObjAttr"), value)


def _all_from(at: Step, outputs: tuple[str, ...], value: exp.Value) -> Relation:
    """Make a relation of all columns in some fields of a step's node; all get the same value.

    :param outputs: the names of the fields
    :param value: the value of each column
    """
    order = [column for output in outputs for column in exp.attributes(at.node.get(output))]
    return Relation.of(order, [value] * len(order))


def _object_of_row(at: Step) -> Relation:
    """Follow a step that makes one object of all columns of a row, or each column of one object."""
    return _all_from(at, ("outputObjAttr", "serializer"), at.inputs[0].all())


def _merge_rows(at: Step) -> Relation:
    """Follow a MERGE step: unite the values of each column over all of its instructions."""
    order = exp.attributes(at.node.get("output"))
    columns: list[list[exp.Value]] = [[] for _ in order]
    for instructions in _MERGE_INSTRUCTIONS:
        for tree in at.level.trees(at.node, instructions):
            condition, outputs = exp.parts(tree, "output", "otherOutput")
            for output in outputs:
                for (_, name), column, expression in zip(order, columns, output, strict=False):
                    column.append(at.walk.changed(name, expression, condition, at.inputs[0]))
    return Relation.of(
        order, (exp.of_many_rows(values) if values else exp.UNKNOWN for values in columns)
    )


def _common_table(at: Step) -> Relation:
    at.walk.common[at.node.get("id")] = at.inputs[0], at.level.choices.pop()
    return at.inputs[0]


def _common_table_reference(at: Step) -> Relation:
    """Follow a reference to a common table expression (CTE): its columns, under other ids.

    In the recursive part of a CTE, the columns are those of the rows that are found so far
    (:meth:`Walk._recursion`). If the CTE is not known, all columns are UNKNOWN.
    """
    order = exp.attributes(at.node.get("output"))
    defined = at.walk.common.get(at.node.get("cteId", at.node.get("loopId")))
    if defined is None or len(defined[0].order) != len(order):
        return Relation.of(order, [exp.UNKNOWN] * len(order))
    at.level.choice.include(defined[1])
    return Relation.of(order, defined[0].values())


# --- operators of rows, columns and values --------------------------------------------------------


# The reasons why columns of a leaf have no sources.
_LEAVES_MADE_OF = {
    "LogicalRDD": "rdd",
    "ExternalRDD": "rdd",
    "LocalRelation": "local",
    "EmptyRelation": "local",
    "Range": "range",
    "OneRowRelation": "literal",
}
_PASSING_OPERATORS = frozenset(
    {
        *("SubqueryAlias", "View", "Subquery", "ReturnAnswer", "WriteFiles", "ResolvedHint"),
        *(
            "LocalLimit",
            "GlobalLimit",
            "Limit",
            "LimitAll",
            "Offset",
            "Tail",
            "Sample",
            "CollectMetrics",
        ),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions", "EventTimeWatermark"),
    }
)
"""Operators that leave columns as they are, and choose no rows by the values of columns."""


def _named(at: Step, field: str) -> Relation:
    found = at.level.trees(at.node, field)
    named = [tree for tree in found if exp.expression_id(tree[0]) is not None]
    values = (at.value(tree) for tree in named)
    return Relation.of(exp.attributes(named), values)


def _aggregate(at: Step) -> Relation:
    for tree in at.level.trees(at.node, "groupingExpressions"):
        at.level.choice.add(at.value(tree), exp.GROUP_BY)
    return _named(at, "aggregateExpressions")


def _distinct(at: Step) -> Relation:
    at.level.choice.add(at.inputs[0].all(), exp.GROUP_BY)
    return at.inputs[0]


def _deduplicate(at: Step) -> Relation:
    """Follow a ``dropDuplicates`` step: the keys group rows, and other columns are aggregated."""
    [relation] = at.inputs
    keys = {number for number, _ in exp.attributes(at.node.get("keys"))}
    for number, _ in relation.order:
        value = relation.find(number)
        if number in keys:
            at.level.choice.add(value, exp.GROUP_BY)
        else:
            relation.known[number] = value.by(exp.AGGREGATION)
    return relation


def _filter(at: Step) -> Relation:
    find = at.level.finder(at.inputs[0])
    for condition in at.level.trees(at.node, "condition"):
        for tree in exp.conjuncts(condition):
            # Spark joins a subquery to the outer query by conditions that refer to the outer one.
            is_of_outer = any(exp.kind(node) == "OuterReference" for node in tree)
            value = at.walk.of(tree, find, at.level.choice.sources)
            at.level.choice.add(value, exp.JOIN if is_of_outer else exp.FILTER)
    return at.inputs[0]


def _join(at: Step) -> Relation:
    left, right = at.inputs
    columns = len(left.order)
    relation = joined_relation(left, right)
    _join_by(at, relation)
    if any(kept in str(at.node.get("joinType")) for kept in ("LeftSemi", "LeftAnti")):
        del relation.order[columns:]
    return relation


def _join_by(at: Step, relation: Relation, field: str = "condition") -> None:
    find = at.level.finder(relation)
    for tree in at.level.trees(at.node, field):
        at.level.choice.add(at.walk.of(tree, find, at.level.choice.sources), exp.JOIN)


def _nearest_by(at: Step) -> Relation:
    """Follow a join that takes for each row the nearest ones of the right side."""
    relation = joined_relation(*at.inputs)
    _join_by(at, relation, "rankingExpression")
    return relation


def _lateral_join(at: Step) -> Relation:
    [relation] = at.inputs
    for subquery in at.level.trees(at.node, "right"):
        found, choice = at.walk.relation(subquery[0]["plan"], at.level.finder(relation))
        at.level.choice.include(choice)
        relation = joined_relation(relation, found)
    _join_by(at, relation)
    return relation


def _sort(at: Step) -> Relation:
    for tree in at.level.trees(at.node, "order"):
        at.level.choice.add(at.value(tree), exp.SORT)
    return at.inputs[0]


def _window(at: Step) -> Relation:
    [relation] = at.inputs
    return joined_relation(relation, _named(at, "windowExpressions"))


def _other(at: Step) -> Relation:
    """Follow any other step: the columns below it are its columns, found by their ids.

    An unknown operator may filter or group rows, so it makes :attr:`Choice.is_whole` False.
    """
    if not at.inputs:
        return _leaf(at)
    if exp.kind(at.node) not in _PASSING_OPERATORS:
        at.level.choice.is_whole = False
    relation = at.inputs[0]
    for right in at.inputs[1:]:
        relation = joined_relation(relation, right)
    relation.order = exp.attributes(at.node.get("output")) or relation.order
    return relation


def _leaf(at: Step) -> Relation:
    made_of = _LEAVES_MADE_OF.get(exp.kind(at.node), "")
    other = exp.Value({}, made_of=frozenset({made_of})) if made_of else exp.ELSEWHERE
    order, datasets = exp.attributes(at.node.get("output")), at.walk.datasets
    values = (
        exp.Value({at.walk.number(datasets[number], name): exp.IDENTITY})
        if number in datasets
        else other
        for number, name in order
    )
    return Relation.of(order, values)


_OPERATORS: dict[str, Callable[[Step], Relation]] = {
    "Project": lambda at: _named(at, "projectList"),
    "Aggregate": _aggregate,
    "Distinct": _distinct,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Filter": _filter,
    "Join": _join,
    "LateralJoin": _lateral_join,
    "NearestByJoin": _nearest_by,
    "Sort": _sort,
    "Window": _window,
    "Generate": _generate,
    "Expand": _expand,
    "Union": _union,
    "SequentialStreamingUnion": _union,
    "Except": _compared_rows,
    "Intersect": _compared_rows,
    "WithCTE": lambda at: at.inputs[-1],
    "CTERelationDef": _common_table,
    "CTERelationRef": _common_table_reference,
    "UnionLoopRef": _common_table_reference,
    "MergeRows": _merge_rows,
    "DeserializeToObject": _object_of_row,
    "SerializeFromObject": _object_of_row,
    **dict.fromkeys(_ROW_FUNCTIONS, _row_function),
}


# --- the walk -------------------------------------------------------------------------------------


class Walk:
    """Finds the sources of the columns that one write computes.

    :meth:`relation` follows a plan of the write, and gives the plan's columns with their sources.

    :param datasets: expression id of a column that is read -> the dataset of the column
    :param target: the dataset that is written
    :param work: counts the units of work; it raises :class:`.SpentError` if no time is left
    :ivar common: id of a common table expression (CTE) -> its columns, and the :class:`Choice` of
        its rows
    :ivar of: a function that gives the sources of an expression: :meth:`.Expressions.value`
    """

    def __init__(
        self, datasets: Mapping[int, DatasetName], target: DatasetName, work: Work
    ) -> None:
        self.datasets = datasets
        self.common: dict[object, tuple[Relation, Choice]] = {}
        self._target = target
        self._work = work
        self._numbers: dict[Column, int] = {}
        self._columns: list[Column] = []
        self.of = exp.Expressions(self._subquery, work).value

    def number(self, dataset: DatasetName, name: str) -> int:
        """Give the number that stands for a dataset's column in :data:`~.expressions.Sources`."""
        column = Column(dataset, name)
        number = self._numbers.setdefault(column, len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
        return number

    def column(self, number: int) -> Column:
        """Give the column that a number stands for."""
        return self._columns[number]

    def relation(self, tree: exp.Tree, outer: exp.Find | None = None) -> tuple[Relation, Choice]:
        """Give the columns that a plan puts out, and the :class:`Choice` of its rows.

        :param outer: a function that finds columns of the plan around a subquery; None if the plan
            is that of the written query
        :raise ValueError: if the plan is not a tree
        """
        below = exp.children(tree)
        level = Level(outer)
        made: dict[int, Relation] = {}
        waiting = [(0, False)]
        while waiting:
            at, is_ready = waiting.pop()
            node = tree[at]
            if is_ready:
                inputs = [made.pop(child) for child in below[at]]
                self._work(1 + sum(len(relation.order) for relation in inputs))
                made[at] = _OPERATORS.get(exp.kind(node), _other)(Step(self, node, inputs, level))
                continue
            if exp.kind(node) == "UnionLoop":
                made[at] = self._recursion(exp.subtree(tree, at), level)
                continue
            if exp.kind(node) == "CTERelationDef":
                level.choices.append(Choice())
            waiting.append((at, True))
            waiting += ((child, False) for child in reversed(below[at]))
        return made[0], level.choice

    def _recursion(self, tree: exp.Tree, level: Level) -> Relation:
        """Follow a recursive CTE: unite the columns of its anchor and of its recursive part.

        The recursive part reads the rows of the step before, and may mix their columns, so it is
        followed until its columns have no more sources. Each pass adds a source or a way from one,
        or is the last.
        """
        first, further = (exp.subtree(tree, at) for at in exp.children(tree)[0])
        anchor, choice = self.relation(first, level.outer)
        level.choice.include(choice)
        values, loop = anchor.values(), tree[0].get("id")
        while True:
            self.common[loop] = Relation.of(anchor.order, values), Choice()
            step, choice = self.relation(further, level.outer)
            before, found = values, step.values()
            if len(found) != len(values):
                found = [exp.UNKNOWN] * len(values)
            values = list(map(exp.together, zip(before, found, strict=True)))
            if values == before:
                break
        level.choice.include(choice)
        # Spark 4.0 gives the rows the ids of the anchor's columns, later versions give them others.
        own = [number.get("id") for number in tree[0].get("outputAttrIds") or ()]
        order = anchor.order
        if len(own) == len(order):
            order = [(number, name) for number, (_, name) in zip(own, order, strict=True)]
        return Relation.of(order, values)

    def changed(
        self, column: str, tree: exp.Tree, condition: exp.Tree | None, relation: Relation
    ) -> exp.Value:
        """Give the value that a clause of a MERGE gives to a column of the target.

        The condition of the clause is a source only for a column that does not keep its value.

        :param tree: the expression of the new value
        :param relation: the columns to which the expression and the condition refer
        """
        value = self.of(tree, relation.find)
        if condition is None or value.text == exp.NULL:
            return value
        if value.sources == {self.number(self._target, column): exp.IDENTITY}:
            return value
        return exp.chosen_for(value, self.of(condition, relation.find))

    def without_kept(self, column: str, value: exp.Value) -> exp.Value:
        """Remove a column of the target from its own sources, if the column keeps its value.

        Only the IDENTITY from the column to itself is removed; its other transformations stay.
        """
        own = self.number(self._target, column)
        bits = value.sources.get(own, 0)
        if not bits & exp.IDENTITY:
            return value
        others = {source: ways for source, ways in value.sources.items() if source != own}
        if bits != exp.IDENTITY:
            others[own] = bits & ~exp.IDENTITY
        return replace(value, sources=others)

    def _subquery(
        self, tree: exp.Tree, find: exp.Find
    ) -> tuple[list[exp.Value], exp.Sources, bool]:
        relation, choice = self.relation(tree, find)
        return relation.values(), choice.sources, choice.is_whole
