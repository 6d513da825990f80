"""Facets of any producer, read one by one: a part of a wrong shape leaves all others alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.model import fitted, read_facet

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FACETS = [
    cls
    for cls in vars(model).values()
    if isinstance(cls, type)
    and issubclass(cls, Struct)
    and (cls.__doc__ or "").startswith(("Facet", "Run facet", "Job facet", "Dataset facet"))
]


def keys_of(cls):
    return [one.encode_name for one in model._fields(cls)]


@pytest.mark.parametrize("cls", FACETS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_no_json_makes_the_reader_of_a_facet_raise(cls, data):
    facet = data.draw(_JSON | st.dictionaries(st.sampled_from(keys_of(cls)), _JSON))

    assert isinstance(read_facet({"facet": facet}, "facet", cls), cls)


@pytest.mark.parametrize("cls", FACETS, ids=lambda cls: cls.__name__)
def test_half_of_a_surrogate_pair_does_not_make_the_reader_of_a_facet_raise(cls):
    facet = dict.fromkeys(keys_of(cls), "\ud800")
    assert isinstance(read_facet({"facet": facet}, "facet", cls), cls)


@given(_JSON)
def test_no_json_makes_the_reader_of_an_event_raise(value):
    for event in (value, {"run": value, "job": value, "inputs": [value, {"facets": value}]}):
        assert isinstance(fitted(event, model.PlainEvent), model.PlainEvent)


@pytest.mark.parametrize("odd", ['"a\\ud800"', "NaN"])
def test_a_part_of_a_wrong_shape_and_odd_json_leave_the_rest_alone(odd):
    dataset = '{"namespace": "file", "name": "/lake", "inputFacets": {"inputStatistics": %s}}'
    statistics = f'{{"fileCount": "x", "rowCount": 3, "odd": {odd}}}'
    text = f'{{"odd": {odd}, "inputs": [{dataset % statistics}]}}'.encode()
    (read,) = model.read(text).event.inputs
    assert (read.namespace, read.name) == ("file", "/lake")
    assert read.of_side.input_statistics.rowCount == 3


def test_an_absent_facet_is_an_empty_one():
    for facets in ({}, {"storage": None}, {"storage": 5}, {"storage": {"storageLayer": []}}):
        assert read_facet(facets, "storage", model.Storage) == model.Storage()


def test_a_part_of_a_wrong_shape_leaves_the_others_alone():
    facet = {"tags": [{"key": "a", "value": "b"}, 7, {"key": [], "value": 1}, {"key": "c"}]}
    tags = read_facet({"tags": facet}, "tags", model.Tags).tags

    assert [(one.key, one.value) for one in tags] == [("a", "b"), ("", 1), ("c", None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (3.0, 3),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (-1, None),
        (1.5, None),
        (1e300, None),
        (True, None),
        ("3", None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_count_is_a_whole_number_that_a_long_can_hold(value, expected):
    statistics = read_facet({"s": {"rowCount": value, "size": 7}}, "s", model.Statistics)

    assert (statistics.rowCount, statistics.size) == (expected, 7)


def test_values_of_an_object_are_read_without_its_lists_and_objects():
    values = {"a": 1, "b": [1], "c": 5.0, "d": {}, "e": "x", "f": None, "\ud800": "\ud800"}
    expected = {key: value for key, value in values.items() if key not in "bd"}

    assert fitted(values, dict[str, model.Value]) == expected


def test_half_of_a_surrogate_pair_where_no_text_may_be_is_left_out():
    assert fitted({"reads": "\ud800", "status": "\ud800"}, model.Check) == model.Check(
        status="\ud800"
    )


def test_a_facet_that_is_nested_too_deeply_leaves_the_others_alone():
    deep = {"type": "location"}
    for _ in range(5000):
        deep = {"type": "binary", "left": deep}
    facets = {"subset": {"inputCondition": deep}, "inputStatistics": {"rowCount": 3}}

    assert fitted(facets, model.SideFacets).input_statistics.rowCount == 3
