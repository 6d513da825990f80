"""Names of a backend: given to datasets and to all that points at them."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, name_of
from airflow_provider_sparklineage.event.pipeline import event_of, events_of
from airflow_provider_sparklineage.event.steps.rename import renamed
from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Adaptation, Representation
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

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


def rename(event, backend=MARQUEZ):
    return renamed(event, backend)


def made_of(lineage, **representation):
    return made(lineage, ReadReport(), Representation(**representation))


def degradations(event):
    return event["run"]["facets"][CAPTURE_KEY]["degradations"]


def test_a_name_changes_wherever_it_is_mentioned():
    event = rename(made_of(LINEAGE, explicit_lineage=True))
    assert [name_of(d) for d in event["inputs"]] == [HELD]
    [out] = event["outputs"]
    transformation = {
        "type": "DIRECT",
        "subtype": "AGGREGATION",
        "description": "sum(x)",
        "masking": False,
    }
    source = {**HELD._asdict(), "field": "x", "transformations": [transformation]}
    columns = out["facets"]["columnLineage"]
    assert columns["fields"] == {
        "x": {
            "inputFields": [source],
            "transformationDescription": "sum(x)",
            "transformationType": "DIRECT:AGGREGATION",
        }
    }
    assert columns["dataset"] == [{**source, "field": "dt"}]
    [entry] = event["job"]["facets"]["lineage"]["entries"]
    assert [(name_of(i), i.get("field")) for i in entry["inputs"]] == [(HELD, None), (HELD, "dt")]
    assert [name_of(i) for i in entry["fields"]["x"]["inputs"]] == [HELD]


def test_the_partition_check_goes_by_the_new_names():
    before = DatasetName("kafka://a:1,b:2", "lake/orders\x00")
    expected = Expected(Kind.PATH)
    lineage = TaskLineage(
        Outcome.COMPLETE,
        tuple(
            LineageDataset(name, expected=expected, witness=Witness.BOTH)
            for name in (before, NAMELESS)
        ),
    )
    check = rename(made_of(lineage))["run"]["facets"]["sparkLineage_partitionCheck"]
    assert check["summary"] == "read orders partitions not known"
    [entry] = check["reads"]
    assert entry["dataset"] == {"namespace": "kafka://a:1_b:2", "name": "lake/orders"}
    assert entry["summary"] == "orders partitions not known"


def test_who_saw_a_dataset_goes_by_the_new_names():
    seen = {"witness": Witness.BOTH}
    inputs = (LineageDataset(NAMELESS, **seen), LineageDataset(TWO_HOSTS, **seen))
    lineage = TaskLineage(Outcome.COMPLETE, inputs, (LineageDataset(OUT, **seen),))
    datasets = rename(made_of(lineage))["run"]["facets"][CAPTURE_KEY]["datasets"]
    assert [(name_of(e["dataset"]), e["side"]) for e in datasets] == [
        (OUT, "write"),
        (HELD, "read"),
    ]


def test_without_datasets_there_is_no_partition_check():
    lineage = TaskLineage(
        Outcome.COMPLETE, (LineageDataset(NAMELESS, expected=Expected(Kind.PATH)),)
    )
    event = made_of(lineage)
    assert "sparkLineage_partitionCheck" in event["run"]["facets"]
    assert [*rename(event)["run"]["facets"]] == [CAPTURE_KEY]


def test_columns_that_become_one_have_the_sources_of_both():
    other = (Transformation("INDIRECT", "FILTER", "y > 0"),)
    columns = ColumnLineage(
        {
            "a": {Column(OUT, "x"): SUM},
            "a\x00": {Column(OUT, "x"): (*SUM, *other), Column(OUT, "y\x00"): other},
        }
    )
    lineage = TaskLineage(Outcome.COMPLETE, (), (LineageDataset(OUT, columns=columns),))
    [output] = rename(made_of(lineage))["outputs"]
    [(name, field)] = output["facets"]["columnLineage"]["fields"].items()
    assert name == "a"
    assert [
        (source["field"], [t["type"] for t in source["transformations"]])
        for source in field["inputFields"]
    ] == [("x", ["DIRECT", "INDIRECT"]), ("y", ["INDIRECT"])]


def test_what_is_called_otherwise_or_left_out_is_reported():
    found = {name_of(d["dataset"]): d["message"] for d in degradations(rename(made_of(LINEAGE)))}
    assert found == {
        NAMELESS: "The lineage backend cannot hold a dataset of the namespace 'file' and the name "
        "''. It was left out.",
        TWO_HOSTS: "The lineage backend cannot hold a dataset of the namespace 'kafka://a:1,b:2' "
        "and the name 'orders'. It is called kafka://a:1_b:2/orders.",
    }


@pytest.mark.parametrize("held_first", [True, False])
def test_of_two_that_would_be_one_the_one_that_had_the_name_keeps_it(held_first):
    datasets = (LineageDataset(HELD), LineageDataset(TWO_HOSTS))
    lineage = TaskLineage(Outcome.COMPLETE, datasets if held_first else datasets[::-1])
    event = rename(made_of(lineage))
    assert [name_of(d) for d in event["inputs"]] == [HELD]
    [note] = degradations(event)
    assert name_of(note["dataset"]) == TWO_HOSTS
    assert note["message"].endswith("left out, for kafka://a:1_b:2/orders is another dataset.")


def test_an_event_that_can_be_held_stays_the_same_object(recorded):
    event = made_of(recorded("staging_chain").lineage)
    assert rename(event) is event
    once = rename(made_of(LINEAGE, explicit_lineage=True))
    assert rename(once) is once


def test_events_are_changed_for_marquez_only():
    for_marquez = events_of(LINEAGE, Adaptation("marquez"), ReadReport()).adapted
    assert [d["namespace"] for d in for_marquez["inputs"]] == [HELD.namespace]
    codes = [d["code"] for d in degradations(for_marquez)]
    assert codes == ["backend_repaired", "backend_repaired"]
    for_any = events_of(LINEAGE, Adaptation("generic"), ReadReport()).adapted
    assert [name_of(d) for d in for_any["inputs"]] == [NAMELESS, TWO_HOSTS]
    assert degradations(for_any) == []
    assert for_any["outputs"][0]["facets"]["columnLineage"]["dataset"][0]["field"] == "dt\x00"


@pytest.mark.parametrize("case", ["staging_chain", "iceberg_merge", "catalog_tables"])
def test_recorded_lineage_reaches_marquez_in_full(recorded, case):
    lineage = recorded(case).lineage
    for_any = event_of(lineage, ReadReport())
    kept, for_marquez = events_of(lineage, Adaptation("marquez"), ReadReport())
    assert for_marquez is kept
    assert for_marquez == for_any
