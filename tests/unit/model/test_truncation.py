"""Long texts are truncated, but never within a literal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage.columns.composition import shortened_description
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.subset import Description, to_text
from airflow_provider_sparklineage.model.texts import some, truncated

SECRET = "correct horse battery staple"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a = 1", "a = 1", id="short enough"),
        pytest.param("a = 1 AND b", "a = 1 …", id="between words"),
        pytest.param("a = 12345", "a = …", id="within a word"),
        pytest.param("a = 'x y z'", "a = …", id="within a literal"),
        pytest.param("a='x' 'y'", "a='x' …", id="within the second literal"),
        pytest.param("""a="x' y" z""", "a=…", id="within the other quotes"),
        pytest.param(r"a='\' y z'", "a=…", id="within a literal with a quote in it"),
        pytest.param("a2345678", "a23456…", id="one long word"),
    ],
)
def test_a_text_is_truncated_before_what_would_be_split(text, expected):
    assert truncated(text, 7) == expected


@given(st.text(max_size=30), st.integers(1, 20))
def test_nothing_is_longer_than_it_may_be(text, limit):
    short = truncated(text, limit)
    assert short == text if len(text) <= limit else (len(short) <= limit and short[-1] == "…")


@pytest.mark.parametrize("at", [*range(270, 300, 7), *range(960, 1000, 7)])
@pytest.mark.parametrize("quoted", [True, False])
def test_half_a_secret_is_in_no_text(at, quoted):
    secret = SECRET if quoted else SECRET.replace(" ", "")
    literal = f"'{secret}'" if quoted else secret
    filler = ("note " * at)[: at - 1]
    text = f"{filler} {literal} is not null and {filler}"
    description = predicates.condition(text)
    assert isinstance(description, Description)
    for short in (description.text, to_text(description), shortened_description(text)):
        rest = short.replace(secret, "")
        assert "corr" not in rest


def test_of_a_long_list_only_those_that_are_named_are_asked_for_their_names():
    asked = []
    assert some(range(1000), 2, lambda n: asked.append(n) or f"t{n}") == "t0, t1 and 998 more"
    assert asked == [0, 1]
    assert some(["a", "b"], 2) == "a, b"
