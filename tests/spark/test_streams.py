"""Streams in a real driver: what each run of one read and wrote, and no more, is in its event."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import Lake, distinct, planned_cases
from tests.spark.test_observer import SCHEMAS

pytestmark = pytest.mark.spark

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
    """Of fifteen batches each is caught, and the compacted log does not repeat what was before."""
    records = streamed(lake, "fifteen_batches_and_a_compacted_log")
    assert [len(partitions(record["reads"])) for record in records] == [2] * 15
    assert [len(partitions(record["writes"])) for record in records] == [2] * 15


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
