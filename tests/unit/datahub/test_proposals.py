"""Proposals as JSON, against DataHub's SDK."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.proposals import MAX_TEXT, Proposal, shown, stored
from tests.unit.datahub.sdk import checked

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"


def test_the_sdk_reads_a_proposal_as_what_it_is():
    asked = [
        Proposal(ORDERS, "status", {"removed": False}),
        Proposal(
            ORDERS,
            "upstreamLineage",
            [{"op": "add", "path": "/upstreams/x", "value": {}}],
            is_patch=True,
        ),
        Proposal(ORDERS, "status", {"removed": False}, only_if_absent=True),
    ]

    assert checked(asked) == asked
    assert asked[0].entity_type == "dataset"
    assert [one.change_type for one in asked] == ["UPSERT", "PATCH", "CREATE"]
    assert asked[2].document()["headers"] == {"If-None-Match": "*"}


@pytest.mark.parametrize(
    "aspect", [{"removed": "perhaps"}, {"removed": False, "because": "of a typing error"}]
)
def test_the_judge_refuses_what_is_no_aspect(aspect):
    with pytest.raises((AssertionError, ValueError)):
        checked([Proposal(ORDERS, "status", aspect)])


# --- texts ----------------------------------------------------------------------------------------


@given(st.text(st.characters(codec=None)))
def test_no_stored_text_is_longer_than_its_limit(text):
    assert len(stored(text, 20)) <= 20


def test_two_long_texts_stay_different():
    one, other = (stored("a" * 2000 + end) for end in "bc")

    assert one != other
    assert len(one) == len(other) == MAX_TEXT


@pytest.mark.parametrize(
    ("text", "expected"), [("a\0b", "a␀b"), ("\ud83d", "?"), ("größe 🙂", "größe 🙂")]
)
def test_a_text_can_be_stored(text, expected):
    assert stored(text) == expected
    assert json.dumps(stored(text), ensure_ascii=False).encode()


def test_values_are_shown_as_texts_and_those_without_a_text_are_left_out():
    values = {"a": 1, "b": True, "c": "[]", "d": None, "e": "x", "f": 1.5, "g": ""}

    assert shown(values) == {"a": "1", "b": "true", "e": "x", "f": "1.5"}
    assert shown(values, ("e", "a", "z")) == {"e": "x", "a": "1"}
