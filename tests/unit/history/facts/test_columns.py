"""Which columns were made of which, in both forms of the facet."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.history.facts import facts_of
from tests.unit.history.facts.events import dataset, event, facts

SOURCE = {"namespace": "file", "name": "/lake/orders", "field": "amount"}
OUT = {"out_namespace": "file", "out_name": "/lake/report", "out_column": "total"}
IN = {"in_namespace": "file", "in_name": "/lake/orders", "in_column": "amount"}
SUM = {"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum(amount)", "masking": False}
JOIN = {"type": "INDIRECT", "subtype": "JOIN"}


def columns(fields: object = None, whole: object = None) -> list[dict]:
    lineage = {"fields": fields, "dataset": whole}
    output = dataset("/lake/report", facets={"columnLineage": lineage})
    return facts(event(outputs=[output]))["columns"]


def test_each_transformation_of_a_source_is_an_edge_and_the_same_one_is_one():
    sources = [{**SOURCE, "transformations": [SUM, JOIN, SUM]}]
    assert columns({"total": {"inputFields": sources}}) == [
        {**OUT, **IN, **SUM},
        {**OUT, **IN, **JOIN},
    ]


@pytest.mark.parametrize(
    ("kind", "edge"),
    [
        ("IDENTITY", {"type": "DIRECT", "subtype": "IDENTITY"}),
        ("MASKED", {"type": "DIRECT", "masking": True}),
        ("DIRECT:AGGREGATION", {"type": "DIRECT", "subtype": "AGGREGATION"}),
        ("INDIRECT", {"type": "INDIRECT"}),
        ("", {}),
        (None, {}),
    ],
)
def test_the_deprecated_type_of_a_column_is_that_of_its_sources(kind, edge):
    entry = {"inputFields": [SOURCE], "transformationType": kind, "transformationDescription": "x"}
    assert columns({"total": entry}) == [{**OUT, **IN, **edge, "description": "x"}]


def test_transformations_count_where_a_column_has_both_forms():
    sources = [{**SOURCE, "transformations": [SUM]}]
    entry = {"inputFields": sources, "transformationType": "IDENTITY"}
    assert columns({"total": entry}) == [{**OUT, **IN, **SUM}]


@pytest.mark.parametrize("given", [[{"type": "DIRECT", "subtype": "FILTER"}], [], None])
def test_what_is_of_the_whole_dataset_is_indirect_and_of_no_column(given):
    (edge,) = columns({}, [{**SOURCE, "transformations": given}])
    assert edge["type"] == "INDIRECT"
    assert "out_column" not in edge


def test_a_source_that_is_incomplete_is_left_out_and_the_others_are_not():
    incomplete = [{"name": "/lake/x", "field": "a"}, SOURCE, "amount", {**SOURCE, "field": 1}]
    assert columns({"total": {"inputFields": incomplete}, "other": 7}) == [{**OUT, **IN}]


def test_a_long_expression_is_truncated_and_secrets_in_it_are_hidden():
    text = "decrypt(x, password='hunter2') " + "a + " * 10_000
    sources = [{**SOURCE, "transformations": [{"type": "DIRECT", "description": text}]}]
    (edge,) = columns({"total": {"inputFields": sources}})
    assert len(edge["description"]) <= 1000
    assert "hunter2" not in edge["description"]


def test_the_same_text_is_read_once_and_a_wrong_part_of_it_counts_each_time():
    edges = {"a": {"inputFields": [7, {"namespace": "file", "name": "/x", "field": "b"}]}}
    document = event(outputs=[dataset("/y", facets={"columnLineage": {"fields": edges}})])
    first, second = (facts_of(json.dumps(document).encode(), source) for source in "ab")
    assert first.columns is second.columns
    assert (first.left_out, second.left_out) == (1, 1)
    assert [edge["in_column"] for edge in json.loads(second.columns.text)] == ["b"]


def test_a_text_of_another_output_is_another_one():
    lineage = {"columnLineage": {"fields": {"a": {"inputFields": [SOURCE]}}}}
    found = [facts(event(outputs=[dataset(name, facets=lineage)])) for name in ("/x", "/y")]
    assert [one["columns"][0]["out_name"] for one in found] == ["/x", "/y"]
