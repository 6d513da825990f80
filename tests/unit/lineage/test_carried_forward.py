"""The last known lineage: what is kept of a run, and where it stands in for another's."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.stored import last_run
from airflow_provider_sparklineage.lineage import declared_and_last_known
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.declared_and_last_known import with_last_run
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest


def name(path):
    return DatasetName("file", path)


def raw(value):
    return msgspec.Raw(msgspec.json.encode(value))


SCHEMA = {"schema": raw({"fields": [{"name": "x"}]})}
TABLE = {"symlinks": raw({"identifiers": [{"namespace": "hive", "name": "t", "type": "TABLE"}]})}
LAST = LastRun(
    "run-1",
    (LastRunDataset("file", "/in", SCHEMA),),
    (LastRunDataset("file", "/out", SCHEMA | TABLE),),
)
IN, OUT = LineageDataset(name("/in"), SCHEMA), LineageDataset(name("/out"), SCHEMA | TABLE)


def completed(lineage, *, declared=(), versions_by_schema=True):
    declared = [name(path) for path in declared]
    declared = declared, declared
    return with_last_run(lineage, LAST, *declared, versions_by_schema=versions_by_schema) or lineage


def test_a_run_is_known_by_what_identifies_its_datasets(recorded):
    event = recorded("staging_chain").event
    found = last_run(event)
    assert found.run_id == event["run"]["runId"]
    assert [d.name for d in found.inputs] == [d["name"] for d in event["inputs"]]
    revenue = next(d for d in found.outputs if d.name == "/lake/revenue")
    assert set(revenue.facets) == {"dataSource", "lifecycleStateChange", "schema"}
    dataset = next(d for d in event["outputs"] if d["name"] == "/lake/revenue")
    assert msgspec.json.decode(revenue.facets["schema"]) == dataset["facets"]["schema"]


def test_what_is_known_survives_the_manifest(recorded):
    found = last_run(recorded("staging_chain").event)
    again = msgspec.json.decode(msgspec.json.encode(found), type=LastRun)
    assert msgspec.json.encode(again) == msgspec.json.encode(found)
    assert again == found


def test_declared_datasets_are_added_to_known_ones():
    both = declared_and_last_known.last_and_declared(LAST.inputs, [name("/in"), name("/extra")])
    assert both == (LineageDataset(name("/extra"), witness=Witness.DECLARED), IN)


def test_a_table_that_is_declared_is_the_dataset_with_its_symlink():
    assert declared_and_last_known.last_and_declared(LAST.outputs, [DatasetName("hive", "t")]) == (
        OUT,
    )


DECLARED = LineageDataset(name("/declared"))
DONE = LineageDataset(name("/done"), SCHEMA)


@pytest.mark.parametrize(
    ("known", "inputs", "outputs", "message"),
    [
        pytest.param((), (IN,), (OUT,), "no inputs and no outputs", id="nothing was done"),
        pytest.param(
            (DECLARED,),
            (DECLARED, IN),
            (DECLARED, OUT),
            "no inputs and no outputs",
            id="declared only",
        ),
        pytest.param((DONE,), (DONE,), (DONE,), None, id="something was done"),
    ],
)
def test_sides_of_a_failed_try_of_which_nothing_is_known(known, inputs, outputs, message):
    lineage = TaskLineage(Outcome.FAIL, known, known)
    made = completed(lineage, declared=["/declared"])
    assert (made.inputs, made.outputs) == (inputs, outputs)
    assert [str(d.code) for d in made.degradations] == (["last_known"] if message else [])
    if message:
        assert message in made.degradations[0].message
        assert "run-1" in made.degradations[0].message


def test_outputs_of_failed_actions_stay_bare_names():
    bare = LineageDataset(name("/out"))
    made = completed(TaskLineage(Outcome.FAIL, (DONE,), (bare,)))
    assert made.outputs == (bare,)
    assert made.degradations == ()


def test_expectations_of_declared_datasets_are_kept():
    table = LineageDataset(DatasetName("hive", "t"), locations=frozenset({"x"}))
    failed = TaskLineage(Outcome.FAIL, (), (table,))
    [out] = with_last_run(failed, LAST, [], [table.name], versions_by_schema=True).outputs
    assert out == replace(OUT, locations=frozenset({"x"}))


def test_a_declared_output_that_was_not_written_has_the_schema_of_start():
    lineage = TaskLineage(Outcome.COMPLETE, (IN,), (LineageDataset(name("/out")), DONE))
    assert completed(lineage, declared=["/out"]).outputs == (OUT, DONE)
    assert completed(lineage, declared=["/out"], versions_by_schema=False) is lineage


def test_a_successful_try_that_read_nothing_has_no_inputs():
    lineage = TaskLineage(Outcome.COMPLETE, (), (DONE,))
    assert completed(lineage) is lineage


def test_a_replay_of_the_bundle_gives_the_same():
    manifest = Manifest("00000000-0000-7000-8000-000000000000", outcome="FAIL", last_known=LAST)
    made = task_lineage(CaptureBundle(None, manifest))
    assert (made.inputs, made.outputs) == ((IN,), (OUT,))
