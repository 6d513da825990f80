"""Which run an event is of: Airflow's names, the data interval, the start; times of any form."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.history.facts import Try, facts_of, utc
from tests.unit.history.facts.events import OF_SPARK, event, facts, ours

AIRFLOW = {
    "dag": {"dag_id": "shop"},
    "dagRun": {
        "run_id": "scheduled__2024-10-15",
        "logical_date": "2024-10-15T00:00:00+02:00",
        "data_interval_start": "2024-10-15T00:00:00+00:00",
        "data_interval_end": "2024-10-16T00:00:00+00:00",
    },
    "task": {"task_id": "group.report", "mapped": False},
    "taskInstance": {"try_number": 2, "log_url": "http://localhost", "map_index": None},
}
TASK = {
    "dag_id": "shop",
    "task_id": "group.report",
    "dag_run_id": "scheduled__2024-10-15",
    "map_index": -1,
    "try_number": 2,
    "logical_date": "2024-10-14T22:00:00.000000",
    "data_interval_start": "2024-10-15T00:00:00.000000",
    "data_interval_end": "2024-10-16T00:00:00.000000",
}


def test_a_task_is_named_as_airflow_does():
    line = facts(event(run_facets={"airflow": AIRFLOW}))
    assert {key: line[key] for key in TASK} == TASK


def test_what_airflow_adds_to_an_archived_event_names_its_task_and_its_start():
    sending = {"started": "2024-10-15T02:59:00+00:00", "runFacets": {"airflow": AIRFLOW}}
    line = facts(ours(sending=sending))
    assert {key: line[key] for key in TASK} == TASK
    assert line["started"] == "2024-10-15T02:59:00.000000"


def test_one_of_several_mapped_tasks_has_its_index():
    mapped = {**AIRFLOW, "taskInstance": {"try_number": 1, "map_index": 3}}
    assert facts(event(run_facets={"airflow": mapped}))["map_index"] == 3


def test_a_run_of_a_dag_has_no_task():
    line = facts(event(run_facets={"airflowDagRun": {**AIRFLOW, "task": None}}))
    assert line["dag_id"] == "shop"
    assert not line.keys() & {"task_id", "map_index"}


def test_a_run_outside_of_airflow_has_none_of_its_names():
    assert not facts(event()).keys() & TASK.keys()


def test_the_place_of_an_archived_event_names_what_the_event_does_not():
    kept = Try("other", "task", "r1", 0, 9, "2024-10-15T02:00:00Z")
    found = facts_of(json.dumps(ours(sending={"runFacets": {}})).encode(), "", kept)
    line = json.loads(found.text)
    assert (line["dag_id"], line["map_index"], line["try_number"]) == ("other", 0, 9)
    assert line["started"] == "2024-10-15T02:00:00.000000"
    assert "dag_id" not in json.loads(facts_of(json.dumps(event()).encode(), "", kept).text)


def test_the_nominal_time_is_the_data_interval_where_airflow_gives_none():
    nominal = {"nominalStartTime": "2024-10-15T00:00:00Z", "nominalEndTime": "2024-10-16T00:00:00Z"}
    line = facts(event(run_facets={"nominalTime": nominal}))
    assert line["data_interval_end"] == "2024-10-16T00:00:00.000000"


def test_parents_and_roots_are_runs_by_their_ids():
    parent = {
        "run": {"runId": "p"},
        "job": {"namespace": "n", "name": "shop"},
        "root": {"run": {"runId": "r"}, "job": {"namespace": "n", "name": "x"}},
    }
    line = facts(event(producer=OF_SPARK, run_facets={"parent": parent}))
    assert (line["parent_run_id"], line["root_run_id"]) == ("p", "r")


@pytest.mark.parametrize("kind", ["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"])
def test_the_type_of_an_event_is_kept(kind):
    assert facts(event(eventType=kind))["event_type"] == kind


@pytest.mark.parametrize("kind", [None, "complete", "DONE", 7])
def test_a_type_that_openlineage_does_not_have_is_other(kind):
    assert facts(event(eventType=kind))["event_type"] == "OTHER"


def test_degradations_are_counted_also_those_that_are_not_listed():
    document = ours()
    capture = document["run"]["facets"]["sparkLineage_capture"]
    capture["degradations"] = [{"code": "no_events", "message": "…"}]
    assert facts(document)["degradations"] == 1
    capture["degradationCounts"] = {"no_events": 1, "partitions_cut": 400}
    assert facts(document)["degradations"] == 401


def test_the_check_says_how_expected_and_observed_compare():
    check = {"status": "missing", "reads": [], "writes": []}
    assert facts(ours(check=check))["check_status"] == "missing"


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-10-15T03:00:00Z", "2024-10-15T03:00:00.000000"),
        ("2024-10-15T03:00:00.5+02:00", "2024-10-15T01:00:00.500000"),
        ("2024-10-15T03:00:00.123456789Z", "2024-10-15T03:00:00.123456"),
        ("2024-10-15T03:00:00", "2024-10-15T03:00:00.000000"),
        ("2024-10-27T02:30:00+01:00[Europe/Berlin]", "2024-10-27T01:30:00.000000"),
        ("2024-10-15", "2024-10-15T00:00:00.000000"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000"),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_in_utc_and_without_a_zone_they_are_already(text, time):
    assert utc(text) == time


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        pytest.param({"/lake/a": "schedule"}, "matched", id="only by the schedule"),
        pytest.param({"/lake/a": "schedule", "/lake/b": "declared"}, "unexpected", id="both"),
        pytest.param({"/lake/b": "path"}, "unexpected", id="by a path"),
        pytest.param({"/lake/a": None}, "unexpected", id="sources that the event left out"),
    ],
)
def test_what_only_the_schedule_makes_a_mismatch_does_not_count(kinds, status):
    reads = [
        {
            "dataset": {"namespace": "file", "name": name},
            "status": "unexpected",
            **({"from": [{"kind": kind, "value": "x"}]} if kind else {}),
        }
        for name, kind in kinds.items()
    ]
    writes = [{"dataset": {"namespace": "file", "name": "/lake/c"}, "status": "matched"}]
    check = {"status": "unexpected", "reads": reads, "writes": writes}
    assert facts(ours(check=check))["check_status"] == status
