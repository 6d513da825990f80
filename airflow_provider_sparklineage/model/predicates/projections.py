"""Which columns a statement makes of no column (literals, ``count(*)``), and which it changes.

Of the first only what is sure: one SELECT without a star, alone or as the source of an INSERT or a
CREATE TABLE.
Nodes are distinguished by sqlglot's key of their class, as in :mod:`.predicates`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_sparklineage.model import predicates

if TYPE_CHECKING:
    from collections.abc import Sequence

_Node: TypeAlias = Any

_STATEMENT = re.compile(r"\s*(SELECT|INSERT|CREATE|REPLACE)\b", re.IGNORECASE)
_CHANGE = re.compile(r"\s*(MERGE|UPDATE)\b", re.IGNORECASE)
_BY_NAME = re.compile(r"\bBY\s+NAME\b", re.IGNORECASE)
_COMMENT = re.compile(r"--|/\*")
_TEXTS_AND_NAMES = re.compile(
    r"""(?P<name>`[^`]*`)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL
)
_LITERALS = frozenset({"literal", "null", "boolean"})


def without_columns(statement: str, columns: Sequence[str]) -> dict[str, str]:
    """Name the output columns that are a literal or a ``count(*)``, with what they are.

    :param columns: the output's columns in their order; an INSERT has no names of its own
    """
    items = _projections(statement)
    if statement.lstrip()[:6].upper() == "INSERT":
        static = dict(predicates.static_partition(statement))
        names = [column for column in columns if column not in static]
        if len(names) != len(items):
            return {}
    else:
        names = [name for name, _ in items]
    return {name: what for name, (_, what) in zip(names, items, strict=True) if what}


def _projections(statement: str) -> tuple[tuple[str, str], ...]:
    """Give name and kind of what a statement selects; empty where that is not sure."""
    # The texts of an INSERT name no columns. In comments quotes may be apostrophes.
    if statement.lstrip()[:6].upper() == "INSERT" and not _COMMENT.search(statement):
        statement = _TEXTS_AND_NAMES.sub(lambda m: m["name"] or "''", statement)
    return _projections_of(statement)


@lru_cache(maxsize=1024)  # asked for each column of an output; a loop's statements are one
def _projections_of(statement: str) -> tuple[tuple[str, str], ...]:
    tree = predicates.parsed(statement) if _STATEMENT.match(statement) else None
    if tree is None:
        return ()
    try:
        if tree.key == "insert" and (tree.this.key == "schema" or _BY_NAME.search(statement)):
            return ()  # INSERT INTO t (b, a) or BY NAME: not by position
        select = tree if tree.key == "select" else tree.expression if tree.key == "insert" else None
        if tree.key == "create":
            select = tree.args.get("expression")
        if select is None or select.key != "select" or select.is_star:
            return ()
        return tuple((item.alias_or_name, _kind(item)) for item in select.expressions)
    except Exception:  # trees of any text of anybody have any shape
        return ()


def _kind(node: _Node) -> str:
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
    """Name the columns that a MERGE or an UPDATE sets, in lower case."""
    if not _CHANGE.match(statement):
        return frozenset()
    tree = predicates.parsed(statement)
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
    except Exception:  # trees of any text of anybody have any shape
        return frozenset()
