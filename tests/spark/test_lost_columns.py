"""What the listener loses of columns, seen by the observer: both on one real application.

It is recorded with every supported Spark, also with functions of pandas
(``tests/golden/lineage/observed/lost_columns.txt``); here it runs on the one that is there.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.openlineage_spec import validate_event
from tests.spark import submissions
from tests.spark.lakes import lines

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCHEMAS = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas"


@pytest.fixture(scope="session")
def work(spark, orders_lake, tmp_path_factory):
    """Run the application once, listened to and observed; give the folder with both files."""
    work = tmp_path_factory.mktemp("lost")
    shutil.copytree(orders_lake, work / "lake")
    application = record_events.APPLICATIONS / "lost_columns.py"
    connectors = [c for c in submissions.available(spark) if c == "iceberg"]
    submissions.submit(spark, application, work, listener=spark.listener, connectors=connectors)
    return work


@pytest.fixture(scope="session")
def lineage(work):
    """Merge what was collected of it."""
    return task_lineage(CaptureBundle(work, _manifest(work)))


def _manifest(work):
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    return Manifest(application_run_id=first["run"]["runId"], injected=("py_files",))


def columns(lineage, name):
    """Give {column: {source: [type:subtype]}} of an output; only DIRECT edges."""
    [output] = [d for d in lineage.outputs if d.name.name.endswith(f"/lake/{name}")]
    return {
        column: {
            f"{c.dataset.name.rpartition('/lake/')[2]}.{c.field}": [t.subtype for t in found]
            for c, found in edges.items()
            if any(t.type == "DIRECT" for t in found)
        }
        for column, edges in output.columns.fields.items()
    }


def gaps(lineage, name):
    return {
        d.column: d.message.rpartition("; ")[2] if d.column else d.message.rpartition(": ")[2]
        for d in lineage.degradations
        if d.dataset is not None and d.dataset.name.endswith(f"/lake/{name}")
    }


IDENTITY, MADE, SUM = ["IDENTITY"], ["TRANSFORMATION"], ["AGGREGATION"]
SCORED = {"order_id": {"orders.order_id": IDENTITY}, "score": {"orders.amount": MADE}}
UNITED = {
    column: {f"orders.{column}": IDENTITY} for column in ("order_id", "customer_id", "region", "dt")
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", SCORED),
        ("inside", {"shifted": {"orders.amount": MADE, "orders.customer_id": MADE}}),
        (
            "nested",
            {
                "a b#1": {"orders.amount": MADE, "orders.customer_id": MADE},
                "name": {"customers.name": IDENTITY},
            },
        ),
        ("summed", {"region": {"orders.region": IDENTITY}, "total": {"orders.amount": SUM}}),
        ("chained", {"twice": {"orders.amount": MADE}}),
        ("united", {**UNITED, "amount": {"orders.amount": ["IDENTITY", "TRANSFORMATION"]}}),
        ("cached", {"region": {"orders.region": IDENTITY}, "kept": {"orders.amount": MADE}}),
        ("sql_scores", SCORED),
        ("iceberg/db/made", SCORED),
        ("iceberg/db/filled", SCORED),
    ],
)
def test_python_columns_have_the_columns_that_the_functions_were_given(
    spark, lineage, name, expected
):
    if name.startswith("iceberg/"):
        submissions.require(spark, "iceberg")
    assert columns(lineage, name) == expected
    assert gaps(lineage, name) == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rollup", {"n": "it is a count of rows."}),
        (
            "literals",
            {
                "fixed": "it is a literal.",
                "random": "it is a function of no column, such as rand() or row_number().",
            },
        ),
        ("created", {None: "it is made of rows of an RDD or of createDataFrame."}),
        ("numbers", {None: "it is made of numbers of range()."}),
    ],
)
def test_columns_of_no_column_are_reported_with_the_reason(lineage, name, expected):
    assert gaps(lineage, name) == expected


def test_a_rollups_grouping_columns_have_their_sources(lineage):
    assert columns(lineage, "rollup") == {
        "region": {"orders.region": IDENTITY},
        "amount": {"orders.amount": SUM},
    }


def test_descriptions_name_the_call(lineage):
    [output] = [d for d in lineage.outputs if d.name.name.endswith("/lake/inside")]
    shifted = output.columns.fields["shifted"]
    descriptions = {t.description for edges in shifted.values() for t in edges}
    assert descriptions == {"(score(amount) + CAST(customer_id AS double))"}


def test_the_observer_follows_its_schema_and_had_no_trouble(work):
    schema = json.loads((SCHEMAS / "observation.json").read_text())
    for record in lines(work / "observations.ndjson"):
        jsonschema.Draft202012Validator(schema).validate(record)
        assert not {"error", "errors", "cut"} & record.keys()


def test_the_merged_event_is_valid_openlineage(work, lineage):
    validate_event(merged_event(CaptureBundle(work, _manifest(work)), lineage))
