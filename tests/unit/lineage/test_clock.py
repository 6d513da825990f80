"""Clocks of drivers and workers: put back while a job runs, in other zones, hours apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from airflow_provider_sparklineage.event.from_bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, Manifest
from tests.conftest import RECORDED, golden

RUN = "018f0000-0000-7000-8000-000000000000"
BEGIN = datetime(2024, 3, 31, 0, 59, 50, tzinfo=UTC)  # ten seconds before a change of DST


def event(run_id, at, kind, inputs=(), outputs=()):
    def dataset(name, lifecycle=None):
        facets = {"schema": {"fields": [{"name": "c"}]}}
        if lifecycle:
            facets["lifecycleStateChange"] = {"lifecycleStateChange": lifecycle}
            source = {"namespace": "file", "name": inputs[0], "field": "c", "transformations": []}
            facets["columnLineage"] = {"fields": {"c": {"inputFields": [source]}}}
        return {"namespace": "file", "name": name, "facets": facets}

    return {
        "eventTime": at,
        "eventType": kind,
        "run": {"runId": run_id, "facets": {"parent": {"run": {"runId": RUN}}}},
        "job": {"namespace": "tests", "name": "job.execute_insert_into_hadoop_fs_relation_command"},
        "inputs": [dataset(name) for name in inputs],
        "outputs": [dataset(name, "OVERWRITE") for name in outputs],
    }


@pytest.fixture
def merged(tmp_path):
    """Merge a job that makes /staging of /in and /out of /staging, with an event every 5 s."""

    def merged(clock, observations="", **manifest):
        bundle = capture.create(
            tmp_path, Manifest(application_run_id=RUN, outcome="COMPLETE", **manifest)
        )
        steps = [
            (RUN, "START", (), ()),
            ("first", "START", ("/in",), ()),
            ("first", "COMPLETE", ("/in",), ("/staging",)),
            ("second", "START", ("/staging",), ()),
            ("second", "COMPLETE", ("/staging",), ("/out",)),
            (RUN, "COMPLETE", (), ()),
        ]
        lines = [
            msgspec.json.encode(event(run_id, clock(number), kind, inputs, outputs)) + b"\n"
            for number, (run_id, kind, inputs, outputs) in enumerate(steps)
        ]
        bundle.events_path.write_bytes(b"".join(lines))
        bundle.observations_path.write_text(observations)
        return task_lineage(bundle)

    return merged


def right(number):
    return (BEGIN + timedelta(seconds=5 * number)).isoformat()


def names(datasets):
    return [d.name.name for d in datasets]


def messages(lineage):
    return [d.message for d in lineage.degradations if d.code == "clock_went_backwards"]


@pytest.mark.parametrize("step", [2, 3600])
@pytest.mark.parametrize("since", [2, 3, 4])
def test_a_staging_table_is_no_input_when_the_clock_was_put_back(merged, since, step):
    def put_back(number):
        back = timedelta(seconds=step + 5 if number >= since else 0)
        return (datetime.fromisoformat(right(number)) - back).isoformat()

    lineage = merged(put_back)
    assert names(lineage.inputs) == ["/in"]
    [out] = [d for d in lineage.outputs if d.name.name == "/out"]
    assert {c.dataset.name for c in out.columns.fields["c"]} == {"/in"}
    [message] = messages(lineage)
    assert "was put back by" in message


def test_events_of_another_application_say_nothing_about_the_clock(tmp_path):
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN, outcome="COMPLETE"))
    foreign = event("018f0000-0000-7000-8000-00000000000f", right(-1000), "START")
    foreign["run"]["facets"] = {}
    lines = [event(RUN, right(0), "START"), foreign, event(RUN, right(1), "COMPLETE")]
    bundle.events_path.write_bytes(b"".join(msgspec.json.encode(e) + b"\n" for e in lines))
    lineage = task_lineage(bundle)
    assert messages(lineage) == []
    assert "foreign_events" in {d.code for d in lineage.degradations}


def test_what_was_observed_is_not_matched_by_a_clock_that_was_put_back(merged):
    at = int(BEGIN.timestamp() * 1000)
    layout = {"base": "/in", "dimensions": [{"field": "dt"}], "partitions": [["1"]]}
    read = {"node": "scan", "roots": ["/in"], "partition_filters": ["dt"], "layouts": [layout]}
    record = {"kind": "query", "started": at + 5000, "ended": at + 9000, "reads": [read]}
    text = msgspec.json.encode(record).decode() + "\n"
    assert merged(right, text).inputs[0].subset is not None
    lineage = merged(lambda number: right(number if number < 3 else number - 700), text)
    assert lineage.inputs[0].subset is None
    assert messages(lineage)


@pytest.mark.parametrize(
    "clock",
    [
        pytest.param(right, id="right"),
        pytest.param(
            lambda number: right(number).replace("+00:00", "").replace("Z", ""), id="without a zone"
        ),
        pytest.param(
            lambda number: (
                (BEGIN + timedelta(seconds=5 * number))
                .astimezone(ZoneInfo("Asia/Kolkata"))
                .isoformat()
            ),
            id="another zone",
        ),
        pytest.param(
            lambda number: (
                (BEGIN + timedelta(seconds=5 * number))
                .astimezone(ZoneInfo("Europe/Berlin"))
                .isoformat()
            ),
            id="DST begins",
        ),
        pytest.param(lambda number: right(5 * (number + 1)), id="put forward"),
        pytest.param(
            lambda number: (BEGIN + timedelta(milliseconds=-18 * (number % 2))).isoformat(),
            id="threads",
        ),
    ],
)
def test_other_times_are_as_they_are(merged, clock):
    lineage = merged(clock)
    assert messages(lineage) == []
    assert "/in" in names(lineage.inputs)


@pytest.mark.parametrize("hours", [-1, 1, 24])
def test_the_clock_of_the_worker_decides_nothing(merged, hours):
    shifted = {
        "started": BEGIN + timedelta(hours=hours),
        "ended": BEGIN + timedelta(hours=hours, minutes=1),
    }
    lineage = merged(right, **shifted)
    assert names(lineage.inputs) == ["/in"]
    assert names(lineage.outputs) == ["/out", "/staging"]
    assert lineage.degradations == merged(right).degradations


@pytest.mark.parametrize(("spark", "case"), RECORDED)
def test_no_recorded_job_seems_to_have_put_its_clock_back(spark, case, tmp_path):
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN))
    lines = golden(case, spark).read_bytes()
    run_id = msgspec.json.decode(lines.splitlines()[0])["run"]["runId"]
    (bundle.path / EVENTS).write_bytes(lines)
    manifest = msgspec.structs.replace(bundle.manifest, application_run_id=run_id)
    assert messages(task_lineage(capture.CaptureBundle(bundle.path, manifest))) == []
