"""Columns are described by Spark's plan, because the listener's descriptions have no limit."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.terms import EVENTS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def work(spark, orders_lake, tmp_path_factory):
    """Run the application once, listened to and observed."""
    work = tmp_path_factory.mktemp("described")
    submissions.submit_on(orders_lake, spark, "described_columns.py", work)
    return work


@pytest.fixture(scope="module")
def lineage(work):
    first = json.loads((work / EVENTS).read_text().splitlines()[0])
    manifest = Manifest(first["run"]["runId"], injected=("py_files",), outcome="COMPLETE")
    return task_lineage(CaptureBundle(work, manifest))


def columns(lineage, name):
    [output] = [d for d in lineage.outputs if d.name.name.endswith(f"/lake/{name}")]
    return output.columns


def texts(edges):
    return {
        (column.field, t.subtype, t.description)
        for column, transformations in edges.items()
        for t in transformations
    }


def test_a_column_that_is_changed_in_many_steps_takes_no_memory_of_the_driver(work):
    """With the listener's descriptions the driver's log had OutOfMemoryErrors."""
    assert "OutOfMemoryError" not in (work / "scratch" / "spark.log").read_text()
    assert (work / EVENTS).stat().st_size < 1_000_000


def test_a_column_that_is_changed_in_many_steps_has_its_source_and_a_short_text(lineage):
    [(source, transformations)] = columns(lineage, "capped").fields["amount"].items()
    assert source.field == "amount"
    assert {t.subtype for t in transformations} == {"TRANSFORMATION", "CONDITIONAL"}
    assert all(0 < len(t.description) <= 200 for t in transformations)


def test_a_calculated_column_and_its_rows_have_texts_of_the_plan(lineage):
    doubled = columns(lineage, "doubled")
    assert texts(doubled.fields["twice"]) == {("amount", "TRANSFORMATION", "(amount * 2)")}
    assert ("amount", "FILTER", "(amount > 0)") in texts(doubled.dataset)


@pytest.mark.parametrize("name", ["copied", "doubled"])
def test_a_partition_column_that_is_copied_is_no_expression(lineage, name):
    """Spark makes nulls of its empty strings, and the listener reports that as a TRANSFORMATION."""
    assert texts(columns(lineage, name).fields["region"]) == {("region", "IDENTITY", "")}
