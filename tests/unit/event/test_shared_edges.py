"""Edges that many columns share are one object: the event is as if each column had its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_provider_sparklineage.event import column_lineage
from airflow_provider_sparklineage.event.column_lineage import column_lineage_facet
from airflow_provider_sparklineage.event.pipeline import event_of, events_of
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage, in_legacy_form
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Adaptation, Representation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER

SOURCE, TARGET = DatasetName("file", "/source"), DatasetName("file", "/target")

TRANSFORMATIONS = st.sampled_from(
    [
        Transformation(),
        Transformation("DIRECT", "IDENTITY"),
        Transformation("DIRECT", "TRANSFORMATION", "concat(a, 'x') AS b"),
        Transformation("DIRECT", None, "", masking=True),
        Transformation("INDIRECT", "CONDITIONAL", "CASE WHEN a > 1 THEN b END"),
        Transformation("INDIRECT", "SORT"),
    ]
)
LISTS = st.lists(TRANSFORMATIONS, min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def shared(draw):
    """Give column lineage in which columns share edges, and edges lists."""
    lists = st.sampled_from(draw(st.lists(LISTS, min_size=1, max_size=3)))
    sources = st.builds(Column, st.just(SOURCE), st.sampled_from(["a", "b", "c", "a\x00"]))
    edges = st.sampled_from(
        draw(st.lists(st.dictionaries(sources, lists, min_size=1), min_size=1, max_size=3))
    )
    names = st.sampled_from([f"c{n}" for n in range(8)])
    return ColumnLineage(draw(st.dictionaries(names, edges, min_size=1)), draw(edges))


def with_edges_of_its_own(lineage):
    def own(edges):
        return {column: (*ts,) for column, ts in edges.items()}

    fields = {name: own(edges) for name, edges in lineage.fields.items()}
    return ColumnLineage(fields, own(lineage.dataset))


def of(lineage):
    output = LineageDataset(TARGET, columns=lineage, sources=frozenset({SOURCE}))
    return TaskLineage(Outcome.COMPLETE, (LineageDataset(SOURCE),), (output,))


@settings(deadline=None)
@given(shared(), st.integers(1500, 6000), st.booleans(), st.sampled_from(["generic", "marquez"]))
def test_an_event_is_the_same(lineage, max_bytes, redacts, backend):
    representation = Representation(
        explicit_lineage=True, max_event_bytes=max_bytes, redact_literals=redacts
    )
    how = Adaptation(backend, max_event_bytes=max_bytes)
    one, own = (
        events_of(of(given_lineage), how, ReadReport(), representation, header=HEADER)
        for given_lineage in (lineage, with_edges_of_its_own(lineage))
    )
    assert one == own


@given(shared())
def test_the_legacy_form_is_the_same(lineage):
    one, own = of(lineage).outputs, of(with_edges_of_its_own(lineage)).outputs
    assert in_legacy_form(one) == in_legacy_form(own)


@given(shared(), st.integers(0, 3000))
def test_what_has_no_place_in_an_event_is_foreseen_alike(lineage, max_bytes):
    cheap, column_lineage.CHEAP = column_lineage.CHEAP, 0
    try:
        assert column_lineage.bounded(of(lineage), max_bytes, "x") == column_lineage.bounded(
            of(with_edges_of_its_own(lineage)), max_bytes, "x"
        )
    finally:
        column_lineage.CHEAP = cheap


@pytest.fixture
def wide():
    made = (Transformation("DIRECT", "TRANSFORMATION", "a + b"),)
    edges = {Column(SOURCE, name): made for name in "ab"}
    return ColumnLineage({"x": edges, "y": edges})


def test_columns_with_one_object_of_edges_have_one_entry(wide):
    fields = column_lineage_facet(wide)["fields"]
    assert fields["x"] is fields["y"]


def test_what_is_left_of_one_entry_is_one(wide):
    lineage = of(replace(wide, fields={f"x{n}": wide.fields["x"] for n in range(100)}))
    representation = Representation(max_event_bytes=40_000)
    event = event_of(lineage, ReadReport(), representation, header=HEADER)
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    [without] = {id(entry): entry for entry in fields.values()}.values()
    assert "transformationDescription" not in without
    [detail] = event["run"]["facets"]["sparkLineage_capture"]["degradations"]
    assert detail["message"].startswith("300 descriptions")
