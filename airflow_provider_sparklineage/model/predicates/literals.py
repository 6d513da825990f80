"""Literals of SQL to the texts of values, where no cast changes them."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

# sqlglot's expressions: their class is Expression up to 27 and Expr since; nothing else is used of
# them than key, this, expression, args, parts and sql().
Node: TypeAlias = Any

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
    """Give the text of a literal; None of what is none, and where a cast may change its value.

    Two texts side by side are none: they are one with a quote in it or the two joined, as
    ``spark.sql.legacy.consecutiveStringLiterals.enabled`` says.
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
    """Take off parentheses."""
    while node.key == "paren":
        node = node.this
    return node
