"""Read the trees of a plan, and find the sources of an expression, from its columns upwards.

The arguments of a function are sources by TRANSFORMATION, those of an aggregate by AGGREGATION. A
condition that chooses among values is CONDITIONAL, and the partitioning and order of a window are
WINDOW. The listener reports the same. A subquery is a plan of its own: its column is a source of
the value, and the columns that choose its rows influence only the value that uses the subquery, not
all columns.

Plans of thousands of nodes are followed column by column. So the transformations from a source (its
*ways*) are the bits of a number (:class:`Value`), and become :class:`Transformation` objects only
for the columns that are written. Each value has a short readable text, close to SQL, in which the
values of text literals are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.composition import combine
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT, Transformation
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.model.allowance import Work


# --- trees ----------------------------------------------------------------------------------------
#
# Spark writes a tree as a JSON array in which each node is followed by its children.
# ``TreeNode.toJSON`` writes for each node its class, the number of its children and its fields. A
# field that holds a child has the child's position among the children; a tree that is not a child,
# such as an expression of a plan or the plan of a subquery, is an array within the field. The
# arrays are long, and deep only by subqueries, so no function here is recursive.


Node = dict[str, Any]
Tree = list[Node]


def kind(node: Node) -> str:
    """Give the class of a node without its package; empty if the node has none."""
    name = node.get("class")
    return _without_package(name) if isinstance(name, str) else ""


@lru_cache(maxsize=1024)  # a plan has thousands of nodes of some dozen classes
def _without_package(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$")


def arity(node: Node) -> int:
    """Give the number of a node's children."""
    number = node.get("num-children")
    return number if isinstance(number, int) and number > 0 else 0


def is_tree(value: object) -> bool:
    """Whether the value of a node's field is itself a tree: a list of nodes."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and bool(kind(value[0]))
    )


def trees(value: object) -> Iterator[Tree]:
    """Yield the trees in the value of a node's field.

    The value may be a tree, or contain trees in lists and objects of any depth.
    """
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if is_tree(found):
            yield found  # type: ignore[misc]
        elif isinstance(found, list):
            waiting += reversed(found)
        elif isinstance(found, dict):
            waiting += reversed(list(found.values()))


def children(tree: Tree) -> list[list[int]]:
    """Give for each node the positions of its children in the tree's list of nodes.

    :raise ValueError: if the list is not one tree
    """
    below: list[list[int]] = [[] for _ in tree]
    waiting: list[int] = []
    for at in range(len(tree) - 1, -1, -1):
        for _ in range(arity(tree[at])):
            if not waiting:
                break
            below[at].append(waiting.pop())
        waiting.append(at)
    if waiting != [0] or any(len(of) != arity(tree[at]) for at, of in enumerate(below)):
        msg = "the plan is no tree"
        raise ValueError(msg)
    return below


def subtree(tree: Tree, at: int) -> Tree:
    """Give the node at a position, with all nodes below it."""
    end, open_ = at, 1
    while open_ and end < len(tree):
        open_ += arity(tree[end]) - 1
        end += 1
    return tree[at:end]


def expression_id(node: Node) -> int | None:
    """Give the id of a named expression or attribute; None if the node has none."""
    found = node.get("exprId")
    number = found.get("id") if isinstance(found, dict) else None
    return number if isinstance(number, int) else None


def attributes(value: object) -> list[tuple[int, str]]:
    """Give the (id, name) pairs of the attributes in the value of a node's field."""
    roots = [tree[0] for tree in trees(value)]
    numbers = map(expression_id, roots)
    named = zip(numbers, roots, strict=True)
    return [(number, str(root.get("name", ""))) for number, root in named if number is not None]


def conjuncts(tree: Tree) -> list[Tree]:
    """Split a condition at its ANDs."""
    found: list[Tree] = []
    at = 0
    while at < len(tree):
        if kind(tree[at]) == "And":
            at += 1
            continue
        found.append(subtree(tree, at))
        at += len(found[-1])
    return found


def parts(tree: Tree, *fields: str) -> tuple[Tree | None, list[list[Tree]]]:
    """Split a clause of a MERGE into its condition, and the lists of values that it sets.

    :param fields: the fields of the node that list the positions of values among its children
    :return: the condition, or None if there is none; and for each field, the list of its values
    """
    below = [subtree(tree, at) for at in children(tree)[0]]
    found = [tree[0].get(field) for field in fields]
    lists = [positions if isinstance(positions, list) else [] for positions in found]
    listed = {at for positions in lists for at in positions}
    conditions = [child for at, child in enumerate(below) if at not in listed]
    outputs = [[below[at] for at in positions if at < len(below)] for positions in lists]
    return (conditions[0] if conditions else None), outputs


# --- values: sources, and the ways from them ------------------------------------------------------


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
"""The bit of a transformation, shifted left by this number, is that transformation with masking."""

Sources = dict[int, int]
"""Number of a source column -> the transformations from it, each as a bit (its *ways*)."""


def ways(bits: int) -> list[Transformation]:
    """Give the transformations that the bits stand for."""
    return [way for at, way in enumerate(_WAYS) if bits >> at & 1]


@lru_cache(maxsize=4096)
def _in_a_row(this: int, upstream: int) -> int:
    """Combine a transformation with each of those before it, by :func:`.combine`.

    :param this: the transformation, as a bit
    :param upstream: the transformations before it, as bits
    :return: the combined transformations, as bits
    """
    [step] = ways(this)
    bits = 0
    for way in ways(upstream):
        bits |= _BIT[combine(step, way)]
    return bits


def through(step: int, sources: Mapping[int, int]) -> Sources:
    """Combine the transformations from each source with one more transformation after them.

    :param step: the transformation to add, as a bit
    :param sources: number of a source column -> the transformations from it, as bits
    :return: the same columns, with the combined transformations
    """
    if step == IDENTITY:
        return dict(sources)
    return {source: _in_a_row(step, bits) for source, bits in sources.items()}


def unite(into: Sources, sources: Mapping[int, int]) -> None:
    """Add sources, with the transformations from them as bits, to ``into``."""
    for source, bits in sources.items():
        into[source] = into.get(source, 0) | bits


class Value(Frozen, frozen=True):
    """The sources of a column or expression.

    :param sources: columns that were read, by their numbers, each with the transformations from it
    :param is_whole: whether all sources are known; False if some could not be followed
    :param guess: the function of whole rows that made the value, whose sources are then a guess;
        empty without such a function
    :param made_of: things other than columns of which the value is made: ``literal``, ``count``,
        ``rdd`` and so on
    :param text: the expression that made the value; empty for a column as it was read
    :param fields: the values of the fields, in order, if the value is a struct that the plan made,
        or a list of such structs; empty if it is anything else
    """

    sources: Mapping[int, int]
    is_whole: bool = True
    guess: str = ""
    made_of: frozenset[str] = frozenset()
    text: str = ""
    fields: tuple[Value, ...] = ()

    def by(self, step: int) -> Value:
        """Give the value with one more transformation of its sources.

        The fields of a struct are no longer known then.

        :param step: the transformation, as a bit
        """
        if step == IDENTITY:
            return self
        return replace(self, sources=through(step, self.sources), fields=())


NULL = "NULL"
"""The text of a literal null."""
UNKNOWN = Value({}, is_whole=False)
ELSEWHERE = replace(UNKNOWN, made_of=frozenset({"relation"}))
"""A column of a relation that is not a dataset of the application, such as a database query."""
NOTHING = Value({})


def together(values: Iterable[Value]) -> Value:
    """Unite values, such as those of two branches of a union, or of an expression's operands."""
    found = list(values)
    if len(found) == 1:
        return found[0]
    sources: Sources = {}
    for value in found:
        unite(sources, value.sources)
    made_of = frozenset[str]().union(*(value.made_of for value in found))
    fields = [value.fields for value in found] if any(value.fields for value in found) else []
    are_alike = len({len(of) for of in fields}) == 1
    return Value(
        sources,
        all(value.is_whole for value in found),
        next((value.guess for value in found if value.guess), ""),
        made_of,
        next((value.text for value in found if value.text), ""),
        tuple(map(together, zip(*fields, strict=True))) if are_alike else (),
    )


def of_many_rows(values: Iterable[Value]) -> Value:
    """Unite the values that one column has in several rows, all made from one row.

    Literal nulls are left out, unless all values are nulls.
    """
    found = list(values)
    return together([value for value in found if value.text != NULL] or found)


def chosen_for(value: Value, condition: Value) -> Value:
    """Add the sources of a condition to a value that is used only where the condition holds."""
    found = together([value, condition.by(CONDITIONAL)])
    return replace(found, made_of=value.made_of, guess=value.guess, text=value.text)


# --- texts of expressions -------------------------------------------------------------------------


MAX_TEXT = 200
"""The most characters of an expression's text; in a longer one, … stands in place of operands."""

_SIGNS = {
    **{"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"},
    **{"EqualTo": "=", "EqualNullSafe": "<=>", "And": "AND", "Or": "OR", "Like": "LIKE"},
    **{"GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<="},
}
_SHARED = "common_expression_ref()"
"""The text of a reference to a common expression, until the expression is known."""
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "InSubquery", "LateralSubquery")
_HIDDEN_LITERAL = "'…'"
_NUMBER_TYPES = frozenset({"byte", "short", "integer", "long", "float", "double", "boolean"})
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def expression_text(name: str, node: Node, operands: list[str]) -> str:
    """Format an expression as a short text.

    :param name: the class of the expression, without the package
    :param node: the node of the expression, which has its fields, such as the type of a cast
    :param operands: the texts of its operands
    """
    text = _text(name, node, operands)
    if len(text) > MAX_TEXT:
        text = _text(name, node, ["…"] * min(len(operands), 2))
    return text if len(text) <= MAX_TEXT else "…"


def joined_text(first: str, second: str) -> str:
    """Join the texts of two conditions with AND, if the result is short enough; else the first."""
    if not first or not second or second in first:
        return first or second
    both = f"{first} AND {second}"
    return both if len(both) <= MAX_TEXT else first


def _text(name: str, node: Node, operands: list[str]) -> str:
    own = node.get("name")
    if name == "Literal":
        return _literal_text(node)
    if name in _SUBQUERIES:
        return "(SELECT …)"
    if name in _FORMS and operands:
        return _FORMS[name](operands)
    if name in _SIGNS and len(operands) == len("ab"):
        return f"({operands[0]} {_SIGNS[name]} {operands[1]})"
    if name == "Cast":
        return _cast_text(node, operands[0])
    if name == "GetStructField":
        return f"{operands[0]}.{own or node.get('ordinal')}"
    if isinstance(own, str) and (not operands or name.startswith("Python")):
        return f"{own}({', '.join(operands)})" if name.startswith("Python") else own
    return f"{_WORD.sub('_', name).lower()}({', '.join(operands)})"


def _case_text(operands: list[str]) -> str:
    pairs = zip(operands[::2], operands[1::2], strict=False)
    whens = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
    otherwise = f" ELSE {operands[-1]}" if len(operands) % 2 else ""
    return f"CASE{whens}{otherwise} END"


def _with_text(operands: list[str]) -> str:
    value, *common = operands
    return value.replace(_SHARED, common[0]) if len(common) == 1 else value


_FORMS: Mapping[str, Callable[[list[str]], str]] = {
    **dict.fromkeys(("AggregateExpression", "WindowExpression", "Between"), itemgetter(0)),
    "With": _with_text,
    "CaseWhen": _case_text,
    "In": lambda operands: f"({operands[0]} IN ({', '.join(operands[1:])}))",
    "IsNull": lambda operands: f"({operands[0]} IS NULL)",
    "IsNotNull": lambda operands: f"({operands[0]} IS NOT NULL)",
}


def _cast_text(node: Node, operand: str) -> str:
    if operand == _HIDDEN_LITERAL or not operand.strip("0123456789."):
        return operand
    kind_of = node.get("dataType")
    return f"CAST({operand} AS {kind_of if isinstance(kind_of, str) else '…'})"


def _literal_text(node: Node) -> str:
    """Format a literal: numbers are shown, strings are hidden, because they may be private."""
    value = node.get("value")
    if value is None:
        return NULL
    kind_of = str(node.get("dataType"))
    is_number = kind_of in _NUMBER_TYPES or kind_of.startswith("decimal")
    return str(value) if is_number else _HIDDEN_LITERAL


# --- expressions ----------------------------------------------------------------------------------


_MASKING_FUNCTIONS = frozenset(
    ("Crc32", "HiveHash", "Md5", "Murmur3Hash", "Sha1", "Sha2", "XxHash64", "Count", "Mask")
)
# Their arguments are those of the window, and are not sources of the value.
_RANK_FUNCTIONS = frozenset({"Rank", "DenseRank", "PercentRank", "RowNumber", "CumeDist", "NTile"})
_RANDOM_FUNCTIONS = frozenset({"Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle"})
_PYTHON_FUNCTIONS = frozenset(
    {"PythonUDF", "PythonUDAF", "PythonUDTF", "UnresolvedPolymorphicPythonUDTF"}
)
_OUTER = ("OuterReference", "OuterScopeReference")  # of the plan around, and of one further out
_ATTRIBUTES = ("AttributeReference", "LateralColumnAliasReference", *_OUTER)
_SAME = frozenset(
    {
        *("Alias", "KnownNullable", "KnownNotNull", "KnownFloatingPointNormalized", "UpCast"),
        *("NormalizeNaNAndZero", "CommonExpressionDef", "TempResolvedColumn", "SortOrder"),
        *("DeltaMergeAction", "PromotePrecision", "CharVarcharFieldReadSideCheck", "Empty2Null"),
    }
)
"""Expressions whose value is their only operand, unchanged."""
_OF_LISTS = frozenset(("CreateArray", "GetArrayItem", "Explode", "PosExplode", "Inline"))
"""Functions that make a list of structs, or take structs out of one, and change no field."""
Find = Callable[[int], Value]
"""Gives the value of an attribute, by its expression id."""
Operands = list[Value]
Subquery = Callable[[Tree, Find], tuple[list[Value], Sources, bool]]

_COMMON_EXPRESSION = -1
"""The number of a source that stands for a common expression, until the expression is known."""


class Expressions:
    """Finds the sources of expressions, each as a :class:`Value`.

    :param subquery: a function that gives, for a subquery's plan, the values of its columns, the
        sources that choose its rows, and whether all of these sources are known
    """

    def __init__(self, subquery: Subquery, work: Work) -> None:
        self._subquery = subquery
        self._work = work

    def value(self, tree: Tree, find: Find, chosen_by: Sources | None = None) -> Value:
        """Give the value of an expression.

        :param find: gives the value of an attribute, by its expression id
        :param chosen_by: the sources of the conditions on rows, if the expression is such a
            condition. The sources of EXISTS and IN are added to ``chosen_by`` and not to the value,
            because Spark joins with such a subquery
        """
        operands: Operands = []
        labels: list[str] = []
        for at in range(len(tree) - 1, -1, -1):
            node = tree[at]
            name = kind(node)
            below: Operands = []
            named: list[str] = []
            if number := min(arity(node), len(operands)):
                below, operands[-number:] = operands[: -number - 1 : -1], ()
                named, labels[-number:] = labels[: -number - 1 : -1], ()
                self._work(1 + sum([len(value.sources) for value in below]))
                if _is_same(name, node, tree[at + 1]):
                    operands.append(below[0])
                    labels.append(named[0])
                    continue
            made = self._made(name, node, below, find, chosen_by)
            if name in _ATTRIBUTES or _is_known_field(name, below):
                operands.append(made)
                labels.append(made.text or expression_text(name, _referenced(name, node), named))
            else:
                labels.append(expression_text(name, node, named))
                operands.append(replace(made, text=labels[-1]))
        return operands[-1] if operands else UNKNOWN

    def _made(
        self, name: str, node: Node, below: Operands, find: Find, chosen_by: Sources | None
    ) -> Value:
        if name in _ATTRIBUTES:
            return _attribute(name, node, find)
        if name in ("Exists", "InSubquery"):
            rows = self._of_rows(name, node, below, find)
            if chosen_by is None:
                return rows
            unite(chosen_by, rows.sources)
            return replace(NOTHING, is_whole=rows.is_whole)
        if is_tree(node.get("plan")):
            return self._of_subquery(name, node, find)
        if _is_known_field(name, below):
            return _field(node, below[0])
        return _CHOICES[name](below) if name in _CHOICES else _function(name, below)

    def _of_subquery(self, name: str, node: Node, find: Find) -> Value:
        """Find the sources of a subquery: of its first column if it is scalar, else of all columns.

        The sources that choose the rows of the subquery are added.

        :param name: the class of the subquery's expression, e.g. ``ScalarSubquery``
        :param node: the node of that expression, which has the subquery's plan
        :param find: gives the value of an attribute, by its expression id
        """
        columns, rows, is_whole = self._subquery(node["plan"], find)
        value = together(columns[:1] if name == "ScalarSubquery" else columns)
        if name == "ListQuery":
            value = value.by(JOIN)
        sources = dict(value.sources)
        unite(sources, rows)
        return replace(value, sources=sources, is_whole=value.is_whole and is_whole)

    def _of_rows(self, name: str, node: Node, below: Operands, find: Find) -> Value:
        """Give the sources of EXISTS or IN: those of the subquery, and of the compared values.

        :param name: the class of the expression: ``Exists`` or ``InSubquery``
        :param node: the node of the expression
        :param below: its operands; of IN, the compared values and then the subquery
        :param find: gives the value of an attribute, by its expression id
        """
        if name == "Exists":
            _, rows, is_whole = self._subquery(node["plan"], find)
            return Value(rows, is_whole)
        *compared, query = below
        sources = through(JOIN, together(compared).sources)
        unite(sources, query.sources)
        return Value(sources, all(value.is_whole for value in below))


def _attribute(name: str, node: Node, find: Find) -> Value:
    number = expression_id(_referenced(name, node))
    return UNKNOWN if number is None else find(number)


def _referenced(name: str, node: Node) -> Node:
    """Give the attribute that a reference to the plan around has; of others, the node itself."""
    inner = next(trees(node.get("e") or node.get("name")), None) if name in _OUTER else None
    return inner[0] if inner else node


def _is_same(name: str, node: Node, first: Node) -> bool:
    """Whether an expression has the value of its first operand, as an alias has.

    :param name: the class of the expression, without the package
    :param node: the node of the expression
    :param first: the node of the first operand
    """
    if name == "Cast":
        return "dataType" in first and first["dataType"] == node.get("dataType")
    return name in _SAME


def _function(name: str, below: Operands) -> Value:
    if name == "CommonExpressionRef":
        return Value({_COMMON_EXPRESSION: IDENTITY})
    if not below:
        literal = name in ("Literal", "TypedNullLiteral")
        made_of = "literal" if literal else "python" if name in _PYTHON_FUNCTIONS else "function"
        return Value({}, made_of=frozenset({made_of}))
    value = together(below)
    step = TRANSFORMATION << MASKING if name in _MASKING_FUNCTIONS else TRANSFORMATION
    fields = value.fields if name in _OF_LISTS else ()
    return replace(value.by(step), made_of=_made_of(name, value), fields=fields)


def _made_of(name: str, operands: Value) -> frozenset[str]:
    made_of = operands.made_of
    if name == "Count" and made_of == {"literal"}:
        return frozenset({"count"})
    if name in _RANDOM_FUNCTIONS:
        return frozenset({"function"})
    if name in _PYTHON_FUNCTIONS:
        return made_of if operands.sources or made_of - {"literal"} else frozenset({"python"})
    # A literal among other things explains nothing, so it is left out.
    return made_of if len(made_of) == 1 else made_of - {"literal"}


# --- expressions that do not treat all of their operands in one way -------------------------------


def _case(below: Operands) -> Value:
    """Give the value of CASE from its operands: conditions and values in turn, then any ELSE."""
    pairs = len(below) // 2 * 2
    return _chosen(below[:pairs:2], [*below[1:pairs:2], *below[pairs:]])


def _if(below: Operands) -> Value:
    if below[1] == below[2] and not below[1].text:
        return below[1]  # UPDATE has such an If for a column that keeps its value
    return _chosen(below[:1], below[1:])


def _chosen(
    conditions: Operands, values: Operands, by: int = TRANSFORMATION, chosen_by: int = CONDITIONAL
) -> Value:
    united = together(values).by(by)
    found = together([united, *(condition.by(chosen_by) for condition in conditions)])
    return replace(found, made_of=united.made_of)


def _aggregate(below: Operands) -> Value:
    """Give the value of an aggregate from its operands: its function, and any FILTER clause."""
    function, *conditions = below
    return _chosen(conditions, [function], AGGREGATION)


def _pivot_first(below: Operands) -> Value:
    chosen, *values = below
    return _chosen([chosen], values)


def _struct(below: Operands) -> Value:
    """Give the value of a struct from its operands: the name and value of each field in turn."""
    fields = tuple(below[1::2])
    return replace(together(fields).by(TRANSFORMATION), fields=fields)


def _is_known_field(name: str, below: Operands) -> bool:
    """Whether an expression is a field of a struct that the plan made.

    :param name: the class of the expression
    :param below: its operands
    """
    is_field = name in ("GetStructField", "GetArrayStructFields")
    return is_field and bool(below) and bool(below[0].fields)


def _field(node: Node, struct: Value) -> Value:
    """Give the value of a field of a struct that the plan made.

    :param node: the node of the expression, which has the field's position
    """
    at = node.get("ordinal")
    if isinstance(at, int) and at < len(struct.fields):
        return struct.fields[at]
    return struct.by(TRANSFORMATION)


def _window(below: Operands) -> Value:
    function, spec = below
    return _chosen([spec], [function], chosen_by=WINDOW)


def _with(below: Operands) -> Value:
    """Give the value of a ``With`` from its operands: an expression, and its common expressions.

    Each reference to a common expression gets the sources of all common expressions, because the
    numbers in the references are not used.
    """
    value, *common = below
    bits = value.sources.get(_COMMON_EXPRESSION, 0)
    sources = {source: way for source, way in value.sources.items() if source != _COMMON_EXPRESSION}
    for at in range(bits.bit_length()):
        if bits >> at & 1:
            for definition in common:
                unite(sources, through(1 << at, definition.sources))
    is_whole = all(v.is_whole for v in below)
    made_of = value.made_of.union(*(definition.made_of for definition in common))
    return replace(value, sources=sources, is_whole=is_whole, made_of=made_of)


_CHOICES: Mapping[str, Callable[[Operands], Value]] = {
    "CaseWhen": _case,
    "If": _if,
    "Coalesce": lambda below: _chosen(below, below),
    "AggregateExpression": _aggregate,
    "PivotFirst": _pivot_first,
    "CreateNamedStruct": _struct,
    "WindowExpression": _window,
    "With": _with,
    **dict.fromkeys(_RANK_FUNCTIONS, lambda _: _function("", [])),
}
