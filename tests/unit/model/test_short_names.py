"""Datasets by the shortest ends of their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.datasets import DatasetName, short_names


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([("file", "/lake/orders")], ["orders"]),
        ([("file", "/a/orders"), ("file", "/b/orders")], ["a/orders", "b/orders"]),
        ([("s3://a", "orders"), ("s3://b", "orders")], ["a/orders", "b/orders"]),
        ([("file", "/orders"), ("file", "/a/orders")], ["orders", "a/orders"]),
        ([("file", "/")], ["/"]),
        ([], []),
    ],
    ids=["one", "two folders", "two buckets", "one is the end of another", "the root", "none"],
)
def test_the_shortest_end_that_is_its_own(names, short):
    every = [DatasetName(*name) for name in names]
    assert [short_names(every)[name] for name in every] == short


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=6))
def test_no_two_datasets_have_the_same(paths):
    names = {DatasetName("file", f"/{'/'.join(path)}") for path in paths}
    assert len(set(short_names(names).values())) == len(names)
