"""Reading what any producer may have written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub import lenient

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON)
def test_no_json_makes_a_reader_raise(value):
    assert isinstance(lenient.mapping(value), dict)
    assert isinstance(lenient.mapping(lenient.at(value, "run", "facets")), dict)
    assert all(isinstance(one, dict) for one in lenient.items(value))
    assert all(isinstance(one, str) and one for one in lenient.texts(value))
    assert len(lenient.text(value, 20)) <= 20
    assert lenient.number(value) is None or lenient.number(value) >= 0
    assert lenient.millis(value) is None or isinstance(lenient.millis(value), int)


def test_what_is_below_keys_is_found():
    document = {"run": {"facets": {"airflow": {"dag": 1}}}}

    assert lenient.at(document, "run", "facets", "airflow", "dag") == 1
    assert lenient.at(document, "run", "facets", "airflow", "dag", "owner") is None
    assert lenient.at(document, "job", "facets") is None


def test_two_long_texts_stay_different():
    one, other = (lenient.text("a" * 2000 + end) for end in "bc")

    assert one != other
    assert len(one) == len(other) == lenient.MAX_TEXT


@pytest.mark.parametrize(
    ("given_text", "stored"), [("a\0b", "a␀b"), ("\ud83d", "?"), ("größe 🙂", "größe 🙂")]
)
def test_a_text_can_be_stored(given_text, stored):
    assert lenient.text(given_text) == stored
    assert json.dumps(lenient.text(given_text), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, 0),
        (3.0, 3),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (-1, None),
        (1.5, None),
        (True, None),
        ("3", None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_count_is_a_whole_number_that_a_long_can_hold(value, found):
    assert lenient.number(value) == found


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-01-01T01:00:00.0019+01:00", 1767225600001),
        ("2026-01-01T00:00:00", 1767225600000),
        ("0001-01-01T00:00:00+23:00", -62135679600000),
        ("yesterday", None),
        (7, None),
        (None, None),
    ],
)
def test_a_time_is_in_milliseconds_since_the_epoch(time, found):
    assert lenient.millis(time) == found
