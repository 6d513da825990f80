"""Expressions as short texts, for people: close to SQL, without the texts that stand in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.plans.values import NULL

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.columns.plans.trees import Node

MAX_LABEL = 200
"""Characters of one; what is longer has … in place of its operands."""

_SIGNS = {
    **{"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"},
    **{"EqualTo": "=", "EqualNullSafe": "<=>", "And": "AND", "Or": "OR", "Like": "LIKE"},
    **{"GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<="},
}
_TRANSPARENT = ("AggregateExpression", "WindowExpression", "With")
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "InSubquery", "LateralSubquery")
_TEXT = "'…'"
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "boolean"})
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def label(name: str, node: Node, operands: list[str]) -> str:
    """Write an expression with its operands as they were written.

    :param name: its class, without the package
    """
    text = _written(name, node, operands)
    if len(text) > MAX_LABEL:
        text = _written(name, node, ["…"] * min(len(operands), 2))
    return text if len(text) <= MAX_LABEL else "…"


def _written(name: str, node: Node, operands: list[str]) -> str:
    own = node.get("name")
    if name == "Literal":
        return _literal(node)
    if name in _SUBQUERIES:
        return "(SELECT …)"
    if name in _TRANSPARENT and operands:
        return operands[0]
    if name in _SIGNS and len(operands) == len("ab"):
        return f"({operands[0]} {_SIGNS[name]} {operands[1]})"
    if name == "Cast":
        return _cast(node, operands[0])
    if name == "GetStructField":
        return f"{operands[0]}.{own or node.get('ordinal')}"
    if isinstance(own, str) and (not operands or name.startswith("Python")):
        return f"{own}({', '.join(operands)})" if name.startswith("Python") else own
    return f"{_WORD.sub('_', name).lower()}({', '.join(operands)})"


def _cast(node: Node, operand: str) -> str:
    is_literal = operand == _TEXT or not operand.strip("0123456789.")
    kind_of = node.get("dataType")
    return (
        operand
        if is_literal
        else f"CAST({operand} AS {kind_of if isinstance(kind_of, str) else '…'})"
    )


def _literal(node: Node) -> str:
    """Write a number; what a text says is nobody's business here."""
    value = node.get("value")
    if value is None:
        return NULL
    kind_of = str(node.get("dataType"))
    is_number = kind_of in _NUMBERS or kind_of.startswith("decimal")
    return str(value) if is_number else _TEXT
