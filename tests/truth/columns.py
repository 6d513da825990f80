"""What each column of a result is made of, by sqlglot, which knows the query and nothing else.

It follows what values are made of: arguments, what a window orders by, what a CASE asks for. That
is what OpenLineage calls DIRECT, and of INDIRECT the subtypes WINDOW and CONDITIONAL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.lineage import lineage
from sqlglot.optimizer.qualify import qualify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Sources = frozenset[tuple[str, str]]
"""Columns, each as (table, column)."""


def sources(sql: str, schema: Mapping[str, Sequence[str]]) -> dict[str, Sources]:
    """Give what each column of a query is made of.

    :param schema: names of the columns of each table
    """
    typed = {table: dict.fromkeys(columns, "string") for table, columns in schema.items()}
    tree = qualify(parse_one(sql, dialect="spark"), schema=typed, dialect="spark")
    return {name: _sources(name, tree, typed) for name in tree.named_selects}


def _sources(column: str, tree: exp.Expression, schema: Mapping[str, dict[str, str]]) -> Sources:
    node = lineage(column, tree.copy(), schema=schema, dialect="spark", trim_selects=False)
    return frozenset(
        (leaf.source.name, leaf.name.rpartition(".")[2].strip('`"'))
        for leaf in node.walk()
        if isinstance(leaf.source, exp.Table)
    )
