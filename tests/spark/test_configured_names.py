"""Names under the user's own configuration of the listener: ours are those of the real one."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.event.from_bundle import task_lineage
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import lines

pytestmark = pytest.mark.spark

CONF = "spark.openlineage.dataset"
TRIMMER = "io.openlineage.client.dataset.partition.trimmer"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            {f"{CONF}.disabledTrimmers": f"{TRIMMER}.KeyValueTrimmer"}, id="partitions not trimmed"
        ),
        pytest.param({f"{CONF}.removePath.pattern": "(?<remove>/v[0-9]+)"}, id="folders removed"),
    ],
)
def bundle(request, spark, tmp_path_factory):
    """Run the application once for each configuration, listened to and observed."""
    work = tmp_path_factory.mktemp("names")
    application = record_events.APPLICATIONS / "configured_names.py"
    submissions.submit(spark, application, work, listener=spark.listener, conf=request.param)
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    manifest = Manifest(first["run"]["runId"], naming=request.param, outcome="COMPLETE")
    return CaptureBundle(work, manifest)


def names(bundle, side):
    return {d["name"] for event in lines(bundle.events_path) for d in event[side]}


def test_every_folder_that_was_read_or_written_has_the_listeners_name(bundle):
    locate = bundle.manifest.locator.locate
    records = lines(bundle.observations_path)
    read = {root for record in records for r in record.get("reads", ()) for root in r["roots"]}
    written = {w["path"] for record in records for w in record.get("writes", ())}
    assert (len(read), len(written)) == (6, 11)
    assert {locate(path).dataset.name for path in read} == names(bundle, "inputs")
    assert {locate(path).dataset.name for path in written} == names(bundle, "outputs")


def test_everything_that_was_observed_is_bound(bundle):
    lineage = task_lineage(bundle)
    assert DegradationCode.OBSERVATION_UNTIED not in [d.code for d in lineage.degradations]
    unknown = {d.name.name.rpartition("/")[2] for d in lineage.inputs if not d.observed}
    assert unknown <= {"nested"}  # which partition a date is, only a rule can decide


def test_the_columns_of_python_functions_have_sources(bundle):
    [python] = [d for d in task_lineage(bundle).outputs if d.name.name.endswith("/python")]
    assert {c.field for c in python.columns.fields["p"]} == {"price"}
