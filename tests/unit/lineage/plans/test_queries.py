# ruff: noqa: E501 - one line for each column
"""What columns are made of by the plans of real queries and commands, each checked by hand."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.lineage.columns.plans.expressions import joined_text
from tests.unit.lineage.plans.plans import columns_of, described, recorded
from tests.unit.lineage.plans.queries import QUERIES

OF_QUERIES = {
    "exists in SELECT": """
name <- customers.name IDENTITY
buys <- customers.customer_id JOIN, orders.customer_id JOIN, orders.dt FILTER
""",
    "IN in SELECT": """
name <- customers.name IDENTITY
buys <- customers.customer_id JOIN, orders.amount FILTER, orders.customer_id JOIN
""",
    "EXISTS or a filter": """
name <- customers.name IDENTITY
* <- customers.customer_id JOIN, customers.segment FILTER, orders.customer_id JOIN
""",
    "two columns IN": """
name <- customers.name IDENTITY
* <- customers.customer_id JOIN, customers.segment JOIN, orders.customer_id JOIN, orders.region JOIN
""",
    "subquery in a subquery": """
name <- customers.name IDENTITY
* <- customers.customer_id JOIN, orders.amount FILTER, orders.customer_id JOIN, rates.rate FILTER
""",
    "scalar subqueries": """
order_id <- orders.order_id IDENTITY
n <- customers.customer_id JOIN, customers.name AGGREGATION, orders.customer_id JOIN
latest <- rates.currency FILTER, rates.month AGGREGATION
""",
    "common table in a subquery": """
order_id <- orders.order_id IDENTITY
* <- orders.dt FILTER, rates.month FILTER, rates.rate FILTER
""",
    "recursion": """
n <- customers.customer_id IDENTITY+TRANSFORMATION
s <- customers.name IDENTITY
* <- customers.customer_id FILTER
""",
    "lateral": """
name <- customers.name IDENTITY
total <- orders.amount AGGREGATION
* <- customers.customer_id JOIN, orders.customer_id JOIN
""",
    "lateral alias": """
d <- orders.amount TRANSFORMATION
e <- orders.amount TRANSFORMATION
""",
    "EXCEPT ALL": """
customer_id <- customers.customer_id IDENTITY
* <- customers.customer_id JOIN, orders.customer_id JOIN
""",
    "INTERSECT ALL": """
name <- customers.name IDENTITY
segment <- customers.segment IDENTITY
* <- customers.name JOIN, customers.segment JOIN, orders.dt JOIN, orders.region JOIN
""",
    "union of types": """
a <- customers.customer_id TRANSFORMATION, orders.amount IDENTITY
* <- customers.customer_id GROUP_BY, orders.amount GROUP_BY
""",
    "union with a literal": """
a <- customers.name IDENTITY
""",
    "FILTER clauses": """
s <- orders.amount AGGREGATION, orders.dt CONDITIONAL
c <- orders.region CONDITIONAL
""",
    "grouping ids": """
region <- orders.region IDENTITY
s <- orders.amount AGGREGATION
g is made of grouping_id
r is made of grouping_id
n is made of count
* <- orders.dt GROUP_BY, orders.region GROUP_BY
""",
    "counts": """
c <- orders.order_id AGGREGATION/masked
n is made of count
m is made of count
""",
    "no columns": """
r is made of function
d is made of function
u is made of function
one is made of literal
ab is made of literal
five is made of literal
""",
    "values": """
x is made of local
y is made of local
""",
    "range": """
id is made of range
d is made of range
""",
    "windows": """
nt <- orders.amount WINDOW
f <- orders.customer_id WINDOW, orders.dt AGGREGATION+WINDOW
n <- orders.region WINDOW
""",
    "window over an aggregate": """
s <- orders.amount AGGREGATION, orders.region WINDOW
* <- orders.region GROUP_BY
""",
    "generators": """
customer_id <- profiles.customer_id IDENTITY
pos <- profiles.tags TRANSFORMATION
tag <- profiles.tags TRANSFORMATION
k <- profiles.attributes TRANSFORMATION
v <- profiles.attributes TRANSFORMATION
* <- profiles.attributes FILTER
""",
    "stack": """
customer_id <- customers.customer_id IDENTITY
a <- customers.email TRANSFORMATION, customers.name TRANSFORMATION
""",
    "masks": """
a <- customers.email TRANSFORMATION/masked
b <- customers.email TRANSFORMATION/masked
c <- customers.email TRANSFORMATION/masked
d <- customers.email TRANSFORMATION/masked
e <- customers.email TRANSFORMATION/masked
f <- customers.email AGGREGATION/masked
g <- customers.email TRANSFORMATION/masked, customers.name TRANSFORMATION/masked
""",
    "nulls": """
a <- orders.dt TRANSFORMATION+CONDITIONAL, orders.region TRANSFORMATION+CONDITIONAL
b <- orders.amount TRANSFORMATION, orders.dt TRANSFORMATION, orders.region CONDITIONAL
c <- orders.dt CONDITIONAL, orders.region TRANSFORMATION+CONDITIONAL
d <- orders.dt TRANSFORMATION+CONDITIONAL, orders.region TRANSFORMATION+CONDITIONAL
e <- orders.dt TRANSFORMATION, orders.region CONDITIONAL
""",
    "nested choices": """
a <- orders.amount CONDITIONAL, orders.dt TRANSFORMATION, orders.region TRANSFORMATION+CONDITIONAL
b <- orders.amount AGGREGATION, orders.dt WINDOW, orders.region CONDITIONAL
""",
    "pivot": """
dt <- orders.dt IDENTITY
eu_s <- orders.amount AGGREGATION, orders.region CONDITIONAL
eu_m <- orders.order_id AGGREGATION, orders.region CONDITIONAL
* <- orders.dt GROUP_BY, orders.region GROUP_BY
""",
    "unpivot": """
customer_id <- customers.customer_id IDENTITY
segment <- customers.segment IDENTITY
v <- customers.email IDENTITY, customers.name IDENTITY
nm is made of unpivot
* <- customers.email FILTER, customers.name FILTER
""",
    "natural full join": """
customer_id <- customers.customer_id TRANSFORMATION+CONDITIONAL, orders.customer_id TRANSFORMATION+CONDITIONAL
name <- customers.name IDENTITY
* <- customers.customer_id JOIN, orders.customer_id JOIN
""",
    "HAVING a subquery": """
region <- orders.region IDENTITY
s <- orders.amount AGGREGATION
* <- orders.amount FILTER, orders.region GROUP_BY, rates.rate FILTER
""",
    "sorts and limits": """
order_id <- orders.order_id IDENTITY
* <- orders.order_id SORT, orders.region SORT
""",
    "lambdas": """
a <- profiles.tags TRANSFORMATION
""",
    "a script": """
a <- orders.order_id TRANSFORMATION, orders.region TRANSFORMATION
a is a guess of TRANSFORM
""",
    "casts": """
same <- orders.order_id IDENTITY
other <- orders.order_id TRANSFORMATION
""",
    "Python": """
s <- orders.amount TRANSFORMATION
t <- orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
""",
    "Python of nothing": """
s is made of python
""",
    "Python aggregate": """
region <- orders.region IDENTITY
m <- orders.amount AGGREGATION
* <- orders.region GROUP_BY
""",
    "Python table": """
n <- orders.amount TRANSFORMATION
m <- orders.amount TRANSFORMATION
""",
    "mapInPandas": """
order_id <- orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
amount <- orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
order_id is a guess of mapInPandas
amount is a guess of mapInPandas
""",
    "applyInPandas": """
order_id <- orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
amount <- orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
order_id is a guess of applyInPandas
amount is a guess of applyInPandas
* <- orders.order_id GROUP_BY
""",
    "cogroup": """
a <- customers.customer_id TRANSFORMATION, orders.amount TRANSFORMATION, orders.order_id TRANSFORMATION
a is a guess of applyInPandas
""",
    "drop_duplicates": """
region <- orders.region IDENTITY
dt <- orders.dt AGGREGATION
amount <- orders.amount AGGREGATION
* <- orders.region GROUP_BY
""",
    "exceptAll": """
customer_id <- customers.customer_id IDENTITY
* <- customers.customer_id JOIN, orders.customer_id JOIN
""",
    "missing columns": """
customer_id <- customers.customer_id IDENTITY, orders.customer_id IDENTITY
name <- customers.name IDENTITY
region <- orders.region IDENTITY
""",
    "melt": """
customer_id <- customers.customer_id IDENTITY
kind is not all known
value is not all known
""",
    "semi join": """
order_id <- orders.order_id IDENTITY
amount <- orders.amount IDENTITY
* <- orders.order_id JOIN
""",
    "metadata": """
file_path <- orders._metadata TRANSFORMATION
""",
    "checkpoint": """
order_id is made of rdd
amount is made of rdd
""",
    "field": """
a <- profiles.address TRANSFORMATION, profiles.customer_id TRANSFORMATION
""",
    "observed": """
order_id <- orders.order_id IDENTITY
""",
}

OF_COMMANDS = {
    "delta merge": """
id <- events.id IDENTITY
name <- events.id CONDITIONAL, events.name TRANSFORMATION, target.name TRANSFORMATION
dt <- events.dt IDENTITY
* <- events.dt JOIN, events.id FILTER+JOIN, target.dt JOIN, target.id JOIN
""",
    "delta update": """
id <- target.id TRANSFORMATION+CONDITIONAL
name <- target.id CONDITIONAL, target.name TRANSFORMATION
dt is made of what it was
""",
    "delta delete": """
id is made of what it was
name is made of what it was
dt is made of what it was
* <- target.id FILTER
""",
    "iceberg merge": """
id <- events.id IDENTITY
name <- events.id CONDITIONAL, events.name TRANSFORMATION, target.name TRANSFORMATION
dt <- events.dt IDENTITY
* <- events.dt JOIN, events.id FILTER+JOIN, target.dt JOIN, target.id JOIN
""",
    "iceberg merge on read": """
id <- events.id IDENTITY
name <- events.id CONDITIONAL, events.name TRANSFORMATION, target.name TRANSFORMATION
dt <- events.dt IDENTITY
* <- events.dt JOIN, events.id FILTER+JOIN, target.dt JOIN, target.id JOIN
""",
    "iceberg update": """
name <- target.id CONDITIONAL, target.name TRANSFORMATION
id is made of what it was
dt is made of what it was
""",
    "iceberg update on read": """
name <- target.name TRANSFORMATION
id is made of what it was
dt is made of what it was
* <- target.id FILTER
""",
    "iceberg delete": """
id is made of what it was
name is made of what it was
dt is made of what it was
* <- target.id FILTER
""",
    "iceberg delete by subquery": """
id is made of what it was
name is made of what it was
dt is made of what it was
* <- target.id JOIN, users.user_id JOIN
""",
    "delta replaced table": """
id <- events.id IDENTITY
name <- users.uname IDENTITY
dt <- events.dt IDENTITY
* <- events.id FILTER, events.user_id JOIN, users.user_id JOIN
""",
    "delta save to a path": """
id <- events.id IDENTITY
name <- users.uname IDENTITY
dt <- events.dt IDENTITY
* <- events.id FILTER, events.user_id JOIN, users.user_id JOIN
""",
    "iceberg append": """
id <- events.id IDENTITY
name <- events.name IDENTITY
dt <- events.dt IDENTITY
* <- events.id FILTER
""",
    "hive insert": """
id <- events.id IDENTITY
name <- events.name IDENTITY
* <- events.id FILTER
""",
    "delta dynamic overwrite": """
id <- events.id IDENTITY
name <- users.uname IDENTITY
dt <- events.dt IDENTITY
* <- events.dt FILTER, events.id FILTER, events.user_id JOIN, users.user_id JOIN
""",
}


@pytest.mark.parametrize("name", OF_QUERIES)
def test_columns_of_a_query(name):
    assert described(columns_of("queries.ndjson", name)) == OF_QUERIES[name].strip()


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_columns_of_a_command(name):
    columns = ("id", "name", "dt") if "iceberg" in name else ()
    assert described(columns_of("commands.ndjson", name, *columns)) == OF_COMMANDS[name].strip()


def test_everything_that_is_recorded_is_expected():
    assert recorded("queries.ndjson").keys() == OF_QUERIES.keys()
    assert QUERIES.keys() <= OF_QUERIES.keys()
    assert recorded("commands.ndjson").keys() == OF_COMMANDS.keys()


@pytest.mark.parametrize(
    ("name", "column", "text"),
    [
        ("Python", "t", "(<lambda>(<lambda>(amount)) + CAST(order_id AS double))"),
        ("lateral alias", "e", "((amount * 2) + 1)"),
        ("window over an aggregate", "s", "sum(sum(amount))"),
        ("scalar subqueries", "latest", "(SELECT …)"),
        ("nulls", "d", "coalesce(region, dt, '…')"),
        (
            "nested choices",
            "a",
            "CASE WHEN (amount > 1) THEN CASE WHEN (region = '…') THEN dt END ELSE upper(region) END",
        ),
    ],
)
def test_the_expression_describes_what_it_makes(name, column, text):
    edges = columns_of("queries.ndjson", name).lineage.fields[column]
    described = {t.description for ts in edges.values() for t in ts if t.type == "DIRECT"}
    assert described == {text}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HAVING a subquery", "(sum(amount) > (SELECT …))"),
        ("lateral", "(customer_id = customer_id)"),
        ("generators", "explode(attributes)"),
    ],
)
def test_the_condition_describes_what_chooses_rows(name, text):
    rows = columns_of("queries.ndjson", name).lineage.dataset
    assert {t.description for ts in rows.values() for t in ts if t.description} == {text}


def test_two_conditions_on_a_column_are_joined():
    assert joined_text("(a > 1)", "(a < 5)") == "(a > 1) AND (a < 5)"
    assert joined_text("(a > 1)", "(a > 1)") == joined_text("(a > 1)", "x" * 200) == "(a > 1)"


def test_texts_in_expressions_are_not_written():
    for name in recorded("queries.ndjson"):
        for edges in columns_of("queries.ndjson", name).lineage.fields.values():
            assert not any("EUR" in t.description for ts in edges.values() for t in ts)
