"""Values changed wherever they stand in JSON, and nulls that the client would not send."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event.document import Walk, without_nulls

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


SHOUTING = Walk(
    lambda text, key: text if key == "name" else text.upper(),
    number=lambda number: number if math.isfinite(number) else None,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"a": ["x", {"b": "y"}]}, {"a": ["X", {"b": "Y"}]}, id="at any depth"),
        pytest.param({"name": "x"}, {"name": "x"}, id="by the key"),
        pytest.param(
            {"dimensions": {"name": "x"}}, {"dimensions": {"name": "X"}}, id="columns are no keys"
        ),
        pytest.param({"a": math.inf, "b": 1.5}, {"b": 1.5}, id="what is nothing then is absent"),
        pytest.param({"a": [1.0, math.nan, {"b": math.nan}]}, {"a": [1.0]}, id="in lists too"),
        pytest.param({"a": None, "b": [None, {}]}, {"a": None, "b": [None, {}]}, id="given nulls"),
    ],
)
def test_values_are_changed(before, after):
    text = json.dumps(before)
    assert SHOUTING.value(before) == after
    assert json.dumps(before) == text


@given(JSON)
def test_what_needs_no_change_is_given_back(value):
    once = SHOUTING.value(value)
    assert SHOUTING.value(once) is once


@given(st.dictionaries(st.text(max_size=3), JSON))
def test_nulls_are_left_out_as_the_client_leaves_them_out(value):
    assert without_nulls(value) == Serde.to_dict(value)
