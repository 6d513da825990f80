"""Predicates of the simplest form are read without sqlglot, and exactly as sqlglot reads them."""

import re
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.predicates import comparisons, condition


def by_sqlglot(text, columns=()):
    with mock.patch.object(predicates, "comparisons", return_value=None):
        return condition(text, columns)


READ = [
    pytest.param("(c0 > 1)", id="comparison"),
    pytest.param("(c0 > 1L)", id="long"),
    pytest.param("(amount >= -0.5D)", id="negative double"),
    pytest.param("(amount < 1.50)", id="decimal"),
    pytest.param("(dt = '2024-05-06')", id="text"),
    pytest.param("(dt = '')", id="empty text"),
    pytest.param("(dt <= DATE '2024-05-06')", id="date"),
    pytest.param("(at < TIMESTAMP '2024-05-06 10:00:00.5')", id="timestamp"),
    pytest.param("(is_new = true)", id="boolean"),
    pytest.param("isnotnull(dt#12)", id="isnotnull"),
    pytest.param("(c0 IS NOT NULL)", id="IS NOT NULL"),
    pytest.param("((dt IS NOT NULL) AND (dt = 'a'))", id="IS NOT NULL that is implied"),
    pytest.param("isnotnull(a) AND (b > 1) AND (b <= 2)", id="and without parentheses"),
    pytest.param("(((a = 1) AND (b = 2)) AND (c = 3))", id="nested and"),
    pytest.param("(`a b` = 'x')", id="name in quotes"),
    pytest.param("(t.address.city = 'x')", id="qualified struct"),
]


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("columns", [(), ("address", "dt")], ids=["unknown", "known"])
def test_what_spark_most_often_writes_is_read_without_sqlglot(text, columns, monkeypatch):
    expected = by_sqlglot(text, columns)
    monkeypatch.setattr(predicates, "parsed", None)  # a call would raise
    assert condition(text, columns) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(a = 1) OR (b = 2)", id="or"),
        pytest.param("(NOT (a = 1))", id="not"),
        pytest.param("(a = b)", id="columns"),
        pytest.param("(dt = 2024-05-06)", id="date without quotes"),
        pytest.param("(a = 'it\\'s')", id="escape"),
        pytest.param("(a = 'it''s')", id="texts side by side"),
        pytest.param("(a = 1", id="open"),
        pytest.param("a = 1)", id="closed twice"),
        pytest.param("(a = 1) AND", id="and nothing"),
        pytest.param("(a = 12345678901234567890L)", id="more than a long"),
        pytest.param("(a = 1e3)", id="exponent"),
        pytest.param("(null > 1)", id="a word of SQL"),
        pytest.param("a = 1, b = 2", id="list"),
        pytest.param("(" * 9 + "a = 1" + ")" * 9, id="deep"),
        pytest.param(" AND ".join(["(a = 1)"] * 100), id="long"),
        pytest.param("", id="empty"),
    ],
)
def test_of_anything_else_it_says_nothing(text):
    assert comparisons(text, ".".join) is None


NAMES = st.sampled_from(["c0", "dt", "date", "`a b`", "t.dt", "a.b.c", "Ä", "count", "null", "2a"])
LITERALS = st.one_of(
    st.text("ab'\\ %#1é\n", max_size=5).map(lambda text: f"'{text}'"),
    st.sampled_from(
        ["1", "-1", "5L", "-5L", "007", "1.", ".5", "1.5", "0.0D", "1.50BD", "1e3", "1L.5", "x"]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        [
            "DATE '2024-05-06'",
            "DATE '2024-5-6'",
            "TIMESTAMP '2024-05-06 10:00:00'",
            "TIMESTAMP '2024-05-06'",
            "true",
            "TRUE",
            "NULL",
            "2024-05-06",
        ]
    ),
)
TERMS = st.one_of(
    st.builds(
        "{} {} {}".format, NAMES, st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "=="]), LITERALS
    ),
    st.builds("isnotnull({})".format, NAMES),
    st.builds("{} IS NOT NULL".format, NAMES),
)
PREDICATES = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map("({})".format),
        st.builds("({} AND {})".format, inner, inner),
        st.builds("{} AND {}".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT {}".format, inner),
    ),
    max_leaves=5,
)
NEARLY = st.builds(
    lambda text, at, change: text[: at % len(text)] + change + text[at % len(text) + 1 :],
    PREDICATES,
    st.integers(0, 200),
    st.text("()'`\"#-. =<>ANDL1x,;/*", max_size=3),
)


@given(PREDICATES | NEARLY | st.text("x1=<>()' `.ANDL-"), st.sampled_from([(), ("a", "t", "dt")]))
@example("(x = 1 AND x = 1)", ())
@example("(x = true.a)", ())
@example("(x = 1--2)", ())
@example("isnotnull(a) AND (a.b > 1)", ("a",))
def test_where_it_says_something_it_says_what_sqlglot_does(text, columns):
    assert condition(text, columns) == by_sqlglot(text, columns)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "form", ["({} > 1)", "{} > 1", "({}.a > 1)", "({} IS NOT NULL)", "isnotnull({})"]
)
def test_words_of_sql_are_read_as_names_only_where_sqlglot_does(form, caplog):
    keywords = {*Spark.Tokenizer.KEYWORDS, *Spark.Parser.FUNCTIONS}
    texts = [form.format(word) for word in keywords if re.fullmatch(r"[A-Za-z_]\w*", word)]
    assert len(texts) > 500
    differing = [text for text in texts if condition(text) != by_sqlglot(text)]
    assert differing == []
