"""Find the sources of the columns that a command writes.

Most commands write the output columns of a query, in their order. MERGE, UPDATE and DELETE change
rows: a column that keeps its values has no lineage from this write, and the condition that chooses
rows for a change is a CONDITIONAL source of the columns that the change sets.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from airflow_provider_sparklineage.lineage.columns.edges import (
    ROW_SUBTYPES,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
)
from airflow_provider_sparklineage.lineage.columns.plans import expressions as exp
from airflow_provider_sparklineage.lineage.columns.plans.operators import (
    Choice,
    Relation,
    Walk,
    joined_relation,
)
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.lineage.observed.accesses import WritePlan
    from airflow_provider_sparklineage.model.allowance import Work


class PlannedColumns(Frozen, frozen=True):
    """The column lineage of a write, as Spark's plan shows it.

    :param incomplete: columns that have sources which could not be followed
    :param elsewhere: the incomplete columns that are made of a relation which is not a known
        dataset
    :param is_whole: whether all conditions on the rows are known
    :param made_of: column without sources -> the kinds of things that it is made of instead
        (``literal``, ``count``, …); the empty set for a column that a MERGE, UPDATE or DELETE
        leaves as it is
    :param guesses: column that a function of whole rows made -> the name of the function
    """

    lineage: ColumnLineage = field(default_factory=ColumnLineage)
    incomplete: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    is_whole: bool = True
    made_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)


class UnreadablePlanError(Exception):
    """Raised when a plan cannot be read as a tree of nodes; the message is a sentence."""


_ROW_COMMANDS = frozenset({"ReplaceData", "WriteDelta"})
"""Commands for a MERGE, UPDATE or DELETE whose query gives the changed rows."""
_MERGE_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


# A plan is read without a schema, as each operator has other fields: a damaged plan can raise any
# of these errors.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def planned_columns(write: WritePlan, work: Work = lambda _: None) -> PlannedColumns:
    """Give the column lineage of a write, as its plan shows it.

    :param work: counts units of work, and raises :exc:`SpentError` if there is no time left
    :return: the column lineage; without columns if the plan is not a list of nodes
    :raise UnreadablePlanError: if the nodes do not form a tree, or a field has an unexpected form
    :raise SpentError: if there is no time left
    """
    try:
        tree = msgspec.json.decode(write.plan)
        if not exp.is_tree(tree):
            return PlannedColumns(is_whole=False)
        return _Command(write, work).columns(tree)
    except _DAMAGED as error:
        msg = f"The plan of a write to {write.target} cannot be read: {error}."
        raise UnreadablePlanError(msg) from error


class _Command:
    """Finds the sources of the columns that one command writes."""

    def __init__(self, write: WritePlan, work: Work) -> None:
        self._write = write
        self._walk = Walk(
            {number: of for of, ids in write.relations if of is not None for number in ids},
            write.target,
            work,
        )

    def columns(self, tree: exp.Tree) -> PlannedColumns:
        tree = self._without_common_tables(tree)
        root = tree[0]
        name = exp.kind(root)
        if name == "MergeIntoCommand":
            return self._merged(root)
        if name in ("UpdateCommand", "UpdateTable"):
            return self._updated(root)
        if name.startswith("Delete"):
            return self._deleted(tree)
        relation, choice = self._walk.relation(self._query(tree))
        for partition in exp.trees(root.get("partitionColumns")):
            number = exp.expression_id(partition[0])
            if number in relation.known:  # Spark sorts the rows of a partitioned write
                exp.unite(choice.sources, relation.known[number].by(exp.SORT).sources)
        if name in _ROW_COMMANDS:
            return self._made(self._changed_rows(root, relation), choice)
        return self._made(self._by_name(relation), choice)

    def _without_common_tables(self, tree: exp.Tree) -> exp.Tree:
        """Read the common tables that are defined before a command, and give the command."""
        if exp.kind(tree[0]) != "WithCTE":
            return tree
        *definitions, command = (exp.subtree(tree, at) for at in exp.children(tree)[0])
        for definition in definitions:
            self._walk.relation(definition)
        return command

    def _query(self, tree: exp.Tree) -> exp.Tree:
        """Give the query of a command; the full plan if the command has no query."""
        query = tree[0].get("query")
        if exp.is_tree(query):
            return query  # type: ignore[return-value]
        if isinstance(query, int):
            below = exp.children(tree)[0]
            return exp.subtree(tree, below[query])
        return tree

    def _changed_rows(self, root: exp.Node, relation: Relation) -> dict[str, exp.Value]:
        """Give the :class:`.Value` of each column of the table whose rows the command changes.

        Columns of the query that the table lacks, such as the ids of rows, are left out.

        :param root: the node of the command
        :param relation: the output of the query, which gives the changed rows
        :return: name of a column -> its value
        """
        [table] = exp.trees(root.get("table"))
        values = {name: relation.find(number) for number, name in relation.order}
        return {
            name: self._walk.without_kept(name, values.get(name, exp.NOTHING))
            for _, name in exp.attributes(table[0].get("output"))
        }

    def _by_name(self, relation: Relation) -> dict[str, exp.Value]:
        """Give the values of the target's columns, which are the columns of the query by position.

        If the query has more or fewer columns than the target, they are matched by name.

        :param relation: the output of the query
        :return: name of a column of the target -> its value
        """
        values = relation.values()
        names = [name for _, name in relation.order]
        targets = self._write.columns or names
        if len(targets) == len(values):
            return dict(zip(targets, values, strict=True))
        found = dict(zip(names, values, strict=True))
        return {name: found.get(name, exp.UNKNOWN) for name in targets}

    # --- commands that change rows, and have no query ---

    def _sides(self, *plans: object) -> tuple[Relation, Choice]:
        """Join the relations of a command's plans, such as the target and the source of a MERGE.

        Expressions of the command refer to columns of these relations.

        :return: the joined relation, and the sources that choose its rows; if a plan is missing,
            not all of these sources are known
        """
        relation, choice = Relation(), Choice()
        for plan in plans:
            if not exp.is_tree(plan):
                choice.is_whole = False
                continue
            found, chosen = self._walk.relation(plan)  # type: ignore[arg-type]
            relation = joined_relation(relation, found)
            choice.include(chosen)
        return relation, choice

    def _condition(self, root: exp.Node, relation: Relation, choice: Choice) -> exp.Value:
        """Give the value of the command's condition; NOTHING if it has none.

        :param root: the node of the command
        :param relation: the columns to which the condition refers
        :param choice: gets the sources of EXISTS and IN in the condition, which then are not in
            the value
        """
        conditions = exp.trees(root.get("condition"))
        return exp.together(
            self._walk.of(tree, relation.find, choice.sources) for tree in conditions
        )

    def _merged(self, root: exp.Node) -> PlannedColumns:
        target, _ = self._sides(root.get("target"))
        relation, choice = self._sides(root.get("target"), root.get("source"))
        on = self._condition(root, relation, choice)
        choice.add(on, exp.JOIN)
        columns = self._write.columns or [name for _, name in target.order]
        values: dict[str, list[exp.Value]] = {column: [exp.NOTHING] for column in columns}
        for clauses in _MERGE_CLAUSES:
            for clause in exp.trees(root.get(clauses)):
                condition, [actions] = exp.parts(clause, "actions")
                for action in actions:
                    column = self._target_column(action[0])
                    value = self._walk.changed(column, action, condition, relation)
                    values.setdefault(column, []).append(self._walk.without_kept(column, value))
        return self._made({column: exp.together(found) for column, found in values.items()}, choice)

    def _target_column(self, action: exp.Node) -> str:
        """Give the column that an action of a MERGE sets.

        If the action sets a nested field, the result is the column that contains the field.
        """
        name = str(action.get("targetColNameParts", ""))[1:-1]
        return name if name in self._write.columns else name.partition(", ")[0]

    def _updated(self, root: exp.Node) -> PlannedColumns:
        relation, choice = self._sides(root.get("target", root.get("table")))
        chosen = self._condition(root, relation, choice)
        values = {}
        expressions = list(exp.trees(root.get("updateExpressions")))
        for (_, column), tree in zip(relation.order, expressions, strict=False):
            value = self._walk.without_kept(column, self._walk.of(tree, relation.find))
            is_set = value.sources or value.made_of
            values[column] = exp.chosen_for(value, chosen) if is_set else value
        choice.is_whole = choice.is_whole and bool(expressions)
        return self._made(values, choice)

    def _deleted(self, tree: exp.Tree) -> PlannedColumns:
        root = tree[0]
        target = root.get("target", root.get("table"))
        if isinstance(target, int):
            target = exp.subtree(tree, exp.children(tree)[0][target])
        relation, choice = self._sides(target)
        value = self._condition(root, relation, choice)
        choice.add(value, exp.FILTER)
        return self._made({column: exp.NOTHING for _, column in relation.order}, choice)

    # --- the result ---

    def _made(self, columns: Mapping[str, exp.Value], choice: Choice) -> PlannedColumns:
        known: dict[int, Edges] = {}
        fields = {}
        for name, value in columns.items():
            edges = known.get(id(value))
            if edges is None:
                describe = partial(_described, text=value.text)
                edges = known[id(value)] = self._edges(value.sources, describe)
            if edges:
                fields[name] = edges
        rows = self._edges(choice.sources, choice.described)
        return PlannedColumns(
            ColumnLineage(fields, rows),
            frozenset(name for name, value in columns.items() if not value.is_whole),
            frozenset(n for n, v in columns.items() if not v.is_whole and "relation" in v.made_of),
            choice.is_whole,
            {n: v.made_of for n, v in columns.items() if v.is_whole and not v.sources},
            {name: value.guess for name, value in columns.items() if value.guess},
        )

    def _edges(
        self, sources: Mapping[int, int], describe: Callable[[int, Transformation], Transformation]
    ) -> dict[Column, tuple[Transformation, ...]]:
        return {
            self._walk.column(source): tuple(describe(source, way) for way in exp.ways(bits))
            for source, bits in sorted(sources.items())
        }


def _described(_source: int, way: Transformation, text: str) -> Transformation:
    if way.subtype == "IDENTITY" or way.subtype in ROW_SUBTYPES:
        return way
    return way._replace(description=text)
