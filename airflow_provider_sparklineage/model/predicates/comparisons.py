"""Predicates in the form that Spark most often writes: comparisons of columns, joined by AND.

``((dt = '2024-05-06') AND (amount > 0.0D))``, ``isnotnull(region)``: what is pushed down to scans.
sqlglot reads them too, and takes longer to be imported than all else that a task does after a small
job. So what is sure is read here: exactly as sqlglot reads it, and nothing else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from airflow_provider_sparklineage.model.subset import Comparison


class Term(NamedTuple):
    """A column compared with a literal, or ``IS NOT NULL`` where there is no comparison.

    :param parts: of the column's name, which may have a qualifier
    """

    parts: tuple[str, ...]
    comparison: Comparison | None = None
    value: str = ""


# Deeper, or longer, sqlglot may meet the end of the stack.
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

_BY_SYMBOL = {comparison.symbol: comparison for comparison in Comparison}

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
"""Which are names of columns only in some places, if at all."""


def comparisons(text: str) -> tuple[Term, ...] | None:
    """Read a predicate of this form; None of any other."""
    if len(text) > _LONGEST:
        return None
    found: list[Term] = []
    at = depth = 0
    while True:
        while text.startswith("(", at):
            at, depth = at + 1, depth + 1
        term = _term_at(text, at)
        if term is None or depth > _DEEPEST:
            return None
        found.append(term[0])
        at = term[1]
        while depth and text.startswith(")", at):
            at, depth = at + 1, depth - 1
        if at == len(text):
            return None if depth else tuple(found)
        if not text.startswith(_AND, at):
            return None
        at += len(_AND)


def _term_at(text: str, at: int) -> tuple[Term, int] | None:
    """Give the term that begins there, and where it ends."""
    if test := _NOT_NULL.match(text, at):
        parts = _parts(test[1] or test[2])
        return None if parts is None else (Term(parts), test.end())
    found = _COMPARISON.match(text, at)
    parts = _parts(found[1]) if found else None
    if found is None or parts is None:
        return None
    value = next(value for value in found.groupdict().values() if value is not None)
    return Term(parts, _BY_SYMBOL[found[2]], value), found.end()


def _parts(column: str) -> tuple[str, ...] | None:
    parts = _NAME.findall(column)
    if any(map(_WORDS.fullmatch, parts)):
        return None
    return tuple(part.strip("`") for part in parts)
