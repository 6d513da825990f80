"""Streams in a real driver: what each run of one read and wrote, and no more, is in its event."""

from __future__ import annotations

import json
import shutil
import uuid

import jsonschema
import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import Lake, distinct, planned_cases
from tests.spark.test_observer import SCHEMAS

pytestmark = [pytest.mark.spark, pytest.mark.long]

CASES = planned_cases("streams.py")


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Run all cases in one application."""
    work = tmp_path_factory.mktemp("streams")
    application = record_events.APPLICATIONS / "streams.py"
    connectors = [c for c in submissions.available(spark) if c == "delta"]
    submissions.submit(spark, application, work, connectors=connectors)
    return Lake(work, work / "lake")


@pytest.fixture(params=CASES)
def case(request, spark, lake):
    """Give each case."""
    submissions.require(spark, CASES[request.param])
    return lake.cases[request.param]


def test_what_is_read_is_what_was_new(lake, case):
    expected = {folder: distinct(partitions) for folder, partitions in case["reads"].items()}
    assert lake.reads(case) == expected


def test_what_is_written_is_what_the_lake_got(lake, case):
    truth = {folder: distinct(found["written"]) for folder, found in case["writes"].items()}
    written = lake.written(case)
    assert {folder: written.get(folder, []) for folder in truth} == truth
    assert set(written) <= set(truth)


def test_no_batch_reads_all_of_a_table(lake, case):
    """Or a stream that reads the latest commit of a Delta table would have read all of it."""
    if "region" not in str(case["reads"]):
        pytest.skip("nothing partitioned is read")
    reads = [read for record in lake.during(case) for read in record["reads"]]
    bases = {part["base"] for read in reads for part in read["layouts"] if part["dimensions"]}
    assert not bases & {root for read in reads for root in read["roots"]}


def test_a_stream_is_joined_with_all_of_a_table(lake):
    [record] = streamed(lake, "joined_with_what_is_no_stream")
    roots = [root.rpartition("/")[2] for read in record["reads"] for root in read["roots"]]
    assert roots == ["days"]


def test_the_rows_that_arrived_are_those_of_the_partitions_read(lake):
    arrived = json.loads((lake.root.parent / "arrived.json").read_text())
    read = {sink: [] for sink in arrived}
    for case in lake.cases.values():
        for sink in set(case["writes"]) & set(arrived):
            read[sink] += lake.reads(case).get("orders", [])
    assert {s: distinct(p) for s, p in read.items()} == {s: distinct(p) for s, p in arrived.items()}


def test_each_batch_is_a_record(lake):
    """Of five batches each is caught, and the compacted log does not repeat what was before."""
    records = streamed(lake, "five_batches_and_a_compacted_log")
    assert [len(partitions(record["reads"])) for record in records] == [6] * 5
    assert [len(partitions(record["writes"])) for record in records] == [6] * 5
    log = lake.root / "small" / "_spark_metadata"
    assert {path.name for path in log.iterdir() if path.suffix == ".compact"} == {"2.compact"}


def test_a_batch_that_fails_is_reported_as_failed(lake):
    failed = [r.get("failed", False) for r in streamed(lake, "a_batch_that_fails")]
    assert failed == [True]


def test_the_sink_is_the_target_of_a_command(lake):
    [record] = streamed(lake, "a_table")
    command = record["command"]
    assert command["target"]["path"].endswith("/lake/warehouse/kept")
    assert command["target"]["table"] == "spark_catalog.default.kept"
    assert [f["name"] for f in command["schema"]["fields"]] == ["id", "dt", "region"]


def test_nothing_failed_inside_the_observer(lake):
    errors = [r.get("error") or r.get("errors") or r.get("cut") for r in lake.records]
    assert not any(errors)


def test_every_record_follows_the_schema(lake):
    schema = json.loads((SCHEMAS / "observation.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for record in lake.records:
        validator.validate(record)


def streamed(lake, name):
    return [r for r in lake.during(lake.cases[name]) if r["function"] == "stream"]


def partitions(accesses):
    return [p for access in accesses for layout in access["layouts"] for p in layout["partitions"]]


# --- the event ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lineage(spark, lake):
    """Run streams of which each has a checkpoint, after one more day has come."""
    work = lake.root.parent
    for name in ("scratch", "observations.ndjson"):
        (work / name).rename(work / f"first {name}")
    for folder in (lake.root / "orders" / "dt=2024-05-10").iterdir():
        new = lake.root / "orders" / "dt=2024-05-11" / folder.name
        new.mkdir(parents=True)
        for file in folder.glob("part-*"):
            shutil.copy(file, new / f"part-{uuid.uuid4()}.parquet")
    application = record_events.APPLICATIONS / "new_files_stream.py"
    connectors = [c for c in submissions.available(spark) if c == "delta"]
    submissions.submit(spark, application, work, listener=spark.listener, connectors=connectors)
    run = json.loads((work / "events.ndjson").read_text().partition("\n")[0])["run"]["runId"]
    bundle = capture.create(work / "captures", Manifest(application_run_id=run))
    shutil.copy(work / "events.ndjson", bundle.events_path)
    shutil.copy(work / "observations.ndjson", bundle.observations_path)
    return task_lineage(bundle)


def short(datasets):
    return {d.name.name.rpartition("/lake/")[2]: d for d in datasets}


def test_of_eleven_partitions_one_was_read(lineage):
    orders = short(lineage.inputs)["orders"]
    assert {dict(p.values)["dt"] for p in orders.subset.partitions} == {"2024-05-11"}
    assert len(orders.subset.partitions) == 3
    assert not orders.subset.full


def test_no_other_input_is_made_up(lineage):
    assert set(short(lineage.inputs)) == {"orders", "days"}


def test_nothing_of_streams_is_unknown(lineage):
    assert [d for d in lineage.degradations if d.code == "partitions_unknown"] == []


@pytest.mark.parametrize("sink", ["copy", "batches", "listed"])
def test_what_a_stream_writes_is_an_output(lineage, sink):
    assert sink in short(lineage.outputs)


@pytest.mark.parametrize("sink", ["copy", "batches"])
def test_of_a_sink_the_partitions_written_are_known(lineage, sink):
    written = short(lineage.outputs)[sink].subset.partitions
    assert {dict(p.values)["dt"] for p in written} == {"2024-05-11"}
