"""How column lineage is represented: the operator's argument and the options, up to the event."""

from __future__ import annotations

import pytest
from airflow.providers.openlineage.utils.utils import OpenLineageRedactor
from airflow.sdk._shared.secrets_masker import _secrets_masker
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event.openlineage import parts
from airflow_provider_sparklineage.event.pipeline import event_of, merged_event, ready_to_send
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Adaptation, Representation
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture.bundle import load

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def run(spark_submit, execute):
    """Run a task whose job is the recorded staging chain, and give what its event would have."""
    spark_submit.does("staging_chain")

    def run(**arguments):
        task = SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", observe=False, **arguments
        )
        execute(task)
        return task.get_openlineage_facets_on_complete(None)

    return run


def influences(lineage):
    """Give the dataset-level entries of all outputs."""
    facets = [d.facets["columnLineage"] for d in lineage.outputs]
    return [entry for facet in facets for entry in facet.dataset or ()]


def test_filters_and_joins_are_in_the_event_once_by_default(run):
    lineage = run()
    assert influences(lineage)
    assert "lineage" not in lineage.job_facets


def test_the_legacy_form_can_be_asked_for(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLUMN_LINEAGE", "legacy")
    assert not influences(run())


def test_intermediates_can_be_left_out(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__INTERMEDIATE_DATASETS", "drop: /lake/staging/*")
    assert [d.name for d in run().outputs] == ["/lake/revenue"]


def test_a_replay_gives_the_same(run, monkeypatch, captures):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__INTERMEDIATE_DATASETS", "drop")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__EMIT_LINEAGE_FACET", "True")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLUMN_LINEAGE", "legacy")
    lineage = run()
    [manifest] = captures()
    bundle = load(manifest.parent)
    replayed = ready_to_send(
        merged_event(bundle, task_lineage(bundle)), Adaptation(backend="marquez")
    )
    assert replayed["outputs"] == [Serde.to_dict(d) for d in lineage.outputs]
    [entry] = replayed["job"]["facets"]["lineage"]["entries"]
    assert entry == Serde.to_dict(lineage.job_facets["lineage"])["entries"][0]
    assert {i["name"] for i in entry["inputs"]} == {d.name for d in lineage.inputs}


def test_airflow_redacts_no_column_for_its_name():
    orders, users = DatasetName("s3://lake", "orders"), DatasetName("s3://lake", "users")
    edges = {Column(orders, "password"): (Transformation("DIRECT", "IDENTITY", "password"),)}
    columns = ColumnLineage({"password": edges, "token_count": edges}, edges)
    output = LineageDataset(users, columns=columns, sources=frozenset({orders}))
    lineage = TaskLineage(Outcome.COMPLETE, (), (output,))
    event = event_of(lineage, representation=Representation(explicit_lineage=True))
    facets = parts(event).job_facets
    redacted = OpenLineageRedactor.from_masker(_secrets_masker()).redact(facets, max_depth=20)
    assert Serde.to_dict(redacted["lineage"]) == event["job"]["facets"]["lineage"]
