"""Names under the user's own configuration of the listener: ours are those of the real one."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import lines

pytestmark = [pytest.mark.spark, pytest.mark.long]

CONF = "spark.openlineage.dataset"
TRIMMER = "io.openlineage.client.dataset.partition.trimmer"
OWN_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = OWN %p %c{1}: %m%n
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            {f"{CONF}.disabledTrimmers": f"{TRIMMER}.KeyValueTrimmer"}, id="partitions not trimmed"
        ),
        pytest.param({f"{CONF}.removePath.pattern": "(?<remove>/v[0-9]+)"}, id="folders removed"),
    ],
)
def naming(request):
    """Give each configuration of names."""
    return request.param


@pytest.fixture(scope="module")
def has_own_log(naming):
    """Whether the user has settings of the driver's log: in one of two applications."""
    return f"{CONF}.removePath.pattern" in naming


@pytest.fixture(scope="module")
def bundle(naming, has_own_log, spark, tmp_path_factory):
    """Run the application once for each configuration, listened to and observed."""
    work = tmp_path_factory.mktemp("names")
    application = record_events.APPLICATIONS / "configured_names.py"
    conf = dict(naming)
    if has_own_log:
        (work / "log4j2.properties").write_text(OWN_LOG)
        options = f"-Dlog4j2.configurationFile={work}/log4j2.properties"
        conf["spark.driver.extraJavaOptions"] = options
    submissions.submit(spark, application, work, listener=spark.listener, conf=conf)
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    manifest = Manifest(first["run"]["runId"], naming=naming, outcome="COMPLETE")
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


def test_the_log_has_no_message_that_reads_like_a_fault_unless_its_settings_are_the_users(
    bundle, has_own_log
):
    log = (bundle.path / "scratch" / "spark.log").read_text()
    assert ("An illegal reflective access operation will occur" in log) == has_own_log
    assert "SparkOpenLineageExtensionVisitorWrapper: No 'apply' method found" in log
    assert ("OWN WARN" in log) == has_own_log
