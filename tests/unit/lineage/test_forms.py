"""What a task's column lineage and its intermediates look like where a setting asks for it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.lineage.columns.edges import (
    MAX_LEGACY_EDGES,
    Column,
    ColumnLineage,
    Transformation,
    expand,
)
from airflow_provider_sparklineage.lineage.columns.reported import decode
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage, in_legacy_form, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import (
    KEEP,
    ColumnLineageForm,
    Intermediates,
)
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

A, B = DatasetName("file", "/a"), DatasetName("file", "/b")
IDENTITY = Transformation("DIRECT", "IDENTITY", "p")
FILTERED = Transformation("INDIRECT", "FILTER", "WHERE (f > 0)")


def event(lineage):
    document = event_of(lineage, ReadReport(), header=HEADER)
    validate_event(document)
    return document


def task(columns):
    return TaskLineage(Outcome.COMPLETE, outputs=(LineageDataset(B, columns=columns),))


def legacy(lineage):
    outputs, refused = in_legacy_form(lineage.outputs)
    return replace(lineage, outputs=tuple(outputs), degradations=(*lineage.degradations, *refused))


def wide(fields, influences):
    """Give lineage with an identity for each column, and some that influence all of them."""
    return ColumnLineage(
        {f"x{n}": {Column(A, f"p{n}"): (IDENTITY,)} for n in range(fields)},
        {Column(A, f"f{n}"): (FILTERED,) for n in range(influences)},
    )


# --- legacy ---------------------------------------------------------------------------------------


def test_the_legacy_form_has_what_influences_all_columns_with_every_column():
    [output] = event(legacy(task(wide(2, 1))))["outputs"]
    facet = output["facets"]["columnLineage"]
    assert facet.get("dataset", []) == []
    assert {n: [i["field"] for i in f["inputFields"]] for n, f in facet["fields"].items()} == {
        "x0": ["f0", "p0"],
        "x1": ["f0", "p1"],
    }


@pytest.mark.parametrize("form", [lambda lineage: lineage, legacy], ids=["compact", "legacy"])
def test_the_deprecated_fields_describe_the_value_first(form):
    [output] = event(form(task(wide(1, 1))))["outputs"]
    column = output["facets"]["columnLineage"]["fields"]["x0"]
    assert column["transformationType"] == "DIRECT:IDENTITY"
    assert column["transformationDescription"].startswith("p")


def test_both_forms_are_read_as_the_same(recorded):
    compact = recorded("staging_chain").lineage
    for one, other in zip(compact.outputs, legacy(compact).outputs, strict=True):
        facets = [
            event(TaskLineage(Outcome.COMPLETE, outputs=(d,)))["outputs"][0]["facets"]
            for d in (one, other)
        ]
        decoded = [decode(msgspec.json.encode(f["columnLineage"]), lambda n: n) for f in facets]
        assert facets[0] != facets[1]
        assert decoded[0] == decoded[1]


@pytest.mark.parametrize(
    ("fields", "influences", "edges"),
    [(50, 9, 500), (167, 2, 501), (501, 0, 501), (500, 0, 500), (1, 499, 500), (1, 500, 501)],
)
def test_the_legacy_form_is_refused_above_so_many_edges(fields, influences, edges):
    compact = wide(fields, influences)
    assert sum(map(len, expand(compact).fields.values())) == edges
    [output] = legacy(task(compact)).outputs
    refused = [str(d.code) for d in legacy(task(compact)).degradations]
    if edges <= MAX_LEGACY_EDGES:
        assert (output.columns, refused) == (expand(compact), [])
    else:
        assert (output.columns, refused) == (compact, ["legacy_refused"])


def test_outputs_without_column_lineage_are_left_as_they_are():
    lineage = TaskLineage(Outcome.COMPLETE, outputs=(LineageDataset(A), LineageDataset(B)))
    assert legacy(lineage) == lineage


def test_a_task_has_the_form_that_its_settings_name(recorded):
    application = recorded("staging_chain").application
    compact = merge(application, Outcome.COMPLETE)
    forms = [merge(application, Outcome.COMPLETE, column_lineage=f) for f in ColumnLineageForm]
    assert forms == [compact, legacy(compact)] != [compact, compact]


# --- intermediates --------------------------------------------------------------------------------

STAGING = "/lake/staging/enriched_orders"


def merged(recorded, intermediates, case="staging_chain", **declared):
    application = recorded(case).application
    return merge(application, Outcome.COMPLETE, intermediates=intermediates, **declared)


def outputs(lineage):
    return [d.name.name for d in lineage.outputs]


def test_intermediates_are_outputs_unless_configured_otherwise(recorded):
    assert outputs(merged(recorded, KEEP)) == ["/lake/revenue", STAGING]


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("keep", False),
        ("drop", True),
        (" DROP : /other/*, /lake/staging/* ", True),
        ("drop: /lake/*", True),
        ("drop: /staging/*", False),
        ("drop: s3://lake/staging/*", False),
    ],
)
def test_what_was_read_back_is_left_out_where_a_glob_matches(recorded, text, dropped):
    kept = merged(recorded, KEEP)
    lineage = merged(recorded, Intermediates.parse(text))
    assert outputs(lineage) == ["/lake/revenue", *([] if dropped else [STAGING])]
    assert lineage.outputs[0].columns == kept.outputs[0].columns
    assert lineage.inputs == kept.inputs


def test_a_declared_output_stays_with_all_that_is_known_of_it(recorded):
    declared = [DatasetName("file", STAGING)]
    lineage = merged(recorded, Intermediates.parse("drop"), declared_outputs=declared)
    assert lineage.outputs == merged(recorded, KEEP, declared_outputs=declared).outputs


def test_what_the_task_also_read_from_outside_is_no_mere_intermediate(recorded):
    inputs = {d.name for d in merged(recorded, KEEP, "partitioned_writes").inputs}
    kept = set(outputs(merged(recorded, KEEP, "partitioned_writes")))
    left = set(outputs(merged(recorded, Intermediates.parse("drop"), "partitioned_writes")))
    assert kept - left == {"/lake/sales_full"}
    assert {d.name for d in inputs} & kept <= left


def test_nothing_refers_to_a_dataset_that_was_left_out(recorded):
    for case in ("staging_chain", "union_diamond", "iceberg_merge", "partitioned_writes"):
        lineage = merged(recorded, Intermediates.parse("drop"), case)
        named = {d.name for d in (*lineage.inputs, *lineage.outputs)}
        for output in lineage.outputs:
            edges = [*output.columns.fields.values(), output.columns.dataset]
            assert {c.dataset for e in edges for c in e} <= named


def test_the_schemes_of_s3_are_one():
    dropping = Intermediates.parse("drop: s3a://lake/tmp/*")
    assert dropping.drop(DatasetName("s3://lake", "tmp/x"))
    assert not dropping.drop(DatasetName("s3://lake", "temporary/x"))


@pytest.mark.parametrize("text", ["keep", "drop", "drop: /a/*, s3://b/*"])
def test_intermediates_are_written_as_they_are_read(text):
    assert str(Intermediates.parse(text)) == text
