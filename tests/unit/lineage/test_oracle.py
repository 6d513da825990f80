"""Column lineage of SQL by another reader of SQL: sqlglot's, of the very statements that Spark ran.

Compared are the direct sources of every output column, as sets of columns. What differs is in
``EXPLAINED``, with the reason, and must differ in exactly that way on every Spark.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
from sqlglot import exp, parse_one
from sqlglot.lineage import lineage
from sqlglot.optimizer import build_scope
from sqlglot.optimizer.qualify import qualify

from airflow_provider_sparklineage.lineage.columns.edges import DIRECT
from tests.applications.sql_queries import QUERIES, VIEWS
from tests.conftest import OBSERVED, SPARKS
from tests.lineage_text import short

CHOICE = "what chooses a value (CASE, IF, FILTER) is no part of it; the listener has CONDITIONAL"
WINDOW = "what a window is partitioned and ordered by is no part of the value; it is WINDOW"
COMPARED = "rows of the right side are compared with and never come out"
EXPANDED = "Spark expands the rows first, beyond which the listener does not look; a reported gap"
SUBQUERY = "the listener does not look into scalar subqueries; reported as subquery_unseen"
EQUAL = "both columns of USING are equal; Spark takes the left one"


class Difference(NamedTuple):
    """Sources of a column that only sqlglot names; there are none that only Spark names."""

    why: str
    only_sqlglot: frozenset[str] = frozenset()


def by_sqlglot_only(why, *columns):
    return Difference(why, only_sqlglot=frozenset(columns))


EXPLAINED = {
    "using_join.customer_id": by_sqlglot_only(EQUAL, "customers.customer_id"),
    "scalar_subquery.converted": by_sqlglot_only(SUBQUERY, "rates.rate"),
    "intersect_rows.customer_id": by_sqlglot_only(COMPARED, "orders.customer_id"),
    "except_rows.customer_id": by_sqlglot_only(COMPARED, "orders.customer_id"),
    "window_sum.running": by_sqlglot_only(WINDOW, "orders.customer_id", "orders.dt"),
    "window_rank.place": by_sqlglot_only(WINDOW, "orders.amount", "orders.region"),
    "window_lag.change": by_sqlglot_only(WINDOW, "orders.customer_id", "orders.dt"),
    "case_when.eu_amount": by_sqlglot_only(CHOICE, "orders.region"),
    "case_of_two.contact": by_sqlglot_only(CHOICE, "customers.segment"),
    "if_function.told": by_sqlglot_only(CHOICE, "orders.amount"),
    "filtered_aggregate.eu_total": by_sqlglot_only(CHOICE, "orders.region"),
    "unpivoted.kind": by_sqlglot_only(EXPANDED, "customers.email", "customers.name"),
    "unpivoted.told": by_sqlglot_only(EXPANDED, "customers.email", "customers.name"),
    **{
        f"{query}.{column}": by_sqlglot_only(EXPANDED, f"orders.{column}")
        for query in ("rolled_up", "cubed", "grouping_sets")
        for column in ("region", "dt")
    },
}


@cache
def views():
    """Give sqlglot the columns of the views."""
    tables = {view: parse_one(f"CREATE TABLE t ({of})", read="spark") for view, of in VIEWS.items()}
    return {
        view: {column.name: column.kind.sql("spark") for column in table.this.expressions}
        for view, table in tables.items()
    }


@cache
def by_sqlglot(query):
    """Give the columns of tables that each output column is made of."""
    tree = qualify(
        parse_one(QUERIES[query], read="spark"),
        schema=views(),
        dialect="spark",
        validate_qualify_columns=False,
        identify=False,
    )
    scope = build_scope(tree)
    found = {}
    for column in scope.expression.named_selects:
        node = lineage(column, tree, scope=scope, schema=views(), dialect="spark")
        found[column] = {
            f"{leaf.source.name}.{leaf.name.rpartition('.')[2]}"
            for leaf in node.walk()
            if isinstance(leaf.source, exp.Table) and not leaf.downstream
        }
    return found


NAMED = "it has the names of columns, which are literals, and none of their values"
BY_PLAN = {
    column: difference
    for column, difference in EXPLAINED.items()
    if difference.why not in (SUBQUERY, EXPANDED)
} | {"unpivoted.kind": by_sqlglot_only(NAMED, "customers.email", "customers.name")}
"""What is left where Spark's plan was observed."""


def by_spark(outputs, query):
    """Give the direct sources of each output column, as the task's lineage has them."""
    output = next(d for d in outputs if short(d.name) == f"queries/{query}")
    return {
        column: {
            f"{short(source.dataset)}.{source.field}"
            for source, found in edges.items()
            if any(t.type == DIRECT for t in found)
        }
        for column, edges in output.columns.fields.items()
    }


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("spark", SPARKS)
def test_sqlglot_agrees_on_what_columns_are_made_of(recorded, spark, query):
    check(by_spark(recorded("sql_queries", spark).lineage.outputs, query), query, EXPLAINED)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("spark", [spark for spark, case in OBSERVED if case == "sql_queries"])
def test_sqlglot_agrees_with_the_plans(recorded, spark, query):
    check(by_spark(recorded("sql_queries", spark).observed.outputs, query), query, BY_PLAN)


def check(ours, query, explanations):
    """Compare the sources of each column of a query with those that sqlglot finds."""
    theirs = by_sqlglot(query)
    assert ours.keys() <= theirs.keys()
    for column, sources in theirs.items():
        explained = explanations.get(f"{query}.{column}", Difference(""))
        mine = ours.get(column, set())
        assert sources - mine == explained.only_sqlglot, column
        assert mine - sources == set(), column


def test_most_queries_need_no_explanation():
    differing = {column.partition(".")[0] for column in EXPLAINED}
    assert differing <= QUERIES.keys()
    assert len(QUERIES.keys() - differing) >= 40
