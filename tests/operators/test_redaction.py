"""Lineage through Airflow's own redactor: nothing eaten, nothing leaked, no time lost."""

from __future__ import annotations

import copy

import pytest

from airflow_provider_sparklineage.event import openlineage
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import Partitions
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

pytestmark = pytest.mark.airflow

ORDERS = DatasetName("s3://lake", "orders")
SECRET = "correct-horse-battery"


@pytest.fixture
def redactor():
    """Airflow's redactor as it is in a task: with the sensitive names, and a secret.

    It is to be called with ``max_depth=20``, as the OpenLineage provider does: by default it looks
    at five levels, and would spare what a real event loses.
    """
    from airflow.providers.openlineage.utils.utils import OpenLineageRedactor
    from airflow.sdk._shared.secrets_masker import DEFAULT_SENSITIVE_FIELDS, _secrets_masker
    from airflow.sdk.log import mask_secret

    masker = _secrets_masker()
    before = copy.copy(masker.__dict__)
    masker.patterns = set(masker.patterns)
    masker.sensitive_variables_fields = [*DEFAULT_SENSITIVE_FIELDS, "token"]
    mask_secret(SECRET)
    yield OpenLineageRedactor.from_masker(masker)
    masker.__dict__.clear()
    masker.__dict__.update(before)


def parts(columns, description="amount", **dataset):
    edges = {Column(ORDERS, "password"): (Transformation(DIRECT, "IDENTITY", description),)}
    output = LineageDataset(
        ORDERS, columns=ColumnLineage(dict.fromkeys(columns, edges), edges), **dataset
    )
    task = TaskLineage(Outcome.COMPLETE, (), (output,))
    return openlineage.parts(event_of(task, ReadReport(), mask=masked))


def test_columns_called_like_secrets_keep_their_lineage(redactor):
    outputs = parts(["password", "token_count", "api_key"]).outputs
    before = copy.deepcopy(outputs)
    assert redactor.redact(outputs, max_depth=20) == before


def test_the_redactor_would_eat_them_if_they_were_dicts(redactor):
    facet = {"fields": {"password": {"inputFields": [{"name": "orders"}]}}}
    redacted = redactor.redact(facet, max_depth=20)
    assert redacted == {"fields": {"password": {"inputFields": [{"name": "***"}]}}}


def test_partitions_of_a_column_called_token_keep_their_values(redactor):
    partitions = frozenset({Partition.from_values([("token", "abc")])})
    outputs = parts(["a"], selected=Selected(Partitions(partitions), partitions)).outputs
    [output] = redactor.redact(outputs, max_depth=20)
    [partition] = output.outputFacets["subset"].outputCondition["partitions"]
    assert partition == {"dimensions": {"token": "abc"}, "identifier": "token=abc"}


def test_the_redactor_does_not_go_through_column_lineage(redactor, mocker):
    visit = mocker.spy(type(redactor), "_redact")
    counts = []
    for number in (1, 10_000):
        outputs = parts([f"c{n}" for n in range(number)]).outputs
        visit.reset_mock()
        redactor.redact(outputs, max_depth=20)
        counts.append(visit.call_count)
    assert counts[0] == counts[1] > 0


def test_secrets_that_airflow_knows_are_masked_where_its_redactor_does_not_look(redactor):
    partitions = frozenset({Partition.from_values([("dt", SECRET)])})
    event = parts(["a"], f"x = '{SECRET}'", selected=Selected(Partitions(partitions), partitions))
    assert SECRET not in str(event)
    [output] = event.outputs
    [source] = output.facets["columnLineage"].fields["a"]["inputFields"]
    assert source["transformations"][0]["description"] == "x = '***'"


def test_an_operators_event_is_masked(redactor, spark_submit, execute, context):
    from airflow.sdk.log import mask_secret

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    def lineage():
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
        execute(task, context)
        return str(task.get_openlineage_facets_on_complete(None))

    spark_submit.does(events="staging_chain")
    assert "dt=2024-05-06" in lineage()
    mask_secret("2024-05-06")
    assert "2024-05-06" not in lineage()
    assert "dt=***" in lineage()
