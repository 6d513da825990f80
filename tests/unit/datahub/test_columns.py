"""Column lineage of any producer: its facets, its forms, what is no column lineage at all."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.datahub.lineage_facets import (
    Columns,
    by_kind,
    grouped,
    old_transformation_kinds,
    transform_operation,
    transformation_kinds,
)
from airflow_provider_sparklineage.datahub.lineage_facets import read_columns as read_typed
from airflow_provider_sparklineage.event.model import (
    ColumnLineage,
    LineageEntry,
    Transformation,
    fitted,
)
from tests.unit.datahub.events import LAKE, column_lineage, source

AMOUNT, REGION = (LAKE, "orders", "amount"), (LAKE, "orders", "region")
IDENTITY, FILTER = "DIRECT:IDENTITY", "INDIRECT:FILTER"


def read_columns(facet, entry):
    return read_typed(fitted(facet, ColumnLineage), fitted(entry, LineageEntry))


def kinds_of(transformations):
    return transformation_kinds(fitted(transformations, list[Transformation]))


@pytest.mark.parametrize(
    ("transformations", "expected"),
    [
        ([{"type": "DIRECT", "subtype": "IDENTITY"}], "DIRECT:IDENTITY"),
        ([{"type": "INDIRECT", "subtype": "GROUP_BY", "masking": False}], "INDIRECT:GROUP_BY"),
        (
            [{"type": "DIRECT", "subtype": "AGGREGATION", "masking": True}],
            "DIRECT:AGGREGATION:MASKING",
        ),
        ([{"type": "DIRECT"}], "DIRECT"),
        (
            [{"type": "INDIRECT", "subtype": "FILTER"}, {"type": "DIRECT", "subtype": "IDENTITY"}],
            "DIRECT:IDENTITY,INDIRECT:FILTER",
        ),
        ([{"type": "DIRECT", "description": text} for text in "ab"], "DIRECT"),
        ([], "NONE"),
        (None, "NONE"),
        ([None, 1, {"type": None}, {"subtype": "FILTER"}, {"type": []}], "NONE"),
        ([{"type": "a/b~c", "subtype": "x,y:z\n"}], "A_B_C:X_Y_Z"),
    ],
    ids=str,
)
def test_transformations_are_in_the_notation_of_datahub(transformations, expected):
    assert transform_operation(kinds_of(transformations)) == expected


def test_a_hostile_number_of_transformations_makes_no_key_of_that_length():
    every = [{"type": "DIRECT", "subtype": f"{n:0100}"} for n in range(1000)]

    assert len(transform_operation(kinds_of(every))) < 1000


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ("IDENTITY", ("DIRECT:IDENTITY",)),
        ("masked", ("DIRECT:TRANSFORMATION:MASKING",)),
        ("whatever", ()),
        (None, ()),
    ],
)
def test_the_deprecated_type_of_a_column_is_understood_where_it_was_defined(old, expected):
    assert old_transformation_kinds(old) == expected

    facet = {
        "fields": {
            "total": {"inputFields": [source("orders", "amount")], "transformationType": old}
        }
    }
    assert read_columns(facet, {}).fields == {"total": {AMOUNT: expected}}


def test_the_deprecated_type_yields_to_transformations():
    field = {"inputFields": [source("orders", "amount", IDENTITY)], "transformationType": "MASKED"}

    assert read_columns({"fields": {"total": field}}, {}).fields == {"total": {AMOUNT: (IDENTITY,)}}


def test_conditions_of_the_compact_form_are_those_of_the_whole_output():
    facet = column_lineage(
        source("orders", "region", "INDIRECT:FILTER", "INDIRECT:JOIN"),
        total=[source("orders", "amount", "DIRECT:AGGREGATION")],
    )

    read = read_columns(facet, {})

    assert read == Columns(
        {"total": {AMOUNT: ("DIRECT:AGGREGATION",)}}, {REGION: (FILTER, "INDIRECT:JOIN")}
    )
    assert by_kind(read.conditions) == {FILTER: [REGION], "INDIRECT:JOIN": [REGION]}


def test_what_influences_every_column_is_a_condition_in_the_form_without_a_place_for_it():
    compact = column_lineage(
        source("orders", "region", FILTER),
        region=[source("orders", "region", IDENTITY)],
        total=[source("orders", "amount", IDENTITY)],
    )
    expanded = column_lineage(
        region=[source("orders", "region", IDENTITY, FILTER)],
        total=[source("orders", "amount", IDENTITY), source("orders", "region", FILTER)],
    )

    assert read_columns(expanded, {}) == read_columns(compact, {})


def test_what_influences_some_columns_only_stays_theirs():
    facet = column_lineage(
        total=[
            source("orders", "amount", IDENTITY),
            source("orders", "region", "INDIRECT:CONDITION"),
        ],
        region=[source("orders", "region", IDENTITY)],
    )

    read = read_columns(facet, {})

    assert not read.conditions
    assert grouped(read.fields["total"]) == {IDENTITY: [AMOUNT], "INDIRECT:CONDITION": [REGION]}


def test_a_column_that_nothing_influences_keeps_others_conditions_theirs():
    facet = column_lineage(
        literal=[],
        total=[source("orders", "region", FILTER)],
        other=[source("orders", "region", FILTER)],
    )

    read = read_columns(facet, {})

    assert read == Columns({"total": {REGION: (FILTER,)}, "other": {REGION: (FILTER,)}}, {})


def test_a_column_that_is_named_twice_has_all_that_is_done_with_it():
    facet = column_lineage(
        total=[source("orders", "amount", IDENTITY), source("orders", "amount", FILTER, IDENTITY)]
    )

    assert read_columns(facet, {}).fields == {"total": {AMOUNT: (IDENTITY, FILTER)}}


def test_the_explicit_lineage_has_columns_where_the_dataset_has_none():
    entry = {
        "inputs": [{"namespace": LAKE, "name": "orders"}, source("orders", "region", FILTER)],
        "fields": {"total": {"inputs": [source("orders", "amount", IDENTITY)]}},
    }

    assert read_columns({}, entry) == Columns({"total": {AMOUNT: (IDENTITY,)}}, {REGION: (FILTER,)})
    assert read_columns(column_lineage(total=[source("orders", "tax")]), entry).fields == {
        "total": {(LAKE, "orders", "tax"): ()}
    }


def test_direct_lineage_has_the_values_alone():
    facet = column_lineage(
        source("orders", "region", FILTER),
        total=[
            source("orders", "amount", IDENTITY, "INDIRECT:WINDOW"),
            source("orders", "day", "INDIRECT:WINDOW"),
            source("orders", "unknown"),
        ],
        ordered=[source("orders", "day", "INDIRECT:WINDOW")],
    )

    # A producer that names no transformation may well mean the value.
    assert read_columns(facet, {}).direct() == Columns(
        {"total": {AMOUNT: (IDENTITY,), (LAKE, "orders", "unknown"): ()}}, {}
    )


@pytest.mark.parametrize(
    "facet",
    [
        {"fields": None},
        {"fields": []},
        {"fields": {"a": None, "b": [], "c": {"inputFields": {}}, "d": {"inputFields": [1, None]}}},
        {"fields": {"a": {"inputFields": [{"namespace": 1, "name": "n", "field": "f"}]}}},
        {"fields": {"": {"inputFields": [source("orders", "amount")]}}},
        {"fields": {"a": {"inputFields": [source("orders", ""), source("", "amount")]}}},
        {"fields": {}, "dataset": {"namespace": "n"}},
        {
            "dataset": [
                [],
                {"namespace": "n", "name": "m"},
                {"namespace": "n", "name": "m", "field": []},
            ]
        },
    ],
    ids=str,
)
def test_what_is_malformed_is_no_lineage(facet):
    assert read_columns(facet, {}) == Columns({}, {})
