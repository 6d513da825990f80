"""Conditions from SQL: from Spark's filters, from statements, and from JDBC queries.

Predicates that OpenLineage's subset facet can express become structured conditions: comparisons of
a column with a literal, BETWEEN, IN, AND, OR. Every other predicate becomes a description (NOT,
``!=``, ``<=>``, LIKE, IS NULL, functions, sub-queries, comparisons of columns with columns), while
the conditions around it remain structured. No text makes a function of this module raise; a text
that cannot be parsed becomes a single description.

A predicate shows which rows a query asked for, not which rows it read: if a query joins a filtered
and an unfiltered scan of one table, only the filter is seen.

The class of a node is recognised by its sqlglot key. So sqlglot, whose import takes half a second,
is imported only when there is a text to parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import (
    BY_SYMBOL,
    EVERYTHING,
    NOTHING,
    Binary,
    Compare,
    Comparison,
    Condition,
    Description,
    Operator,
    conjunction,
    disjunction,
    terms,
)
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


# --- the texts of SQL literals --------------------------------------------------------------------

# An expression of sqlglot. Its class is Expression up to version 27 and Expr since; this module
# uses only key, this, expression, args, parts and sql() of the class.
Node: TypeAlias = Any

_Naming: TypeAlias = Callable[[tuple[str, ...]], str]
"""A function that names a field by the parts of its name in SQL, which may have qualifiers."""

_NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DECIMAL = re.compile(r"-?(\d*)\.?(\d*)", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?", re.ASCII)
# Types of casts that leave a literal of this form as it is; any other cast may change the value.
_UNCHANGED = {
    "DATE": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "TIMESTAMP": _TIME,
    "TIMESTAMPTZ": _TIME,
    "TIMESTAMPLTZ": _TIME,
    "TIMESTAMPNTZ": _TIME,
    "TINYINT": re.compile(r"-?\d{1,2}", re.ASCII),
    "SMALLINT": re.compile(r"-?\d{1,4}", re.ASCII),
    "INT": re.compile(r"-?\d{1,9}", re.ASCII),
    "BIGINT": re.compile(r"-?\d{1,18}", re.ASCII),
    "FLOAT": _NUMBER,
    "DOUBLE": _NUMBER,
    "TEXT": re.compile(".*", re.DOTALL),
    "BOOLEAN": re.compile("true|false"),
}


def literal(node: Node) -> str | None:
    """Give the text of a literal; None for any other node, or if a cast may change the value.

    Two strings side by side are not a literal: depending on
    ``spark.sql.legacy.consecutiveStringLiterals.enabled``, Spark reads them as one string with a
    quote in it, or joins them.
    """
    node = bare(node)
    if node.key == "literal":
        return str(node.this)
    if node.key == "boolean":
        return "true" if node.this else "false"
    if node.key == "neg":
        text = literal(node.this)
        return f"-{text}" if text and text[0] != "-" and _NUMBER.fullmatch(text) else None
    if node.key in ("cast", "trycast"):
        text = literal(node.this)
        return text if text is not None and _is_unchanged(text, node.args["to"]) else None
    return None


def _is_unchanged(text: str, type_: Node) -> bool:
    name = getattr(type_.this, "name", "")
    parameters = [int(p.name) for p in type_.expressions if p.name.isdecimal()]
    if name == "DECIMAL":
        precision, scale = (*parameters, *(10, 0)[len(parameters) :])
        digits = _DECIMAL.fullmatch(text)
        return digits is not None and (
            len(digits[1]) <= precision - scale and len(digits[2]) <= scale
        )
    pattern = _UNCHANGED.get(name)
    return pattern is not None and not type_.expressions and bool(pattern.fullmatch(text))


def bare(node: Node) -> Node:
    """Remove the parentheses around a node."""
    while node.key == "paren":
        node = node.this
    return node


# --- predicates in the form that Spark most often writes: comparisons of columns, joined by AND ---
#
# ``((dt = '2024-05-06') AND (amount > 0.0D))``, ``isnotnull(region)``: Spark pushes these down to
# scans. sqlglot reads such predicates too, but its import takes longer than everything else that a
# task does after a small job. So this section reads them, with the same result as sqlglot; sqlglot
# reads all other predicates.


# Longer or deeper predicates may exceed the stack in sqlglot. This section does not read them, so
# that their result is sqlglot's in any case.
_LONGEST = 1_000
_DEEPEST = 8

_PART = r"(?:[A-Za-z_]\w*|`[\w /.-]+`)"
_COLUMN = rf"({_PART}(?:\.{_PART}){{0,3}})"
_LITERAL = (
    r"'(?P<text>[^'\\]*)'"
    r"|(?P<integer>-?\d{1,18})L?"
    r"|(?P<number>-?\d{1,18}\.\d{1,18})D?"
    r"|DATE '(?P<date>\d{4}-\d\d-\d\d)'"
    r"|TIMESTAMP '(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)'"
    r"|(?P<boolean>true|false)\b"
)
_COMPARISON = re.compile(rf"{_COLUMN} (=|<=|>=|<|>) (?:{_LITERAL})(?=[ )]|\Z)", re.ASCII)
_NOT_NULL = re.compile(rf"{_COLUMN} IS NOT NULL(?=[ )]|\Z)|isnotnull\({_COLUMN}\)", re.ASCII)
_AND = " AND "
_NAME = re.compile(rf"({_PART})(?:\.|\Z)", re.ASCII)

_WORDS = re.compile(
    r"all|alter|analyze|and|any|as|begin|between|cache|call|case|comment|commit|connect_by_root|"
    r"copy|create|cross|current_date|current_timestamp|current_user|declare|delete|desc|"
    r"describe|distinct|drop|else|except|execute|explain|false|fetch|for|from|glob|grant|having|"
    r"if|ilike|inner|insert|intersect|into|join|kill|lateral|like|load|merge|minus|not|notnull|"
    r"null|on|optimize|or|outer|partitioned_by|pivot|pragma|prepare|qualify|refresh|regexp|"
    r"rename|returning|revoke|rlike|rollback|select|serdeproperties|session_user|set|show|"
    r"tablesample|then|true|truncate|uncache|union|unpivot|update|use|using|vacuum|values|when|"
    r"where|while|with|xor",
    re.IGNORECASE,
)
"""Words of SQL that can be a column's name only in some places, or never."""


def comparisons(text: str, naming: _Naming) -> Condition | None:
    """Read a predicate that consists of comparisons and ``IS NOT NULL``, joined by AND.

    :param naming: a function that names a field by the parts of its name in SQL
    :return: None if the predicate has any other form
    """
    if len(text) > _LONGEST:
        return None
    compares: list[Condition] = []
    not_null: list[str] = []
    at = depth = 0
    while True:
        while text.startswith("(", at):
            at, depth = at + 1, depth + 1
        test = _NOT_NULL.match(text, at)
        term = test or _COMPARISON.match(text, at)
        parts = _column_of(term)
        if term is None or parts is None or depth > _DEEPEST:
            return None
        if test:
            not_null.append(naming(parts))
        else:
            value = next(value for value in term.groupdict().values() if value is not None)
            compares.append(Compare(naming(parts), BY_SYMBOL[term[2]], value))
        at = term.end()
        while depth and text.startswith(")", at):
            at, depth = at + 1, depth - 1
        if at == len(text):
            return None if depth else _without_implied(compares, not_null)
        if not text.startswith(_AND, at):
            return None
        at += len(_AND)


def _column_of(term: re.Match[str] | None) -> tuple[str, ...] | None:
    """Give the parts of a column's name in a matched term: ``("t", "dt")`` for ``t.dt``.

    :return: None if there is no term, or if a part is a word of SQL, so that it may be no name
    """
    parts = _NAME.findall(term[1] or term[2]) if term else []
    if not parts or any(map(_WORDS.fullmatch, parts)):
        return None
    return tuple(part.strip("`") for part in parts)


# --- any predicate or statement to a condition ----------------------------------------------------


# Parsing takes about 0.1 ms per 10 characters; a longer predicate is not worth the time.
_LONGEST_PARSED = 20_000
_LONGEST_DESCRIPTION = 1_000

_STATEMENT = re.compile(r"\s*(SELECT|FROM|WITH|DELETE|UPDATE|INSERT)\b", re.IGNORECASE)
_PARTITION_CLAUSE = re.compile(r"\bPARTITION\s*\(", re.IGNORECASE)
_LEADING_WHERE = re.compile(r"\A\s*WHERE\b", re.IGNORECASE)
# Matches quoted texts and names, which are not changed, and the ids of expressions (in dt#12 and
# id#3L), which are removed.
_IDS = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|#\d+L?\b""", re.DOTALL)

_COMPARISONS = {
    "eq": Comparison.EQUAL,
    "gt": Comparison.GREATER_THAN,
    "gte": Comparison.GREATER_EQUAL_THAN,
    "lt": Comparison.LESS_THAN,
    "lte": Comparison.LESS_EQUAL_THAN,
}


def condition(text: str, columns: Collection[str] = ()) -> Condition:
    """Read a predicate, with or without a leading WHERE, as a condition in canonical form.

    Several predicates with commas between them are read as an AND, because Iceberg reports the
    filters of a scan with commas.

    :param columns: names of the dataset's columns, if they are known. If ``a`` is a column, ``a.b``
        is field ``b`` of struct ``a``, and the name is not changed. Otherwise ``a`` is assumed to
        be a table's name and removed: the text does not show whether ``a`` is a table or a struct,
        but in Spark's filters it mostly is a table.
    """
    text = _IDS.sub(r"\1", _LEADING_WHERE.sub("", text, count=1)).strip()

    def naming(parts: tuple[str, ...]) -> str:
        return _after_table(parts, columns)

    if (simple := comparisons(text, naming)) is not None:
        return simple
    tree = parsed(text) or _listed(text)
    return (_guarded(tree, naming) if tree is not None else None) or _described(text)


def _listed(text: str) -> Node | None:
    """Parse several predicates with commas between them; None if the text is not such a list."""
    tree = parsed(f"({text})") if "," in text else None
    return tree if tree is not None and tree.key == "tuple" else None


def where(statement: str, table: str | None = None) -> Condition | None:
    """Read the WHERE of a SELECT, DELETE or UPDATE of one table, as a condition.

    A column's qualifier is dropped if it is the table or its alias; another qualifier is a struct.

    :param table: the name that the table must have: ``t``, or the known end of ``catalog.schema.t``
    :return: None if the statement has no WHERE, is of another kind or for another table, or has a
        join, union, sub-query, WITH or LATERAL VIEW, so that the predicate may not apply to all
        rows that are read
    """
    tree = parsed(statement) if _STATEMENT.match(statement) else None
    if tree is None or tree.key not in ("select", "delete", "update"):
        return None
    source = _only_table(tree)
    predicate = tree.args.get("where")
    if source is None or predicate is None:
        return None
    names = [part.name.casefold() for part in source.parts]
    wanted = table.casefold().split(".") if table is not None else []
    if wanted and names[-len(wanted) :] != wanted:
        return None
    alias = source.alias.casefold()
    return _guarded(
        predicate.this, lambda parts: _without_qualifier(parts, [alias] if alias else names)
    )


@lru_cache(maxsize=4096)  # called for each column of an output; a job may have 1,000 statements
def static_partition(statement: str) -> tuple[tuple[str, str], ...]:
    """Give the columns to which the PARTITION clause of an INSERT gives a value, with the values.

    In ``PARTITION (dt='x', region)`` this is the column ``dt``.

    :return: pairs of column and value. A null is
        :data:`~airflow_provider_sparklineage.model.partitioning.NULL`; a column whose value is not
        a literal, such as ``current_date()``, is left out. Empty if there is no such clause
    """
    if not _STATEMENT.match(statement) or not _PARTITION_CLAUSE.search(statement):
        return ()
    tree = parsed(statement)
    if tree is None or tree.key != "insert":
        return ()
    clause = tree.this.args.get("partition") or tree.args.get("partition")
    if not clause:
        return ()
    values: list[tuple[str, str | None]] = []
    for item in clause.expressions:
        if item.key == "eq":
            value = literal(item.expression)
            if value is not None or item.expression.key == "null":
                values.append((item.this.name, value))
    return Partition.from_values(values).values


@lru_cache(maxsize=64)  # called for each table and column of a statement
def parsed(text: str) -> Node | None:
    """Parse a text that is one expression or statement; None for any other text.

    None is also returned for a text that is too long, or too deeply nested. The returned tree is
    cached and shared, so it must not be changed.
    """
    if not text.strip() or len(text) > _LONGEST_PARSED:
        return None
    from sqlglot import parse

    try:
        trees = parse(text, read="spark")
    except (
        Exception
    ):  # the text may be anything, and cause RecursionError, or errors in the parser itself
        return None
    return trees[0] if len(trees) == 1 else None


def _guarded(tree: Node, naming: _Naming) -> Condition | None:
    """Convert a tree to a condition; None if the tree is too deep for Python's stack.

    :param naming: a function that names a field by the parts of its name in SQL
    """
    try:
        return _converted(tree, naming)
    except RecursionError:
        return None


def _converted(node: Node, naming: _Naming) -> Condition:
    node = bare(node)
    converted: Condition | None = None
    if node.key in _COMPARISONS:
        converted = _compare(node, naming)
    elif node.key == "and":
        converted = _conjunction(list(_operands(node)), naming)
    elif node.key == "tuple" and node.parent is None:
        converted = _conjunction(node.expressions, naming)
    elif node.key == "or":
        converted = disjunction([_converted(n, naming) for n in _operands(node)])
    elif node.key == "between":
        converted = _between(node, naming)
    elif node.key == "in":
        converted = _in(node, naming)
    elif node.key == "boolean":
        converted = EVERYTHING if node.this else NOTHING
    elif (field := _not_null(node, naming)) is not None:
        converted = Description(f"{field} IS NOT NULL")
    return converted or _described(node.sql("spark", normalize_functions=False, comments=False))


def _described(text: str) -> Description:
    return Description(truncated(text, _LONGEST_DESCRIPTION))


def _operands(node: Node) -> Iterator[Node]:
    """Yield the operands of a chain of ANDs or of ORs, from left to right.

    The chain's tree is as deep as the chain is long, so the function does not recurse.
    """
    key, waiting = node.key, [node]
    while waiting:
        operand = bare(waiting.pop())
        if operand.key == key:
            waiting += (operand.expression, operand.this)
        else:
            yield operand


def _conjunction(nodes: list[Node], naming: _Naming) -> Condition:
    conditions: list[Condition] = []
    not_null: list[str] = []
    for node in nodes:
        field = _not_null(node, naming)
        if field is None:
            conditions.append(_converted(node, naming))
        else:
            not_null.append(field)
    return _without_implied(conditions, not_null)


def _without_implied(conditions: list[Condition], not_null: list[str]) -> Condition:
    """Join conditions with AND, without each IS NOT NULL that a comparison of its field implies.

    Spark adds such an IS NOT NULL to comparisons. The same rows are selected without it, because a
    comparison of a null with a literal selects no row.

    :param not_null: the fields of the predicates that are ``field IS NOT NULL``
    """
    tested = (f for f in not_null if not any(_selects_no_null(c, f) for c in conditions))
    return conjunction([*conditions, *(Description(f"{field} IS NOT NULL") for field in tested)])


def _selects_no_null(condition: Condition, field: str) -> bool:
    if isinstance(condition, Binary):
        quantifier = any if condition.operator is Operator.AND else all
        return quantifier(_selects_no_null(term, field) for term in terms(condition))
    return isinstance(condition, Compare) and condition.field == field


def _compare(node: Node, naming: _Naming) -> Condition | None:
    comparison = _COMPARISONS[node.key]
    left, right = node.this, node.expression
    if (value := literal(right)) is None:
        left, right, comparison = right, left, comparison.flipped
        value = literal(right)
    field = _field(left, naming)
    return None if field is None or value is None else Compare(field, comparison, value)


def _between(node: Node, naming: _Naming) -> Condition | None:
    field = _field(node.this, naming)
    low, high = literal(node.args["low"]), literal(node.args["high"])
    if field is None or low is None or high is None or node.args.get("symmetric"):
        return None
    return conjunction(
        [
            Compare(field, Comparison.GREATER_EQUAL_THAN, low),
            Compare(field, Comparison.LESS_EQUAL_THAN, high),
        ]
    )


def _in(node: Node, naming: _Naming) -> Condition | None:
    field = _field(node.this, naming)
    values = [literal(n) for n in node.expressions]
    if field is None or not values:
        return None
    compares = [Compare(field, Comparison.EQUAL, v) for v in values if v is not None]
    return disjunction(compares) if len(compares) == len(values) else None


def _not_null(node: Node, naming: _Naming) -> str | None:
    """Give the field of ``x IS NOT NULL`` or ``isnotnull(x)``; None for any other node.

    :param naming: as for :func:`comparisons`
    """
    if node.key == "not":
        test = bare(node.this)
        if test.key == "is" and test.expression.key == "null":
            return _field(test.this, naming)
    if node.key == "anonymous" and node.name.lower() == "isnotnull" and len(node.expressions) == 1:
        return _field(node.expressions[0], naming)
    return None


def _field(node: Node, naming: _Naming) -> str | None:
    node = bare(node)
    if node.key not in ("column", "dot"):
        return None
    parts = node.parts
    if any(part.key != "identifier" for part in parts):
        return None
    return naming(tuple(part.name for part in parts))


def _after_table(parts: tuple[str, ...], columns: Collection[str]) -> str:
    first = next((i for i, part in enumerate(parts) if part in columns), len(parts) - 1)
    return ".".join(parts[first:])


def _without_qualifier(parts: tuple[str, ...], table: list[str]) -> str:
    folded = [part.casefold() for part in parts]
    for length in range(min(len(table), len(parts) - 1), 0, -1):
        if folded[:length] == table[-length:]:
            return ".".join(parts[length:])
    return ".".join(parts)


def _only_table(tree: Node) -> Node | None:
    """Give the table of a statement that reads one table; None for any other statement."""
    clause = tree.args.get("from_") or tree.args.get("from")
    table = clause.this if tree.key == "select" and clause else tree.this
    if sum(node.key == "table" for node in tree.walk()) != 1 or table is None:
        return None
    if table.key != "table" or table.this.key != "identifier":
        return None
    others = ("joins", "laterals", "with_", "with", "pivots")
    return None if any(n.args.get(arg) for n in (tree, table) for arg in others) else table


# --- the columns that a statement makes of no other column, and the columns that it changes -------
#
# Columns made of no other column are literals and ``count(*)``. Only statements are read in which
# they are certain: one SELECT without a star, alone or as the source of an INSERT or a CREATE
# TABLE.


_STATEMENT_WITH_COLUMNS = re.compile(r"\s*(SELECT|INSERT|CREATE|REPLACE)\b", re.IGNORECASE)
_CHANGE = re.compile(r"\s*(MERGE|UPDATE)\b", re.IGNORECASE)
_BY_NAME = re.compile(r"\bBY\s+NAME\b", re.IGNORECASE)
_COMMENT = re.compile(r"--|/\*")
_TEXTS_AND_NAMES = re.compile(
    r"""(?P<name>`[^`]*`)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL
)
_LITERALS = frozenset({"literal", "null", "boolean"})


def without_columns(statement: str, columns: Sequence[str]) -> dict[str, str]:
    """Name the output columns that are a literal or a ``count(*)``.

    :param statement: the SQL that writes the output
    :param columns: the output's columns in their order, because an INSERT does not name them
    :return: "a literal" or "a count of rows" by column; {} if the columns are not certain
    """
    items = _projections(statement)
    if statement.lstrip()[:6].upper() == "INSERT":
        static = dict(static_partition(statement))
        names = [column for column in columns if column not in static]
        if len(names) != len(items):
            return {}
    else:
        names = [name for name, _ in items]
    return {name: kind for name, (_, kind) in zip(names, items, strict=True) if kind}


def _projections(statement: str) -> tuple[tuple[str, str], ...]:
    """Give name and kind of each column that a statement selects; () if they are not certain.

    :return: pairs of name and kind: "a literal", "a count of rows", or empty for any other column
    """
    # The literal texts of an INSERT name no columns. Without these texts the INSERTs of a loop are
    # one statement, which is parsed once. In a comment a quote may be an apostrophe, so a statement
    # with a comment keeps its texts.
    if statement.lstrip()[:6].upper() == "INSERT" and not _COMMENT.search(statement):
        statement = _TEXTS_AND_NAMES.sub(lambda m: m["name"] or "''", statement)
    return _projections_of(statement)


@lru_cache(maxsize=1024)  # called for each column of an output; a loop's statements are one
def _projections_of(statement: str) -> tuple[tuple[str, str], ...]:
    tree = parsed(statement) if _STATEMENT_WITH_COLUMNS.match(statement) else None
    if tree is None:
        return ()
    try:
        if tree.key == "insert" and (tree.this.key == "schema" or _BY_NAME.search(statement)):
            return ()  # INSERT INTO t (b, a) or BY NAME does not assign columns by position
        select = tree if tree.key == "select" else tree.expression if tree.key == "insert" else None
        if tree.key == "create":
            select = tree.args.get("expression")
        if select is None or select.key != "select" or select.is_star:
            return ()
        return tuple((item.alias_or_name, _kind(item)) for item in select.expressions)
    except Exception:  # the tree of an arbitrary text may have any shape
        return ()


def _kind(node: Node) -> str:
    value = node.this if node.key == "alias" else node
    while value.key in ("paren", "cast", "neg"):
        value = value.this
    if value.key in _LITERALS:
        return "a literal"
    if value.key == "count" and value.this is not None and value.this.key in ("star", "literal"):
        return "a count of rows"
    return ""


@lru_cache(maxsize=1024)
def changed(statement: str) -> frozenset[str]:
    """Name the columns that a MERGE or UPDATE sets, in lower case; none for another statement."""
    if not _CHANGE.match(statement):
        return frozenset()
    tree = parsed(statement)
    if tree is None:
        return frozenset()
    try:
        updates = [tree] if tree.key == "update" else [n for n in tree.walk() if n.key == "update"]
        return frozenset(
            item.this.name.lower()
            for update in updates
            for item in update.expressions
            if item.key == "eq"
        )
    except Exception:  # the tree of an arbitrary text may have any shape
        return frozenset()
