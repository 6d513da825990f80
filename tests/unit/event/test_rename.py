"""Names of a backend: given to datasets and to all that points at them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sparklineage.event import facets
from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.event.rename import with_backend_names
from airflow_provider_sparklineage.lineage.columns import Column, ColumnLineage, Transformation
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.spark.capture.events import ReadReport

MARQUEZ = BACKENDS["marquez"]
TWO_HOSTS = DatasetName("kafka://a:1,b:2", "orders")
HELD = DatasetName("kafka://a:1_b:2", "orders")
OUT = DatasetName("file", "/out")
NAMELESS = DatasetName("file", "")

SUM = (Transformation("DIRECT", "AGGREGATION", "sum(x)\x00"),)
LINEAGE = TaskLineage(
    Outcome.COMPLETE,
    (LineageDataset(NAMELESS), LineageDataset(TWO_HOSTS)),
    (
        LineageDataset(
            OUT,
            columns=ColumnLineage(
                {"x": {Column(TWO_HOSTS, "x"): SUM, Column(NAMELESS, "y"): SUM}},
                {Column(TWO_HOSTS, "dt\x00"): SUM},
            ),
            sources=frozenset({TWO_HOSTS, NAMELESS}),
        ),
    ),
)


def marquez(lineage):
    return with_backend_names(lineage, MARQUEZ.identity, MARQUEZ.text)


def test_a_name_changes_wherever_it_is_mentioned():
    made = marquez(LINEAGE)
    assert [d.name for d in made.inputs] == [HELD]
    [out] = made.outputs
    told = (Transformation("DIRECT", "AGGREGATION", "sum(x)"),)
    assert out.columns == ColumnLineage(
        {"x": {Column(HELD, "x"): told}}, {Column(HELD, "dt"): told}
    )
    assert out.sources == {HELD}


def test_what_is_called_otherwise_or_left_out_is_said():
    said = {d.dataset: d.message for d in marquez(LINEAGE).degradations}
    assert said == {
        NAMELESS: "The lineage backend cannot hold a dataset of the namespace 'file' and the name "
        "''. It was left out.",
        TWO_HOSTS: "The lineage backend cannot hold a dataset of the namespace 'kafka://a:1,b:2' "
        "and the name 'orders'. It is called kafka://a:1_b:2/orders.",
    }


@pytest.mark.parametrize("held_first", [True, False])
def test_of_two_that_would_be_one_the_one_that_had_the_name_keeps_it(held_first):
    datasets = (LineageDataset(HELD), LineageDataset(TWO_HOSTS))
    lineage = TaskLineage(Outcome.COMPLETE, datasets if held_first else datasets[::-1])
    made = marquez(lineage)
    assert made.inputs == (LineageDataset(HELD),)
    [note] = made.degradations
    assert note.dataset == TWO_HOSTS
    assert note.message.endswith("left out, for kafka://a:1_b:2/orders is another dataset.")


def test_lineage_that_can_be_held_stays_the_same_object(recorded):
    lineage = recorded("staging_chain").lineage
    assert marquez(lineage) is lineage
    once = marquez(LINEAGE)
    assert marquez(replace(once)) == once


def test_events_are_changed_for_marquez_only():
    for_marquez = facets.parts(LINEAGE, ReadReport(), Representation(backend="marquez"))
    assert [d.namespace for d in for_marquez.inputs] == [HELD.namespace]
    codes = [d.code for d in for_marquez.run_facets[facets.CAPTURE_KEY].degradations]
    assert codes == ["backend_repaired", "backend_repaired"]
    for_any = facets.parts(LINEAGE, ReadReport(), Representation(backend="generic"))
    assert [(d.namespace, d.name) for d in for_any.inputs] == [NAMELESS, TWO_HOSTS]
    assert for_any.run_facets[facets.CAPTURE_KEY].degradations == []
    assert for_any.outputs[0].facets["columnLineage"].dataset[0].field == "dt\x00"


@pytest.mark.parametrize("case", ["staging_chain", "iceberg_merge", "catalog_tables"])
def test_recorded_lineage_reaches_marquez_whole(recorded, case):
    lineage = recorded(case).lineage
    for_any = facets.parts(lineage, ReadReport())
    for_marquez = facets.parts(lineage, ReadReport(), Representation(backend="marquez"))
    assert for_marquez == for_any
