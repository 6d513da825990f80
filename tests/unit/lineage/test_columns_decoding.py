"""Every form in which listeners report column lineage.

The forms are hand-written after the listener's source and its integration tests: listeners before
1.53 cannot be had here. What 1.53 really reports is in the recorded applications.
"""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from airflow_provider_sparklineage.lineage.application.accumulation import accumulate
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
    expand,
)
from airflow_provider_sparklineage.lineage.columns.reported import (
    decode,
    metadata_columns_removed,
    unsure_identities,
)
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.events import read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import GOLDEN

UNKNOWN = Transformation()
IDENTITY = Transformation("DIRECT", "IDENTITY")
FILTERED = Transformation("INDIRECT", "FILTER")
JOINED = Transformation("INDIRECT", "JOIN")
A, B = DatasetName("file", "/a"), DatasetName("file", "/b")


def same(name):
    return name


def facet(fields=None, dataset=None):
    content = {"fields": fields or {}}
    if dataset is not None:
        content["dataset"] = dataset
    return json.dumps(content).encode()


def source(field, *transformations, name="/a"):
    more = {"transformations": list(transformations)} if transformations else {}
    return {"namespace": "file", "name": name, "field": field, **more}


def transformation(type_, subtype, description=""):
    return {"type": type_, "subtype": subtype, "description": description, "masking": False}


def one(entry, **of_column):
    """Decode a facet with one output column that has one entry."""
    fields = {"x": {"inputFields": [entry], **of_column}}
    return decode(facet(fields, [source("other")]), same).fields["x"]


# --- transformations ------------------------------------------------------------------------------


def test_an_input_field_without_transformations_is_unknown():
    assert one(source("p")) == {Column(A, "p"): (UNKNOWN,)}


@pytest.mark.parametrize(
    ("deprecated", "expected"),
    [
        pytest.param("IDENTITY", IDENTITY, id="the specification's own word"),
        pytest.param("MASKED", Transformation("DIRECT", "TRANSFORMATION", "", True), id="masked"),
        pytest.param("AGGREGATION", Transformation("DIRECT", "AGGREGATION"), id="a subtype"),
        pytest.param("JOIN", JOINED, id="an indirect subtype"),
        pytest.param("DIRECT:AGGREGATION", Transformation("DIRECT", "AGGREGATION"), id="ours"),
        pytest.param("INDIRECT:FILTER", FILTERED, id="ours, indirect"),
        pytest.param("INDIRECT", Transformation("INDIRECT"), id="only a type"),
        pytest.param("INDIRECT:IDENTITY", Transformation("INDIRECT", "IDENTITY"), id="odd pair"),
        pytest.param("UNKNOWN", UNKNOWN, id="unknown"),
        pytest.param("", UNKNOWN, id="nothing"),
        pytest.param("Looks up the customer", UNKNOWN, id="prose"),
    ],
)
def test_the_deprecated_fields_speak_for_inputs_without_transformations(deprecated, expected):
    [edge] = one(source("p"), transformationType=deprecated).values()
    assert edge == (expected,)


def test_the_deprecated_description_stays_even_of_an_unknown_transformation():
    edges = one(source("p"), transformationType="", transformationDescription="upper(p)")
    assert edges == {Column(A, "p"): (Transformation(description="upper(p)"),)}


def test_transformations_win_over_the_deprecated_fields():
    edges = one(source("p", transformation("DIRECT", "IDENTITY")), transformationType="AGGREGATION")
    assert edges == {Column(A, "p"): (IDENTITY,)}


@pytest.mark.parametrize("word", ["CONDITION", "CONDITIONAL"])
def test_both_words_for_a_condition_are_read_and_kept_as_they_are(word):
    conditional = Transformation("INDIRECT", word)
    assert one(source("p", transformation("INDIRECT", word))) == {Column(A, "p"): (conditional,)}
    lineage = decode(facet({}, [source("p", transformation("INDIRECT", word))]), same)
    assert lineage.dataset == {Column(A, "p"): (conditional,)}


def test_a_type_that_openlineage_does_not_know_is_unknown():
    assert one(source("p", transformation("SORCERY", "SPELL"))) == {Column(A, "p"): (UNKNOWN,)}


def test_several_entries_of_one_column_are_one_list_without_duplicates():
    identity, aggregation = (
        transformation("DIRECT", "IDENTITY"),
        transformation("DIRECT", "AGGREGATION"),
    )
    fields = {
        "x": {"inputFields": [source("p", identity), source("p", aggregation, identity)]},
    }
    lineage = decode(facet(fields), same)
    assert lineage.fields["x"] == {
        Column(A, "p"): (IDENTITY, Transformation("DIRECT", "AGGREGATION"))
    }


@pytest.mark.parametrize(
    "description", ["empty2null(region) AS region", "empty2null(`t`.`region`) AS `region`"]
)
def test_empty_to_null_is_identity(description):
    edges = one(source("region", transformation("DIRECT", "TRANSFORMATION", description)))
    assert edges == {Column(A, "region"): (IDENTITY._replace(description="region"),)}


def test_more_than_empty_to_null_is_no_identity():
    description = "concat(empty2null(region), x) AS region"
    edges = one(source("region", transformation("DIRECT", "TRANSFORMATION", description)))
    assert edges[Column(A, "region")][0].subtype == "TRANSFORMATION"


# --- the dataset list -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformations",
    [
        [],
        [transformation("DIRECT", "IDENTITY")],
        [transformation(None, None)],
        [transformation("INDIRECT", "")],
    ],
    ids=["no transformation", "a stray identity", "nulls", "no subtype"],
)
def test_entries_for_the_full_dataset_are_filters_unless_they_have_another_subtype(transformations):
    lineage = decode(facet(dataset=[source("p", *transformations)]), same)
    assert lineage.dataset == {Column(A, "p"): (FILTERED,)}


def test_an_entry_for_the_full_dataset_keeps_its_indirect_subtype():
    lineage = decode(facet(dataset=[source("p", transformation("DIRECT", "JOIN"))]), same)
    assert lineage.dataset == {Column(A, "p"): (JOINED,)}


# --- the legacy form ------------------------------------------------------------------------------

CONDITIONAL = transformation("INDIRECT", "CONDITIONAL")
JOIN = transformation("INDIRECT", "JOIN")


def test_what_is_done_to_rows_and_reported_of_each_column_is_reported_of_the_dataset():
    fields = {
        "x": {"inputFields": [source("p", transformation("DIRECT", "IDENTITY"), JOIN)]},
        "y": {
            "inputFields": [source("q", transformation("DIRECT", "IDENTITY")), source("p", JOIN)]
        },
    }
    assert decode(facet(fields), same) == ColumnLineage(
        {"x": {Column(A, "p"): (IDENTITY,)}, "y": {Column(A, "q"): (IDENTITY,)}},
        {Column(A, "p"): (JOINED,)},
    )


def test_what_is_not_reported_of_each_column_stays_with_those_of_which_it_is():
    fields = {
        "x": {"inputFields": [source("p", JOIN)]},
        "y": {"inputFields": [source("q", transformation("DIRECT", "IDENTITY"))]},
    }
    lineage = decode(facet(fields), same)
    assert (lineage.fields["x"], lineage.dataset) == ({Column(A, "p"): (JOINED,)}, {})


def test_a_condition_within_each_column_is_none_of_the_rows():
    fields = {name: {"inputFields": [source("flag", CONDITIONAL)]} for name in ("x", "y")}
    lineage = decode(facet(fields), same)
    assert lineage.dataset == {}
    assert set(lineage.fields) == {"x", "y"}


def test_a_facet_with_a_dataset_list_is_compact_already():
    fields = {"x": {"inputFields": [source("p", JOIN)]}}
    lineage = decode(facet(fields, [source("q", JOIN)]), same)
    assert lineage.fields == {"x": {Column(A, "p"): (JOINED,)}}


def legacy(raw):
    """Rewrite a recorded facet as the listener writes it with datasetLineageEnabled=false."""
    lineage = expand(decode(json.dumps(raw).encode(), same))

    def entry(column, transformations):
        return {
            "namespace": column.dataset.namespace,
            "name": column.dataset.name,
            "field": column.field,
            "transformations": [t._asdict() for t in transformations],
        }

    fields = {
        name: {"inputFields": [entry(c, ts) for c, ts in edges.items()]}
        for name, edges in lineage.fields.items()
    }
    return {"fields": fields}


def in_any_order(lineage):
    return {
        d.name: (
            {n: {c: set(t) for c, t in e.items()} for n, e in d.columns.fields.items()},
            {c: set(t) for c, t in d.columns.dataset.items()},
        )
        for d in lineage.outputs
        if d.columns is not None
    }


def merged(lines):
    run_id = json.loads(lines[0])["run"]["runId"]
    events = read_events((f"{line}\n".encode() for line in lines), ReadReport(), source="test")
    return merge(accumulate(events, run_id), Outcome.COMPLETE)


@pytest.mark.parametrize("case", ["staging_chain", "union_diamond", "iceberg_merge"])
def test_a_recorded_application_is_the_same_in_the_legacy_form(case):
    """Rewritten by hand from the recorded compact form; descriptions and all."""
    lines = (GOLDEN / "spark-4.0" / f"{case}.ndjson").read_text().splitlines()
    with_backend_names = 0
    other = []
    for line in lines:
        event = json.loads(line)
        for output in event.get("outputs") or ():
            lineage = (output.get("facets") or {}).get("columnLineage")
            if lineage and lineage["fields"]:
                output["facets"]["columnLineage"] = legacy(lineage)
                with_backend_names += 1
        other.append(json.dumps(event))

    assert with_backend_names
    assert in_any_order(merged(other)) == in_any_order(merged(lines))


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "a"),
        ("`a`", "a"),
        ('"a"', "a"),
        ("`a`.`b`", "a.b"),
        ('"a"."b"', "a.b"),
        ("a.b", "a.b"),
        ("a.`b c`", "a.b c"),
        ("`a.b`", "a.b"),
        ("`a``b`", "a`b"),
        ('say "hi"', 'say "hi"'),
        ("`a", "`a"),
        ("``", "``"),
        ("`a`.", "`a`."),
        ("preis_€", "preis_€"),
    ],
)
def test_quotes_of_names_go_and_nested_names_stay_complete(name, expected):
    lineage = decode(facet({name: {"inputFields": [source(name)]}}), same)
    assert lineage.fields == {expected: {Column(A, expected): (UNKNOWN,)}}


def test_two_forms_of_one_column_name_are_one_column():
    lineage = decode(
        facet({"x": {"inputFields": [source("p")]}, "`x`": {"inputFields": [source("q")]}}), same
    )
    assert set(lineage.fields["x"]) == {Column(A, "p"), Column(A, "q")}


def test_a_file_stands_for_its_directory():
    lineage = decode(
        facet({"x": {"inputFields": [source("p", name="/a/part-0.parquet")]}}),
        lambda name: A if name.name.startswith("/a/") else name,
    )
    assert lineage.fields == {"x": {Column(A, "p"): (UNKNOWN,)}}


def test_two_files_of_one_directory_are_one_source():
    entries = [
        source("p", transformation("DIRECT", "IDENTITY"), name=f"/a/part-{n}") for n in range(2)
    ]
    lineage = decode(facet({"x": {"inputFields": entries}}), lambda _: A)
    assert lineage.fields == {"x": {Column(A, "p"): (IDENTITY,)}}


def test_a_column_with_empty_sources_is_left_out():
    assert decode(facet({"x": {"inputFields": []}, "y": {}}), same).fields == {}


def test_what_is_no_facet_is_refused():
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"fields": [1]}', same)


# --- metadata columns -----------------------------------------------------------------------------

METADATA = ["_file", "_pos", "_spec_id", "_partition", "_partition.dt", "_deleted", "_metadata.x"]


@pytest.mark.parametrize("name", METADATA)
def test_a_metadata_column_is_none_where_the_schema_has_none(name):
    edges = {Column(A, name): (FILTERED,), Column(A, "p"): (IDENTITY,)}
    lineage = ColumnLineage({"x": edges, "y": {Column(A, name): (IDENTITY,)}}, edges)
    left = {Column(A, "p"): (IDENTITY,)}
    assert metadata_columns_removed(lineage, lambda _: False) == ColumnLineage({"x": left}, left)
    assert metadata_columns_removed(lineage, lambda _: True) == lineage


@pytest.mark.parametrize("name", ["_id", "_files", "_posted", "_metadata_version", "file"])
def test_a_users_own_column_is_never_taken_for_one(name):
    lineage = ColumnLineage({"x": {Column(A, name): (IDENTITY,)}})
    assert metadata_columns_removed(lineage, lambda _: False) == lineage


def test_identity_of_a_jdbc_column_is_not_believed_unless_a_text_shows_it():
    def made(first):
        described = Transformation("DIRECT", "IDENTITY", "b AS c")
        edges = {Column(A, "a"): (first,), Column(A, "b"): (described,)}
        return ColumnLineage({"x": edges}, {Column(A, "k"): (FILTERED,)})

    silent = Transformation("DIRECT", "IDENTITY")
    assert unsure_identities(made(silent), lambda _: False) == made(silent)
    assert unsure_identities(made(silent), lambda _: True) == made(silent._replace(subtype=None))


def test_what_a_pivot_chooses_by_is_a_condition_and_what_it_aggregates_is_not():
    value = "pivotfirst(t.region, max(region) AS `max(region)`) AS `__pivot_max(region)`[0] AS eu"
    chosen = "pivotfirst(t.region, `max(region)`) AS `__pivot_max(region)`[0] AS eu"
    aggregated = transformation("DIRECT", "AGGREGATION", value)
    choosing = transformation("DIRECT", "AGGREGATION", chosen)
    [kept] = one(source("region", aggregated))[Column(A, "region")]
    assert (kept.type, kept.subtype) == ("DIRECT", "AGGREGATION")
    [repaired] = one(source("region", choosing))[Column(A, "region")]
    assert (repaired.type, repaired.subtype) == ("INDIRECT", "CONDITIONAL")
    [other] = one(source("other", choosing))[Column(A, "other")]
    assert other.type == "DIRECT"


def test_files_stand_for_the_input_that_is_nearest_above_them():
    """Rewritten by hand: the listener names files where a job reads several of a folder."""
    lines = (GOLDEN / "spark-4.0" / "staging_chain.ndjson").read_text().splitlines()
    other = []
    for line in lines:
        event = json.loads(line)
        if any(d["name"] == "/lake/orders" for d in event.get("inputs") or ()):
            event["inputs"].append({"namespace": "file", "name": "/lake"})
        for output in event.get("outputs") or ():
            lineage = (output.get("facets") or {}).get("columnLineage") or {}
            fields = [f["inputFields"] for f in (lineage.get("fields") or {}).values()]
            for entry in [e for some in (*fields, lineage.get("dataset") or ()) for e in some]:
                if entry["name"] == "/lake/orders":
                    entry["name"] += "/dt=2024-05-06/part-00000.snappy.parquet"
        other.append(json.dumps(event))

    assert "/part-00000.snappy.parquet" in "".join(other)
    assert in_any_order(merged(other)) == in_any_order(merged(lines))


# --- what is the same in many columns -------------------------------------------------------------


def test_columns_with_the_same_sources_have_edges_that_are_one_object():
    sources = {"inputFields": [source("a", transformation("DIRECT", "IDENTITY"))]}
    decoded = decode(facet({"x": sources, "y": sources}, [source("f")]), same)
    assert decoded.fields["x"] is decoded.fields["y"]


def test_columns_with_the_same_sources_and_deprecated_kinds_of_their_own_differ():
    sources = {"inputFields": [source("a")]}
    fields = {"x": sources | {"transformationType": "IDENTITY"}, "y": sources}
    decoded = decode(facet(fields, [source("f")]), same)
    assert decoded.fields["x"] == {Column(A, "a"): (IDENTITY,)}
    assert decoded.fields["y"] == {Column(A, "a"): (UNKNOWN,)}


def test_sources_that_cannot_be_read_are_named_by_their_place_in_the_facet():
    fields = {"x": {"inputFields": [source("a"), {"namespace": "file"}]}}
    with pytest.raises(msgspec.ValidationError, match=re.escape("$.fields[...].inputFields[1]")):
        decode(facet(fields), same)
