"""Clocks of drivers and workers: put back while a job runs, in other zones, hours apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.terms import EVENTS
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import reading
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.capture.events import read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import OF_ONE_SPARK, golden

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


def back(step, since):
    """Put the clock back by some seconds, before the event of that number."""

    def clock(number):
        put_back = timedelta(seconds=step + 5 if number >= since else 0)
        return (datetime.fromisoformat(right(number)) - put_back).isoformat()

    return clock


def end(put_back):
    """Write the observer's last record, which says by how many seconds the clock was put back."""
    return f'{{"kind":"end","queries":1,"put_back":{round(1000 * put_back)}}}\n'


def assert_staging_is_no_input(lineage):
    assert names(lineage.inputs) == ["/in"]
    [out] = [d for d in lineage.outputs if d.name.name == "/out"]
    assert {c.dataset.name for c in out.columns.fields["c"]} == {"/in"}
    [message] = messages(lineage)
    assert "was put back by" in message


@pytest.mark.parametrize("step", [2, 3600])
@pytest.mark.parametrize("since", [2, 3, 4])
def test_a_staging_table_is_no_input_when_the_clock_was_put_back(merged, since, step):
    assert_staging_is_no_input(merged(back(step, since), end(step + 5)))


@pytest.mark.parametrize(("since", "step"), [(2, 2), (4, 2), (2, 3600), (3, 3600), (4, 3600)])
def test_without_the_observer_an_end_that_is_too_early_proves_it(merged, since, step):
    assert_staging_is_no_input(merged(back(step, since)))


def test_a_driver_that_was_killed_had_reported_that_its_clock_was_put_back(merged):
    noted = '{"kind":"clock","put_back":3000}\n{"kind":"clock","put_back":4000}\n'
    lineage = merged(back(2, 3), noted)
    assert_staging_is_no_input(lineage)
    assert "by 7 s" in messages(lineage)[0]


def started_early(number):
    """Stamp the second action before it is planned: its start stands 6 s after a later end."""
    return right(0.8 if number == 3 else number)


def read_of_in():
    at = int(BEGIN.timestamp() * 1000)
    layout = {"base": "/in", "dimensions": [{"field": "dt"}], "partitions": [["1"]]}
    read = {"node": "scan", "roots": ["/in"], "partition_filters": ["dt"], "layouts": [layout]}
    record = {"kind": "query", "started": at + 5000, "ended": at + 9000, "reads": [read]}
    return msgspec.json.encode(record).decode() + "\n"


@pytest.mark.parametrize("last", ["", '{"kind":"end","queries":1}\n', end(0)])
def test_a_start_that_was_stamped_before_planning_says_nothing_about_the_clock(merged, last):
    lineage = merged(started_early, read_of_in() + last)
    assert messages(lineage) == []
    assert lineage.inputs[0].subset is not None


def test_the_driver_knows_better_than_its_events(merged):
    """Their times may be in any order: it has compared its clock with one that never goes back."""
    lineage = merged(back(2, 4), read_of_in() + end(0))
    assert messages(lineage) == []
    assert lineage.inputs[0].subset is not None


def test_few_starts_wait_for_an_end(monkeypatch):
    """A file of nothing but starts, each too early, is not kept in memory."""
    monkeypatch.setattr(reading, "MAX_WAITING", 2)
    starts = [event(f"run-{n}", right(n), "START", ("/in",)) for n in range(5)]
    lines = [msgspec.json.encode(e) for e in [event(RUN, right(100), "START"), *starts]]
    clock = reading.Clock(RUN)
    order = [one.run.run_id for one in clock.corrected(read_events(lines, ReadReport(), source=""))]
    assert order == [RUN, "run-2", "run-3", "run-4", "run-0", "run-1"]
    assert clock.put_back == timedelta()


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
    assert merged(right, read_of_in()).inputs[0].subset is not None
    lineage = merged(lambda number: right(number if number < 3 else number - 700), read_of_in())
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


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK)
def test_no_recorded_job_seems_to_have_put_its_clock_back(spark, case, tmp_path):
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN))
    lines = golden(case, spark).read_bytes()
    run_id = msgspec.json.decode(lines.splitlines()[0])["run"]["runId"]
    (bundle.path / EVENTS).write_bytes(lines)
    manifest = msgspec.structs.replace(bundle.manifest, application_run_id=run_id)
    assert messages(task_lineage(capture.CaptureBundle(bundle.path, manifest))) == []
