"""DataProcessInstance: tries and DAG runs, of events that Airflow's provider has sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.datahub.runs import started
from airflow_provider_sparklineage.datahub.subject import Subject, millis
from tests.conftest import golden
from tests.unit.datahub.airflow_events import (
    DAG,
    FLAKY,
    aspect,
    converted,
    event_of,
    recorded,
    with_run_facet,
)
from tests.unit.datahub.sdk import checked

RUN_ID = "scheduled__2024-05-07T00:00:00+00:00"


def of_run(event, name):
    return aspect(event, f"dataProcessInstance{name}")


def urn(event):
    return f"urn:li:dataProcessInstance:{event['run']['runId']}"


def test_a_try_starts_and_ends_as_a_run_of_its_task_in_the_dags_run():
    start, end = event_of(FLAKY, "START", attempt=2), event_of(FLAKY, "COMPLETE", attempt=2)
    dag_run = event_of(DAG, "START")

    assert of_run(start, "RunEvent") == {
        "timestampMillis": 1795451670498,
        "messageId": f"{urn(start)}-START",
        "status": "STARTED",
        "attempt": 2,
    }
    assert of_run(end, "RunEvent") == {
        "timestampMillis": 1795451670627,
        "messageId": f"{urn(end)}-COMPLETE",
        "status": "COMPLETE",
        "attempt": 2,
        "result": {"type": "SUCCESS", "nativeResultType": "COMPLETE"},
    }
    assert of_run(end, "Relationships") == {
        "parentTemplate": f"urn:li:dataJob:(urn:li:dataFlow:(airflow,{DAG},prod),load.flaky)",
        "parentInstance": urn(dag_run),
        "upstreamInstances": [],
    }


@pytest.mark.parametrize(
    ("state", "duration", "keeps"),
    [("START", None, ""), ("COMPLETE", None, "created"), ("COMPLETE", 1.5, "")],
)
def test_the_stored_start_is_kept_by_an_end_that_has_none(state, duration, keeps):
    event = event_of(FLAKY, state, attempt=2)
    event["run"]["facets"]["airflow"]["taskInstance"]["duration"] = duration
    name = "dataProcessInstanceProperties"
    [properties] = [one for one in proposals(event) if one.aspect_name == name]

    assert properties.keeps == keeps


def test_tries_and_mapped_instances_are_runs_of_their_own():
    names = {
        urn(e): of_run(e, "Properties")["name"] for e in recorded() if "load" in e["job"]["name"]
    }

    assert sorted(names.values()) == [
        f"{RUN_ID}, map index 0, try 1",
        f"{RUN_ID}, map index 1, try 1",
        f"{RUN_ID}, try 1",  # of read
        f"{RUN_ID}, try 1",  # of flaky
        f"{RUN_ID}, try 2",
    ]


def test_a_run_leads_to_its_log_and_names_its_dag_run():
    properties = of_run(event_of(FLAKY, "FAIL"), "Properties")

    assert properties["externalUrl"].endswith("/tasks/load.flaky?try_number=1")
    assert properties["type"] == "BATCH_SCHEDULED"
    assert properties["customProperties"] == {
        "dag_id": DAG,
        "run_id": RUN_ID,
        "run_type": "scheduled",
        "logical_date": "2024-05-07T00:00:00+00:00",
        "run_after": "2024-05-07T00:00:00+00:00",
        "task_id": "load.flaky",
        "try_number": "1",
        "data_interval_start": "2024-05-07T00:00:00+00:00",
        "data_interval_end": "2024-05-07T00:00:00+00:00",
        "openlineage_client_version": "1.54.0",
        "error": "no such table: password=***",
    }


@pytest.mark.parametrize(
    ("state", "status", "result"),
    [
        ("START", "STARTED", None),
        ("RUNNING", "STARTED", None),
        ("COMPLETE", "COMPLETE", "SUCCESS"),
        ("FAIL", "COMPLETE", "FAILURE"),
        ("ABORT", "COMPLETE", "FAILURE"),
    ],
)
def test_each_type_of_event_is_a_status(state, status, result):
    event = {**event_of(FLAKY, "START"), "eventType": state}
    found = of_run(event, "RunEvent")

    assert (found["status"], found.get("result", {}).get("type")) == (status, result)


@pytest.mark.parametrize("state", ["OTHER", None, ["START"]])
def test_an_event_of_another_type_leaves_the_run_alone(state):
    event = {**event_of(FLAKY, "START"), "eventType": state}

    assert of_run(event, "RunEvent") is None
    assert of_run(event, "Properties") is None


def test_a_dags_run_knows_when_it_started_what_triggered_it_and_what_became_of_its_tasks():
    end = event_of("bad", "FAIL")
    properties = of_run(end, "Properties")

    assert (
        properties["created"]["time"]
        == of_run(event_of("bad", "START"), "Properties")["created"]["time"]
    )
    assert of_run(end, "RunEvent")["durationMillis"] == 2078
    assert properties["customProperties"]["tasks failed"] == "fails"
    assert properties["customProperties"]["error"] == "task_failure"
    assert of_run(end, "Relationships") == {
        "parentTemplate": "urn:li:dataFlow:(airflow,bad,prod)",
        "upstreamInstances": [urn(event_of(FLAKY, "COMPLETE", attempt=2))],
    }


def test_a_task_that_airflow_skipped_is_known_to_the_dags_run_alone():
    assert of_run(event_of(f"{DAG}.skipped", "COMPLETE"), "RunEvent")["result"]["type"] == "SUCCESS"
    of_dag = of_run(event_of(DAG, "COMPLETE"), "Properties")["customProperties"]
    assert of_dag["tasks skipped"] == "skipped"
    assert of_dag["tasks success"] == "load.flaky, load.joined, load.part, load.read"


def test_the_jobs_before_a_task_are_those_of_its_dag():
    flow = f"urn:li:dataFlow:(airflow,{DAG},prod)"
    before = Subject(event_of(FLAKY, "START"), DEFAULT_CONVERSION).jobs_before

    assert before == (f"urn:li:dataJob:({flow},load.joined)",)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"external_dag_id": "other", "external_task_id": "x"}, ["other,prod),x"]),
        (
            {"external_dag_id": "other", "external_task_ids": "['y', 'x']"},
            ["other,prod),x", "other,prod),y"],
        ),
        ({"upstream_task_ids": ["b", 7, "a"]}, [f"{DAG},prod),a", f"{DAG},prod),b"]),
        ({"upstream_task_ids": "['load.flaky', 'a', 'a'"}, [f"{DAG},prod),a"]),
        ({"upstream_task_ids": {"a": 1}}, []),
        (7, []),
    ],
)
def test_what_a_task_waits_for_is_before_it(task, expected):
    event = event_of(FLAKY, "START")
    event["run"]["facets"]["airflow"]["task"] = task
    before = Subject(event, DEFAULT_CONVERSION).jobs_before

    assert list(before) == [f"urn:li:dataJob:(urn:li:dataFlow:(airflow,{one})" for one in expected]


def test_jobs_before_one_of_another_orchestrator_are_those_of_the_facet():
    upstream = [{"job": {"name": "etl.load"}}, {"job": {"name": 7}}, "x"]
    event = with_run_facet(
        event_of(FLAKY, "START"), airflow={}, jobDependencies={"upstream": upstream}
    )
    before = Subject(event, DEFAULT_CONVERSION).jobs_before

    assert before == ("urn:li:dataJob:(urn:li:dataFlow:(airflow,etl,prod),load)",)


@pytest.mark.parametrize("case", ["staging_chain", "partitioned_writes"])
def test_spark_is_below_the_task_an_application_with_its_actions(case):
    events = [json.loads(line) for line in golden(case, "4.2").read_text().splitlines()]
    relations = {}
    for event in events:
        for one in checked(proposals(event)):
            if one.aspect_name == "dataProcessInstanceRelationships":
                relations[one.urn] = one.aspect
    application = urn(events[0])

    task = f"urn:li:dataProcessInstance:{events[0]['run']['facets']['parent']['run']['runId']}"
    assert relations.pop(application) == {
        "parentTemplate": f"urn:li:dataFlow:(spark,{case},prod)",
        "parentInstance": task,
        "upstreamInstances": [],
    }
    assert relations
    for one in relations.values():
        assert one["parentInstance"] == application
        assert one["parentTemplate"].startswith(
            f"urn:li:dataJob:(urn:li:dataFlow:(spark,{case},prod),"
        )


@pytest.mark.parametrize(
    ("duration", "before"),
    [(1.5, 1500), (0, 0), (True, None), (float("nan"), None), (1e300, None), ("2", None)],
)
def test_the_start_is_known_where_airflow_has_the_duration(duration, before):
    event = event_of(FLAKY, "FAIL")
    event["run"]["facets"]["airflow"]["taskInstance"]["duration"] = duration
    subject = Subject(event, DEFAULT_CONVERSION)

    assert started(subject) == (None if before is None else subject.time - before)


def test_a_run_that_nobody_scheduled_is_ad_hoc_and_one_of_a_stream_a_stream():
    event = event_of(FLAKY, "START")
    event["run"]["facets"]["airflow"]["dagRun"]["run_type"] = "manual"
    assert of_run(event, "Properties")["type"] == "BATCH_AD_HOC"

    event["job"]["facets"]["jobType"]["processingType"] = "STREAMING"
    assert of_run(event, "Properties")["type"] == "STREAMING"


def test_an_application_leads_to_its_history_not_to_its_driver():
    details = {"uiWebUrl": "http://driver:4040", "historyUrl": "https://history.example/app-1"}
    event = with_run_facet(event_of(FLAKY, "START"), airflow={}, spark_applicationDetails=details)

    assert of_run(event, "Properties")["externalUrl"] == "https://history.example/app-1"
    assert of_run(event, "Properties")["name"] == "load.flaky"


def test_the_same_event_is_the_same_proposals():
    event = event_of(FLAKY, "FAIL")

    assert converted(event) == converted(json.loads(json.dumps(event)))


@pytest.mark.parametrize("time", [None, "yesterday", 7])
def test_a_run_without_a_time_is_not_stored(time):
    event = {**event_of(FLAKY, "START"), "eventTime": time}

    assert aspect(event, "dataProcessInstanceProperties") is None
    assert aspect(event, "dataJobInfo")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-01-01T01:00:00.0019+01:00", 1767225600001),
        ("2026-01-01T00:00:00", 1767225600000),
        ("0001-01-01T00:00:00+23:00", -62135679600000),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_a_time_is_in_milliseconds_since_the_epoch(time, expected):
    assert millis(time) == expected


@given(st.text())
def test_no_text_makes_the_reader_of_times_raise(text):
    assert millis(text) is None or isinstance(millis(text), int)
