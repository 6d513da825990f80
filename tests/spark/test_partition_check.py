"""Expected against observed on real tables of every kind: one application, many expectations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_provider_sparklineage.expectations import (
    DatasetSubset,
    PartitionRange,
    Side,
    declared,
)
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.spark import submissions

pytestmark = pytest.mark.spark

KINDS = ("path", "table", "delta", "iceberg")
SIDES = {Side.READ: "orders", Side.WRITE: "revenue"}


@pytest.fixture(scope="session")
def checked(spark, prepared):
    """Run the application once; give the check of a dataset for a declaration."""
    connectors = submissions.available(spark)
    work = prepared  # not a copy: Iceberg's metadata have absolute paths
    application = record_events.APPLICATIONS / "partition_checks.py"
    submissions.submit(spark, application, work, listener=spark.listener, connectors=connectors)
    with (work / "events.ndjson").open() as events:
        run_id = json.loads(events.readline())["run"]["runId"]

    def check(side, subset, name):
        if subset.dataset.startswith("/"):
            subset = replace(subset, dataset=f"{work}/lake{subset.dataset}")
        locator, named = DEFAULT_LOCATOR, lambda _: None
        expectation = declared.from_declaration(side, subset, [], locator, named)
        manifest = Manifest(
            application_run_id=run_id, injected=("py_files",), expectations=(expectation,)
        )
        lineage = task_lineage(CaptureBundle(work, manifest))
        datasets = lineage.inputs if side is Side.READ else lineage.outputs
        [dataset] = [d for d in datasets if d.name.name.endswith(f"/{name}")]
        return dataset

    return check


@pytest.fixture(params=KINDS)
def kind(request, spark):
    """Give each kind of table."""
    submissions.require(spark, request.param if request.param in ("delta", "iceberg") else None)
    return request.param


def identity(kind, name):
    """Name a dataset as an author would: tables by their identifiers."""
    tables = {"table": f"spark_catalog.default.{name}", "iceberg": f"lakehouse.db.{name}"}
    return tables.get(kind, f"/{name}")


TODAY = "2024-05-06"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("days", "status"),
    [
        pytest.param([TODAY], "matched", id="the day"),
        pytest.param(["20240506"], "matched", id="in another format"),
        pytest.param(["2024-05-05"], "unexpected", id="another day"),
        pytest.param([TODAY, "2024-05-07"], "missing", id="two days"),
        pytest.param([None], "unexpected", id="null"),
        pytest.param(PartitionRange("dt", TODAY, "2024-05-07"), "matched", id="a range"),
        pytest.param(PartitionRange("dt", "2024-05-01", TODAY), "unexpected", id="a range before"),
        pytest.param(PartitionRange("dt", TODAY, "2024-05-09"), "missing", id="a longer range"),
    ],
)
@pytest.mark.parametrize("side", SIDES)
def test_partitions_of_each_kind_of_table(checked, kind, side, days, status):
    name = f"{kind}_{SIDES[side]}"
    label = "ts" if kind == "iceberg" else "dt"
    dataset = checked(side, DatasetSubset(identity(kind, name), {label: days}), name)
    assert dataset.observed
    assert dataset.subset.exact
    assert dataset.check.status == status


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("{} >= '2024-05-01'", "matched"),
        ("{} < '2024-05-01'", "unexpected"),
        ("{} >= '2024-05-01' and amount > 0", "unobserved"),
    ],
)
def test_predicates_on_each_kind_of_table(checked, kind, where, status):
    name = f"{kind}_revenue"
    text = where.format("ts" if kind == "iceberg" else "dt")
    dataset = checked(Side.WRITE, DatasetSubset(identity(kind, name), where=text), name)
    assert dataset.check.status == status


def test_without_a_declaration_nothing_is_checked(checked, kind):
    subset = DatasetSubset("another.t", {"dt": TODAY})
    name = f"{kind}_revenue"
    assert checked(Side.WRITE, subset, name).check.status == "undeclared"


def test_a_table_of_another_catalog_is_another_table(spark, checked):
    submissions.require(spark, "iceberg")
    subset = DatasetSubset("spark_catalog.db.iceberg_revenue", {"ts": TODAY})
    assert checked(Side.WRITE, subset, "iceberg_revenue").check.status == "undeclared"
    subset = DatasetSubset("db.iceberg_revenue", {"ts": TODAY})
    assert checked(Side.WRITE, subset, "iceberg_revenue").check.status == "matched"


@pytest.mark.parametrize("month", ["5", "05", 5])
def test_integers_have_no_zeros(checked, month):
    dataset = checked(Side.READ, DatasetSubset("/path_months", {"month": month}), "path_months")
    assert dataset.check.status == "matched"
