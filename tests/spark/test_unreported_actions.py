"""What the listener leaves out of a real job, and the observer saw: it is lineage all the same.

The job fails in the end, so this is also what the event of a failed try has.
"""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests.openlineage_spec import validate_event
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]

ALL = None
"""Of a dataset that is not partitioned."""


@pytest.fixture(scope="module")
def bundle(spark, orders_lake, tmp_path_factory):
    """Run the application once, listened to and observed."""
    work = tmp_path_factory.mktemp("unreported")
    submissions.submit_on(orders_lake, spark, "unreported_actions.py", work, ends=1)
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    manifest = Manifest(first["run"]["runId"], injected=("py_files",), outcome="FAIL")
    return CaptureBundle(work, manifest)


@pytest.fixture(scope="module")
def lineage(bundle):
    return task_lineage(bundle)


def short(name):
    return name.rpartition("/lake/")[2]


@pytest.mark.parametrize(
    ("name", "partitions"),
    [
        pytest.param("rates", {"month=2024-05"}, id="count"),
        pytest.param("customers", ALL, id="collect"),
        pytest.param("ledger_path", ALL, id="foreach"),
        pytest.param("ledger_table", ALL, id="show"),
        pytest.param("sales_option", {"dt=2024-05-03"}, id="cache"),
        pytest.param("sales_session", {"dt=2024-05-04"}, id="table of the catalog"),
        pytest.param(
            "sales_static", {"dt=2024-05-03", "dt=2024-05-04"}, id="collected and overwritten"
        ),
        pytest.param("profiles", ALL, id="broadcast"),
        pytest.param("sales_append", {"dt=2024-05-03", "dt=2024-05-04"}, id="scalar subquery"),
    ],
)
def test_what_was_read_is_an_input_with_its_partitions(lineage, name, partitions):
    [found] = [d for d in lineage.inputs if short(d.name.name) == name]
    assert (found.subset and set(map(str, found.subset.partitions))) == partitions


def test_nothing_else_is_an_input(lineage):
    names = "rates customers ledger_path ledger_table sales_option sales_session sales_static"
    assert {short(d.name.name) for d in lineage.inputs} == {
        *names.split(),
        *("orders", "profiles", "sales_append"),
    }


def test_a_query_that_fails_has_read(lineage):
    [orders] = [d for d in lineage.inputs if short(d.name.name) == "orders"]
    assert {"dt=2024-05-06", "dt=2024-05-07"} <= set(map(str, orders.subset.partitions))
    [failed] = [a for a in lineage.application.actions if a.state is ActionState.FAILED]
    assert failed.witness is Witness.OBSERVER
    assert [short(d.name.name) for d in failed.inputs] == ["orders"]


def test_the_event_is_valid_and_names_whose_word_each_dataset_is(bundle, lineage):
    event = merged_event(bundle, lineage)
    validate_event(event)
    capture = event["run"]["facets"]["sparkLineage_capture"]
    witnesses = {
        (short(d["dataset"]["name"]), d["side"]): d["witness"] for d in capture["datasets"]
    }
    assert witnesses["rates", "read"] == "observer"
    assert witnesses["ledger_path", "read"] == "listener"
    assert witnesses["joined", "write"] == "both"
    assert "observation_untied" not in {d["code"] for d in capture["degradations"]}


def test_each_input_that_was_only_observed_has_what_a_backend_needs(lineage):
    inputs = [d for d in lineage.inputs if d.witness is Witness.OBSERVER]
    assert inputs
    assert {short(d.name.name) for d in inputs if "dataSource" not in d.facets} == set()
