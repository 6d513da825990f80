"""The algebra of transformations: the listener's own rules for what follows upon what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datasets import DatasetName
from airflow_provider_sparklineage.lineage.columns import (
    Column,
    ColumnLineage,
    Origin,
    Transformation,
    combine,
    compose,
    union,
)

UNKNOWN = Transformation()
IDENTITY = Transformation("DIRECT", "IDENTITY")
TRANSFORMED = Transformation("DIRECT", "TRANSFORMATION")
AGGREGATED = Transformation("DIRECT", "AGGREGATION")
FILTERED = Transformation("INDIRECT", "FILTER")
JOINED = Transformation("INDIRECT", "JOIN")

A, TMP, B = (DatasetName("file", f"/{name}") for name in ("a", "tmp", "b"))


def same(name):
    return name


@pytest.mark.parametrize(
    ("this", "upstream", "expected"),
    [
        pytest.param(FILTERED, AGGREGATED, FILTERED, id="INDIRECT stays"),
        pytest.param(FILTERED, JOINED, FILTERED, id="INDIRECT after INDIRECT"),
        pytest.param(FILTERED, UNKNOWN, FILTERED, id="INDIRECT after unknown"),
        pytest.param(IDENTITY, UNKNOWN, UNKNOWN, id="DIRECT after unknown is unknown"),
        pytest.param(UNKNOWN, IDENTITY, UNKNOWN, id="unknown stays"),
        pytest.param(AGGREGATED, JOINED, JOINED, id="DIRECT after INDIRECT takes the other"),
        pytest.param(IDENTITY, IDENTITY, IDENTITY, id="identity of identity"),
        pytest.param(IDENTITY, AGGREGATED, AGGREGATED, id="aggregation first"),
        pytest.param(AGGREGATED, TRANSFORMED, AGGREGATED, id="aggregation first, other side"),
        pytest.param(TRANSFORMED, IDENTITY, TRANSFORMED, id="transformation before identity"),
    ],
)
def test_two_in_a_row(this, upstream, expected):
    assert combine(this, upstream)[:2] == expected[:2]


@pytest.mark.parametrize("this", [IDENTITY, FILTERED, UNKNOWN])
def test_masking_anywhere_masks(this):
    assert combine(this, IDENTITY._replace(masking=True)).masking
    assert combine(this._replace(masking=True), IDENTITY).masking


TRANSFORMATIONS = st.sampled_from([UNKNOWN, IDENTITY, TRANSFORMED, AGGREGATED, FILTERED, JOINED])


@given(TRANSFORMATIONS, TRANSFORMATIONS, TRANSFORMATIONS)
def test_combining_is_associative(first, second, third):
    left = combine(combine(first, second), third)
    right = combine(first, combine(second, third))
    assert left[:2] == right[:2]


def test_columns_of_an_intermediate_are_replaced_by_theirs():
    tmp = ColumnLineage(
        {"x": {Column(A, "p"): (TRANSFORMED,), Column(A, "q"): (IDENTITY,)}},
        {Column(A, "f"): (FILTERED,)},
    )
    b = ColumnLineage({"y": {Column(TMP, "x"): (AGGREGATED,)}})
    composed = compose(b, lambda name: Origin(tmp, internal=True) if name == TMP else None)
    assert composed == ColumnLineage(
        {"y": {Column(A, "p"): (AGGREGATED,), Column(A, "q"): (AGGREGATED,)}},
        {Column(A, "f"): (FILTERED,)},
    )


def test_a_column_of_an_intermediate_without_sources_stays():
    b = ColumnLineage({"y": {Column(TMP, "literal"): (IDENTITY,)}})
    assert compose(b, lambda _: Origin(ColumnLineage(), internal=True)) == b


def test_a_dataset_that_is_also_an_input_keeps_its_own_columns():
    tmp = ColumnLineage({"x": {Column(A, "p"): (IDENTITY,)}})
    b = ColumnLineage({"y": {Column(TMP, "x"): (IDENTITY,)}})
    composed = compose(b, lambda name: Origin(tmp, internal=False) if name == TMP else None)
    assert set(composed.fields["y"]) == {Column(A, "p"), Column(TMP, "x")}


def test_uniting_keeps_every_edge_once():
    one = {Column(A, "p"): (IDENTITY, TRANSFORMED)}
    two = {Column(A, "p"): (IDENTITY,), Column(B, "q"): (IDENTITY,)}
    assert union(one, two) == {Column(A, "p"): (IDENTITY, TRANSFORMED), Column(B, "q"): (IDENTITY,)}
