"""SQL predicates: what the specification can express is structure, the rest is words."""

# ruff: noqa: E501 - recorded texts stay on one line
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import NULL
from airflow_provider_sparklineage.model.predicates import (
    condition,
    static_partition,
    where,
)
from airflow_provider_sparklineage.model.subset import (
    EVERYTHING,
    NOTHING,
    Binary,
    Compare,
    Comparison,
    Description,
    Operator,
    conjunction,
    disjunction,
    to_text,
)

EQUAL, GREATER, AT_LEAST, LESS, AT_MOST = Comparison
GOLDEN = Path(__file__).parents[2] / "golden" / "spark-4.0"


def equal(field, value):
    return Compare(field, EQUAL, value)


def words(text):
    return Description(text)


def all_of(*conditions):
    return conjunction(conditions)


def any_of(*conditions):
    return disjunction(conditions)


DAY = equal("dt", "2024-05-06")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("dt = '2024-05-06'", DAY, id="equal"),
        pytest.param("dt == '2024-05-06'", DAY, id="equal, as programmers write"),
        pytest.param("x < 1", Compare("x", LESS, "1"), id="less"),
        pytest.param("x <= 1", Compare("x", AT_MOST, "1"), id="at most"),
        pytest.param("x > 1", Compare("x", GREATER, "1"), id="greater"),
        pytest.param("x >= 1", Compare("x", AT_LEAST, "1"), id="at least"),
        pytest.param("1 < x", Compare("x", GREATER, "1"), id="literal less"),
        pytest.param("1 <= x", Compare("x", AT_LEAST, "1"), id="literal at most"),
        pytest.param("1 > x", Compare("x", LESS, "1"), id="literal greater"),
        pytest.param("1 >= x", Compare("x", AT_MOST, "1"), id="literal at least"),
        pytest.param("'a' = x", equal("x", "a"), id="literal equal"),
        pytest.param(
            "x BETWEEN 1 AND 2",
            all_of(Compare("x", AT_LEAST, "1"), Compare("x", AT_MOST, "2")),
            id="between",
        ),
        pytest.param("x IN ('a')", equal("x", "a"), id="in one"),
        pytest.param("x IN ('a', 'b')", any_of(equal("x", "a"), equal("x", "b")), id="in two"),
        pytest.param(
            "((x > 1) AND (y <= 2))",
            all_of(Compare("x", GREATER, "1"), Compare("y", AT_MOST, "2")),
            id="and",
        ),
        pytest.param("x = 1 OR y = 2", any_of(equal("x", "1"), equal("y", "2")), id="or"),
        pytest.param(
            "x = 1 OR y = 2 AND z = 3",
            any_of(equal("x", "1"), all_of(equal("y", "2"), equal("z", "3"))),
            id="and binds closer",
        ),
        pytest.param("WHERE (dt = '2024-05-06')", DAY, id="with the word where"),
        pytest.param(
            "a = 'no where to go'", equal("a", "no where to go"), id="that word in a text"
        ),
        pytest.param("`WHERE` = 1", equal("WHERE", "1"), id="that word as a column"),
        pytest.param(
            "dt IS NOT NULL, dt = '2024-05-06', x IN ('a, b', 'c')",
            all_of(DAY, any_of(equal("x", "a, b"), equal("x", "c"))),
            id="a list, as Iceberg reports the filters of a scan",
        ),
        pytest.param("TRUE", EVERYTHING, id="true"),
        pytest.param("false", NOTHING, id="false"),
        pytest.param("false AND upper(x) = 'A'", NOTHING, id="false and anything"),
    ],
)
def test_what_the_specification_can_express_is_structure(text, expected):
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        pytest.param("DATE '2024-05-06'", "2024-05-06", id="date"),
        pytest.param("CAST('2024-05-06' AS DATE)", "2024-05-06", id="cast date"),
        pytest.param("TIMESTAMP '1970-01-01 00:00:00'", "1970-01-01 00:00:00", id="timestamp"),
        pytest.param("TIMESTAMP_NTZ '2024-05-06 10:00:00.5'", "2024-05-06 10:00:00.5", id="ntz"),
        pytest.param("1", "1", id="integer"),
        pytest.param("-1", "-1", id="negative"),
        pytest.param("5L", "5", id="long"),
        pytest.param("-5L", "-5", id="negative long"),
        pytest.param("0.0D", "0.0", id="double"),
        pytest.param("CAST(0 AS DOUBLE)", "0", id="cast double"),
        pytest.param("1.50BD", "1.50", id="decimal"),
        pytest.param("CAST(1.50 AS DECIMAL(10,2))", "1.50", id="cast decimal"),
        pytest.param("1e3", "1e3", id="exponent"),
        pytest.param("TRUE", "true", id="boolean"),
        pytest.param("'1'", "1", id="number as text"),
        pytest.param("CAST(1 AS STRING)", "1", id="number cast to text"),
        pytest.param("''", "", id="empty"),
        pytest.param("'Zürich ☃'", "Zürich ☃", id="unicode"),
        pytest.param("'a=b/%2F'", "a=b/%2F", id="separators"),
        pytest.param(r"'it\'s'", "it's", id="escaped quote"),
        pytest.param(r"'a\\b'", r"a\b", id="escaped backslash"),
        pytest.param(r"'a\nb'", "a\nb", id="escaped line break"),
        pytest.param('"it\'s"', "it's", id="double quotes"),
        pytest.param("'dt#12 AND x'", "dt#12 AND x", id="what looks like an expression's id"),
    ],
)
def test_literals_are_text(literal, value):
    assert condition(f"(c = {literal})") == equal("c", value)


@pytest.mark.parametrize(
    "literal",
    [
        pytest.param("NULL", id="null"),
        pytest.param("CAST('2024-05-06 10:00:00' AS DATE)", id="cast that truncates"),
        pytest.param("CAST(1.5 AS INT)", id="cast that rounds"),
        pytest.param("CAST(300 AS TINYINT)", id="cast that overflows"),
        pytest.param("CAST(1.55 AS DECIMAL(2,1))", id="cast that loses a digit"),
        pytest.param("CAST('a' AS DOUBLE)", id="cast of no number"),
        pytest.param("'it''s'", id="quotes side by side"),
        pytest.param("X'1A'", id="bytes"),
        pytest.param("INTERVAL 1 DAY", id="interval"),
        pytest.param("current_date()", id="function"),
        pytest.param("1 + 1", id="arithmetic"),
        pytest.param("other", id="column"),
        pytest.param("(SELECT max(x) FROM t)", id="sub-query"),
        pytest.param("scalarsubquery()", id="elided sub-query"),
        pytest.param(":day", id="parameter"),
    ],
)
def test_what_is_no_plain_literal_makes_words_of_its_comparison_alone(literal):
    described = condition(f"c = {literal}")
    assert isinstance(described, Description)
    assert condition(f"c = {literal} AND dt = '2024-05-06'") == all_of(DAY, described)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("NOT x = 1", "NOT x = 1", id="not"),
        pytest.param("x != 1", "x <> 1", id="unequal"),
        pytest.param("x <=> 1", "x IS NOT DISTINCT FROM 1", id="null-safe equal"),
        pytest.param("x LIKE 'a%'", "x LIKE 'a%'", id="like"),
        pytest.param("x RLIKE 'a.*'", "x RLIKE 'a.*'", id="rlike"),
        pytest.param("x IS NULL", "x IS NULL", id="is null"),
        pytest.param("isnull(x)", "isnull(x)", id="isnull()"),
        pytest.param("x IS NOT NULL", "x IS NOT NULL", id="is not null"),
        pytest.param("isnotnull(x#12)", "x IS NOT NULL", id="isnotnull()"),
        pytest.param("upper(x) = 'A'", "UPPER(x) = 'A'", id="function of a field"),
        pytest.param("CAST(x AS DATE) = '2024-05-06'", "CAST(x AS DATE) = '2024-05-06'", id="cast"),
        pytest.param("x + 1 > 2", "x + 1 > 2", id="arithmetic"),
        pytest.param("x = y", "x = y", id="columns"),
        pytest.param("x NOT IN (1, 2)", "NOT x IN (1, 2)", id="not in"),
        pytest.param("x IN (1, NULL)", "x IN (1, NULL)", id="null in list"),
        pytest.param("x IN (1, y)", "x IN (1, y)", id="column in list"),
        pytest.param("x IN (SELECT y FROM t)", "x IN (SELECT y FROM t)", id="sub-query"),
        pytest.param("x BETWEEN y AND 2", "x BETWEEN y AND 2", id="between columns"),
        pytest.param("m['k'] = 1", "m['k'] = 1", id="key of a map"),
        pytest.param("flag", "flag", id="column alone"),
        pytest.param("dynamicpruningsubquery(dt)", "dynamicpruningsubquery(dt)", id="pruning"),
    ],
)
def test_what_it_cannot_express_is_words_and_what_surrounds_them_stays_structure(text, expected):
    assert condition(text) == words(expected)
    assert condition(f"dt = '2024-05-06' AND {text}") == all_of(DAY, words(expected))
    assert condition(f"({text}) OR dt = '2024-05-06'") == any_of(DAY, words(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("dt IS NOT NULL AND dt = '2024-05-06'", DAY, id="same column"),
        pytest.param("isnotnull(dt#1) AND (dt#1 = DATE '2024-05-06')", DAY, id="as in a plan"),
        pytest.param(
            "x IS NOT NULL AND x IN (1, 2)", any_of(equal("x", "1"), equal("x", "2")), id="in"
        ),
        pytest.param(
            "x IS NOT NULL AND dt = '2024-05-06'",
            all_of(DAY, words("x IS NOT NULL")),
            id="another column",
        ),
        pytest.param(
            "x IS NOT NULL AND (x = 1 OR y = 1)",
            all_of(any_of(equal("x", "1"), equal("y", "1")), words("x IS NOT NULL")),
            id="not in each alternative",
        ),
        pytest.param(
            "x IS NOT NULL OR x = 1", any_of(words("x IS NOT NULL"), equal("x", "1")), id="in an OR"
        ),
    ],
)
def test_not_null_goes_where_a_comparison_of_the_column_implies_it(text, expected):
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("name", "field"),
    [
        pytest.param("dt", "dt", id="plain"),
        pytest.param("dt#12", "dt", id="id of the expression"),
        pytest.param("id#12L", "id", id="id of a long"),
        pytest.param("`a b`", "a b", id="quoted"),
        pytest.param("`a b`#3", "a b", id="quoted, with id"),
        pytest.param("`a.b`", "a.b", id="dot in quotes"),
        pytest.param("`a``b`", "a`b", id="quote in quotes"),
        pytest.param("größe", "größe", id="unicode"),
        pytest.param("t.dt", "dt", id="qualified"),
        pytest.param("spark_catalog.shop.t.dt", "dt", id="fully qualified"),
        pytest.param("address.city", "address.city", id="struct"),
        pytest.param("t.address.geo.lat", "address.geo.lat", id="qualified struct"),
        pytest.param("c.s.t.address.city", "address.city", id="fully qualified struct"),
    ],
)
def test_names_of_columns(name, field):
    assert condition(f"({name} = 1)", columns={"dt", "address"}) == equal(field, "1")


def test_without_known_columns_a_qualifier_is_a_table():
    assert condition("address.city = 1") == equal("city", "1")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("(", id="open"),
        pytest.param("GROUP BY region, dt", id="another clause"),
        pytest.param("INNER JOIN ON (a = b)", id="join"),
        pytest.param("(row_number() OVER (...) AS rn = 1)", id="garbled by the listener"),
        pytest.param("x = 1; DROP TABLE t", id="two statements"),
        pytest.param("x = 'open", id="open text"),
    ],
)
def test_a_text_that_cannot_be_read_is_words_in_full(text):
    assert condition(text) == words(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 5_000 + "x = 1" + ")" * 5_000, id="parentheses"),
        pytest.param("NOT " * 4_000 + "x = 1", id="not"),
        pytest.param("CASE WHEN " * 1_500, id="case"),
        pytest.param("x = 1 AND " * 5_000 + "x = 1", id="long"),
        pytest.param("x = y" + " = y" * 4_000, id="chain"),
    ],
)
def test_what_is_too_long_or_too_deep_is_truncated_words(text):
    described = condition(text)
    assert described == words(f"{text[:999]}…")


def test_a_long_list_is_structure():
    values = [str(n) for n in range(1_000)]
    expected = any_of(*(equal("x", v) for v in values))
    assert condition(f"x IN ({', '.join(values)})") == expected
    assert condition(" OR ".join(f"x = {v}" for v in values[:500])) == any_of(
        *(equal("x", v) for v in values[:500])
    )


@given(st.text() | st.text("x=<>()'`\"#1 ANDORINT.,-;/*%\\"))
@example("x NOT")
def test_no_text_raises(text):
    condition(text)
    where(f"SELECT * FROM t WHERE {text}")
    static_partition(f"INSERT INTO t PARTITION ({text}) SELECT 1")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
COMPARES = st.builds(
    Compare, TEXT.filter(bool), st.sampled_from(Comparison), TEXT | st.integers().map(str)
)
CONDITIONS = st.recursive(
    COMPARES,
    lambda inner: st.builds(Binary, st.sampled_from(Operator), inner, inner),
    max_leaves=8,
)


def sql(condition):
    """Write a condition as Spark's SQL."""
    if isinstance(condition, Binary):
        return f"({sql(condition.left)} {condition.operator} {sql(condition.right)})"
    field = condition.field.replace("`", "``")
    value = condition.value.replace("\\", "\\\\").replace("'", "\\'")
    return f"`{field}` {condition.comparison.symbol} '{value}'"


@given(CONDITIONS)
@example(equal("#1", "a\\'b"))
@example(equal("`", "\\"))
def test_a_condition_comes_back_from_its_sql(original):
    assert condition(sql(original)) == conjunction([original])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param("SELECT * FROM t WHERE dt = '2024-05-06'", DAY, id="select"),
        pytest.param("select a from s.t x where x.dt = '2024-05-06';", DAY, id="alias"),
        pytest.param("SELECT * FROM c.s.t WHERE s.t.dt = '2024-05-06'", DAY, id="qualified"),
        pytest.param("SELECT * FROM T WHERE t.dt = '2024-05-06'", DAY, id="other case"),
        pytest.param("SELECT * FROM t WHERE a.b = 1", equal("a.b", "1"), id="struct"),
        pytest.param("SELECT * FROM t x WHERE t.b = 1", equal("t.b", "1"), id="struct, not alias"),
        pytest.param("SELECT * FROM delta.`/l/t` WHERE dt = '2024-05-06'", DAY, id="path"),
        pytest.param("DELETE FROM c.s.t WHERE dt = '2024-05-06'", DAY, id="delete"),
        pytest.param("UPDATE t SET a = 1 WHERE dt = '2024-05-06'", DAY, id="update"),
        pytest.param("SELECT * FROM t WHERE x LIKE 'a%'", words("x LIKE 'a%'"), id="words"),
        pytest.param("SELECT * FROM t", None, id="no where"),
        pytest.param("SELECT * FROM t, u WHERE x = 1", None, id="two tables"),
        pytest.param("SELECT * FROM t JOIN u USING (a) WHERE x = 1", None, id="join"),
        pytest.param("SELECT * FROM t a JOIN t b WHERE a.x = 1", None, id="self-join"),
        pytest.param("SELECT * FROM t WHERE x = 1 UNION ALL SELECT * FROM t", None, id="union"),
        pytest.param("SELECT * FROM (SELECT * FROM t) s WHERE x = 1", None, id="derived table"),
        pytest.param(
            "SELECT * FROM t WHERE x = 1 AND y IN (SELECT y FROM t)", None, id="sub-query"
        ),
        pytest.param("WITH c AS (SELECT 1) SELECT * FROM t WHERE x = 1", None, id="with"),
        pytest.param(
            "SELECT * FROM t LATERAL VIEW explode(a) v AS x WHERE x = 1", None, id="lateral view"
        ),
        pytest.param("SELECT * FROM range(10) WHERE id = 1", None, id="function"),
        pytest.param("UPDATE t SET a = 1 FROM u WHERE t.x = 1", None, id="update from"),
        pytest.param("INSERT INTO t SELECT * FROM u WHERE x = 1", None, id="insert"),
        pytest.param("MSCK REPAIR TABLE t", None, id="another statement"),
        pytest.param("SELECT * FROM t WHERE (", None, id="unparsable"),
        pytest.param("", None, id="empty"),
    ],
)
def test_where_of_statements(statement, expected):
    assert where(statement) == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param("t", DAY, id="name"),
        pytest.param("s.t", DAY, id="schema"),
        pytest.param("C.S.T", DAY, id="catalog, other case"),
        pytest.param("u", None, id="another table"),
        pytest.param("r.t", None, id="another schema"),
    ],
)
def test_where_of_a_table(table, expected):
    assert where("SELECT * FROM c.s.t WHERE dt = '2024-05-06'", table) == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        pytest.param("PARTITION (dt='2024-05-06')", (("dt", "2024-05-06"),), id="one"),
        pytest.param(
            "PARTITION (year=2024, `month`='05', day)",
            (("year", "2024"), ("month", "05")),
            id="mix",
        ),
        pytest.param("PARTITION (dt=DATE '2024-05-06')", (("dt", "2024-05-06"),), id="date"),
        pytest.param("PARTITION (dt=NULL)", (("dt", NULL),), id="null"),
        pytest.param("PARTITION (dt='a=b/%2F')", (("dt", "a=b/%2F"),), id="separators"),
        pytest.param("PARTITION (dt=current_date())", (), id="function"),
        pytest.param("PARTITION (dt)", (), id="dynamic"),
        pytest.param("", (), id="no clause"),
    ],
)
@pytest.mark.parametrize("verb", ["INSERT INTO", "INSERT OVERWRITE TABLE", "insert overwrite"])
def test_static_partitions(verb, clause, expected):
    assert static_partition(f"{verb} s.t {clause} SELECT a FROM u") == expected


@pytest.mark.parametrize("statement", ["SELECT 1", "INSERT INTO", "", "DROP TABLE t"])
def test_other_statements_have_no_static_partition(statement):
    assert static_partition(statement) == ()


RANK = (
    "(ranked.row_number() OVER (PARTITION BY orders.region ORDER BY orders.amount DESC NULLS LAST "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS place = 1)"
)
FILTERS = {
    "WHERE (((amount IS NOT NULL) AND (amount > 0.0D)) AND (customer_id IS NOT NULL))": (
        "amount > 0.0 AND customer_id IS NOT NULL"
    ),
    "WHERE (customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE ((currency IS NOT NULL) AND (currency = 'EUR'))": "currency=EUR",
    "WHERE ((amount IS NOT NULL) AND (amount > 0.0D))": "amount > 0.0",
    "WHERE ((dt IS NOT NULL) AND (dt = '2024-05-06'))": "dt=2024-05-06",
    "WHERE (amount > CAST(0 AS DOUBLE))": "amount > 0",
    "WHERE (orders.amount > CAST(0 AS DOUBLE))": "amount > 0",
    "WHERE ((orders.amount IS NOT NULL) AND (orders.amount > 0.0D))": "amount > 0.0",
    "WHERE ((dt IS NOT NULL) AND (dt = DATE '2024-05-06'))": "dt=2024-05-06",
    "WHERE (((orders.amount IS NOT NULL) AND (orders.amount > 0.0D)) AND (p.customer_id IS NOT NULL))": (
        "amount > 0.0 AND customer_id IS NOT NULL"
    ),
    "WHERE (((orders.amount IS NOT NULL) AND (orders.amount > 0.0D)) AND (paid.customer_id IS NOT NULL))": (
        "amount > 0.0 AND customer_id IS NOT NULL"
    ),
    "WHERE (((orders.amount IS NOT NULL) AND (orders.region IS NOT NULL)) AND ((orders.amount > 0.0D) AND (orders.region = 'eu')))": (
        "amount > 0.0 AND region=eu"
    ),
    "WHERE ((a.customer_id IS NOT NULL) AND (a.dt IS NOT NULL))": (
        "customer_id IS NOT NULL AND dt IS NOT NULL"
    ),
    "WHERE ((b.customer_id IS NOT NULL) AND (b.dt IS NOT NULL))": (
        "customer_id IS NOT NULL AND dt IS NOT NULL"
    ),
    "WHERE ((max(orders.dt) AS `max(dt#4)` IS NOT NULL) AND (max(orders.dt) AS `max(dt#4)` > '2024-05-05'))": (
        "((max(orders.dt) AS `max(dt#4)` IS NOT NULL) AND (max(orders.dt) AS `max(dt#4)` > '2024-05-05'))"
    ),
    "WHERE ((o.amount IS NOT NULL) AND (o.amount > 20.0D))": "amount > 20.0",
    "WHERE ((o.customer_id IS NOT NULL) AND (o.dt IS NOT NULL))": (
        "customer_id IS NOT NULL AND dt IS NOT NULL"
    ),
    "WHERE ((orders.amount IS NOT NULL) AND (orders.amount < 0.0D))": "amount < 0.0",
    "WHERE ((orders.amount IS NOT NULL) AND (orders.amount > scalarsubquery()))": (
        "amount IS NOT NULL AND orders.amount > scalarsubquery()"
    ),
    "WHERE ((orders.dt IS NOT NULL) AND (orders.dt = '2024-05-06'))": "dt=2024-05-06",
    "WHERE ((orders.region IS NOT NULL) AND (orders.region = 'us'))": "region=us",
    "WHERE ((size(attributes) > 0) AND (attributes IS NOT NULL))": (
        "SIZE(attributes) > 0 AND attributes IS NOT NULL"
    ),
    "WHERE ((size(profiles.tags) > 0) AND (profiles.tags IS NOT NULL))": (
        "SIZE(profiles.tags) > 0 AND tags IS NOT NULL"
    ),
    "WHERE ((size(tags) > 0) AND (tags IS NOT NULL))": "SIZE(tags) > 0 AND tags IS NOT NULL",
    "WHERE (a.region IS NOT NULL)": "region IS NOT NULL",
    "WHERE (c.customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE (customers.customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE (customers.segment IS NOT NULL)": "segment IS NOT NULL",
    "WHERE (o.customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE (orders.customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE (orders.region IS NOT NULL)": "region IS NOT NULL",
    "WHERE (r.month IS NOT NULL)": "month IS NOT NULL",
    "WHERE (r2.c0 IS NOT NULL)": "c0 IS NOT NULL",
    f"WHERE {RANK}": RANK,
    "WHERE ((lakehouse.shop.marked.customer_id IS NOT NULL)"
    " AND (lakehouse.shop.marked.customer_id = 2L))": "customer_id=2",
    "WHERE ((lakehouse.shop.marked.customer_id IS NOT NULL)"
    " AND (lakehouse.shop.marked.customer_id = 3L))": "customer_id=3",
    "WHERE ((orders.customer_id IS NOT NULL) AND (orders.customer_id < 3L))": "customer_id < 3",
    "WHERE ((orders.dt IS NOT NULL) AND (orders.dt < DATE '2024-05-07'))": "dt < 2024-05-07",
    "WHERE ((orders.dt IS NOT NULL) AND (orders.dt = DATE '2024-05-06'))": "dt=2024-05-06",
    "WHERE (dt = CAST('2024-05-06' AS DATE))": "dt=2024-05-06",
    "WHERE (dynamicpruningexpression((_file IN (listquery())))"
    " AND (NOT ((lakehouse.shop.copied.order_id > 4L) <=> true)))": (
        "NOT ((lakehouse.shop.copied.order_id > CAST(4 AS BIGINT)) IS NOT DISTINCT FROM TRUE)"
        " AND dynamicpruningexpression((_file IN (listquery())))"
    ),
    "WHERE (t.customer_id IS NOT NULL)": "customer_id IS NOT NULL",
    "WHERE (region IS NOT NULL)": "region IS NOT NULL",
    "WHERE dynamicpruningexpression((_file IN (listquery())))": (
        "dynamicpruningexpression((_file IN (listquery())))"
    ),
}

STATEMENTS = {
    "DELETE FROM created WHERE order_id > 4": "order_id > 4",
    "DELETE FROM lakehouse.shop.copied WHERE order_id > 4": "order_id > 4",
    "DELETE FROM lakehouse.shop.marked WHERE customer_id = 3": "customer_id=3",
    "DELETE FROM merged WHERE customer_id = 3": "customer_id=3",
    "UPDATE created SET amount = amount * order_id WHERE region = 'eu'": "region=eu",
    "UPDATE lakehouse.shop.marked SET note = upper(note) WHERE customer_id = 2": "customer_id=2",
    "DELETE FROM lakehouse.shop.revenue WHERE dt = '2024-05-05'": "dt=2024-05-05",
    "UPDATE lakehouse.shop.revenue SET amount = amount * 2\n"
    "    WHERE dt = '2024-05-06' AND region = 'eu'": "dt=2024-05-06 AND region=eu",
    "SELECT order_id FROM orders WHERE amount > 0 AND region = 'eu'": "amount > 0 AND region=eu",
}
INSERTS = {
    "INSERT OVERWRITE TABLE sales_static PARTITION (dt = '2024-05-06')"
    " SELECT region, amount FROM sales": (("dt", "2024-05-06"),),
    "INSERT OVERWRITE by_partition PARTITION (dt = '2024-05-06')"
    " SELECT order_id, amount FROM orders WHERE dt = '2024-05-06'": (("dt", "2024-05-06"),),
}


def recorded(key):
    """All texts under a key, anywhere in the recorded events."""

    def walk(node):
        if isinstance(node, dict):
            for name, value in node.items():
                if name == key and isinstance(value, str):
                    yield value.strip()
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    lines = (line for path in GOLDEN.glob("*.ndjson") for line in path.read_text().splitlines())
    return {text for line in lines for text in walk(json.loads(line))}


def test_every_recorded_filter_is_read():
    filters = {text for text in recorded("description") if text.startswith("WHERE ")}
    assert {text: to_text(condition(text)) for text in filters} == FILTERS


def test_every_recorded_statement_is_read():
    statements = recorded("query")
    found = {text: where(text) for text in statements}
    assert {text: to_text(c) for text, c in found.items() if c is not None} == STATEMENTS
    fixed = {text: static_partition(text) for text in statements}
    assert {text: values for text, values in fixed.items() if values} == INSERTS
