"""DataFlow and DataJob, of events that Airflow's provider has sent."""

from __future__ import annotations

import copy
import json

import pytest

from airflow_provider_sparklineage.datahub import jobs
from airflow_provider_sparklineage.datahub.configuration import Conversion
from tests.unit.datahub.airflow_events import (
    DAG,
    FLAKY,
    added,
    aspect,
    converted,
    event_of,
    recorded,
    with_job_facet,
    with_run_facet,
)
from tests.unit.datahub.patching import Stored
from tests.unit.datahub.sdk import require_sdk

FLOW = f"urn:li:dataFlow:(airflow,{DAG},prod)"
JOB = f"urn:li:dataJob:({FLOW},load.flaky)"
ADA = "urn:li:corpuser:ada"


def owners_of(event, entity="dataJob"):
    found = aspect(event, "ownership", entity)
    if not found:
        return None
    values = [operation["value"] for operation in found["patch"]]
    return list(zip(values[::2], values[1::2], strict=True))


def tags_of(event):
    found = aspect(event, "globalTags", "dataJob")
    return found and [operation["value"] for operation in found["patch"]]


def test_a_dag_is_described_by_each_event_of_its_tasks():
    info = added(aspect(event_of(FLAKY, "START"), "dataFlowInfo"))

    assert info == {
        "/name": DAG,
        "/env": "PROD",
        "/externalUrl": f"http://airflow:8080/dags/{DAG}",
        "/customProperties/fileloc": "/dags/all.py",
        "/customProperties/timetable_summary": "@once",
        "/customProperties/start_date": "2024-05-07T00:00:00+00:00",
        "/customProperties/description": "Revenue of a day",
    }


def test_the_documentation_of_a_dag_comes_with_its_own_runs():
    info = added(aspect(event_of(DAG, "START"), "dataFlowInfo"))

    assert info["/description"] == "# Revenue\nof a day, by *country*."
    assert aspect(event_of(DAG, "COMPLETE"), "dataJobInfo") is None


def test_a_task_has_what_airflow_has_of_it():
    info = added(aspect(event_of(FLAKY, "COMPLETE", attempt=2), "dataJobInfo"))

    assert info["/name"] == "load.flaky"
    assert info["/type"] == {"string": "COMMAND"}
    assert info["/flowUrn"] == FLOW
    assert info["/externalUrl"] == f"http://airflow:8080/dags/{DAG}/tasks/load.flaky"
    assert info["/customProperties/task_group"] == "load"
    assert info["/customProperties/downstream_task_ids"] == "['skipped']"
    assert info["/customProperties/depends_on_past"] == "false"
    assert info["/customProperties/retries"] == "1"
    assert "/customProperties/inlets" not in info  # an empty list
    assert (
        added(aspect(event_of(f"{DAG}.load.read", "START"), "dataJobInfo"))["/description"]
        == "Reads the orders."
    )


def test_owners_and_tags_are_those_of_the_job_facets():
    for entity in ("dataFlow", "dataJob"):
        assert owners_of(event_of(FLAKY, "START"), entity) == [
            (ADA, "TECHNICAL_OWNER"),
            ("urn:li:corpGroup:data", "TECHNICAL_OWNER"),
        ]
    assert tags_of(event_of(FLAKY, "START")) == ["urn:li:tag:finance", "urn:li:tag:tier:1"]


def test_airflows_default_owner_is_nobody():
    assert event_of("bad.fails", "START")["job"]["facets"]["ownership"]["owners"] == [
        {"name": "airflow"}
    ]
    assert owners_of(event_of("bad.fails", "START")) is None
    assert owners_of(event_of("bad.fails", "START"), "dataFlow") is None


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({"name": "user:ada"}, (ADA, "TECHNICAL_OWNER")),
        ({"name": "group:data", "type": "DATA_STEWARD"}, ("urn:li:corpGroup:data", "DATA_STEWARD")),
        ({"name": "a,b (c)"}, ("urn:li:corpuser:a%2Cb %28c%29", "TECHNICAL_OWNER")),
        ({"name": "team:", "type": "CUSTOM"}, ("urn:li:corpuser:team:", "TECHNICAL_OWNER")),
        (
            {"name": "application:etl", "type": 7},
            ("urn:li:corpuser:application:etl", "TECHNICAL_OWNER"),
        ),
    ],
)
def test_an_owner_is_a_user_or_a_group(owner, expected):
    event = with_job_facet(event_of(FLAKY, "START"), ownership={"owners": [owner]})

    assert owners_of(event) == [expected]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ({"key": "finance", "value": "finance"}, "finance"),
        ({"key": "finance", "value": "true"}, "finance"),
        ({"key": "team", "value": "data"}, "team:data"),
        ({"key": "a,b"}, "a%2Cb"),
    ],
)
def test_a_tag_keeps_its_value(tag, expected):
    event = with_job_facet(event_of(FLAKY, "START"), tags={"tags": [tag, tag, {"key": ""}, 7]})

    assert tags_of(event) == [f"urn:li:tag:{expected}"]


def test_patches_are_those_that_the_sdk_makes():
    require_sdk()
    from datahub.specific.datajob import DataJobPatchBuilder

    builder = DataJobPatchBuilder(JOB)
    builder.add_custom_property("a~b/c", "d")
    [properties] = (json.loads(mcp.aspect.value) for mcp in builder.build())

    event = event_of(FLAKY, "START")
    event["run"]["facets"]["airflow"]["task"] = {"inlets": "d"}
    [made] = [o for o in aspect(event, "dataJobInfo") if o["path"].endswith("/inlets")]
    assert made == {**properties[0], "path": "/customProperties/inlets"}


def test_owners_and_tags_are_named_by_what_each_of_them_has():
    tagged = jobs.tags({"tags": {"tags": [{"key": "a~b/c"}]}})
    assert tagged == {
        "arrayPrimaryKeys": {"tags": ["tag"]},
        "patch": [
            {"op": "add", "path": "/tags/urn:li:tag:a~0b~1c/tag", "value": "urn:li:tag:a~b/c"}
        ],
    }
    owned = jobs.owners({"ownership": {"owners": [{"name": "ada"}]}})
    assert owned["arrayPrimaryKeys"] == {"owners": ["owner", "type"]}
    path = f"/owners/{ADA}/TECHNICAL_OWNER"
    assert [one["path"] for one in owned["patch"]] == [f"{path}/owner", f"{path}/type"]


def test_who_has_attributed_an_owner_or_a_tag_of_ours_is_kept():
    by = {"source": "urn:li:dataHubAction:x", "time": 1, "actor": ADA}
    owner = {"owner": ADA, "type": "TECHNICAL_OWNER", "source": {"type": "MANUAL"}}
    tag = {"tag": "urn:li:tag:finance", "attribution": by}
    stored = Stored({(JOB, "ownership"): {"owners": [owner]}, (JOB, "globalTags"): {"tags": [tag]}})
    stored.take(p for p in converted(event_of(FLAKY, "START")) if p.urn == JOB)
    assert owner in stored[JOB, "ownership"]["owners"]
    assert tag in stored[JOB, "globalTags"]["tags"]


def test_nothing_that_others_write_is_replaced():
    whole = {p.aspect_name for p in converted(event_of(FLAKY, "START")) if not p.is_patch}

    assert whole == {
        "status",
        "dataProcessInstanceProperties",
        "dataProcessInstanceRelationships",
        "dataProcessInstanceRunEvent",
    }


def test_what_others_have_written_survives_and_ours_again_changes_nothing():
    theirs = {"owner": "urn:li:corpuser:eve", "type": "DATA_STEWARD"}
    stored = Stored(
        {
            (JOB, "dataJobInfo"): {"name": "x", "customProperties": {"_task_type": "'A'"}},
            (JOB, "ownership"): {"owners": [theirs]},
            (JOB, "globalTags"): {"tags": [{"tag": "urn:li:tag:pii"}]},
        }
    )
    given = [p for p in converted(event_of(FLAKY, "START")) if p.urn in (JOB, FLOW)]
    stored.take(given)

    info = stored[JOB, "dataJobInfo"]
    assert (info["name"], info["type"]) == ("load.flaky", {"string": "COMMAND"})
    assert info["customProperties"]["_task_type"] == "'A'"
    assert info["customProperties"]["task_group"] == "load"
    assert theirs in stored[JOB, "ownership"]["owners"]
    assert len(stored[JOB, "ownership"]["owners"]) == 3
    assert [tag["tag"] for tag in stored[JOB, "globalTags"]["tags"]] == [
        "urn:li:tag:pii",
        "urn:li:tag:finance",
        "urn:li:tag:tier:1",
    ]
    assert Stored(copy.deepcopy(dict(stored))).take(given) == stored


def test_a_task_that_sends_no_events_is_there_between_the_others():
    joined = JOB.replace("flaky", "joined")
    found = converted(event_of(DAG, "START"))
    stored = Stored().take(p for p in found if p.is_patch and p.urn == joined)

    assert [p.urn for p in found if p.aspect_name == "dataJobInfo"] == [joined]
    assert stored[joined, "dataJobInfo"] == {
        "name": "load.joined",
        "type": {"string": "COMMAND"},
        "flowUrn": FLOW,
        "customProperties": {
            "operator_class_path": "airflow.providers.standard.operators.empty.EmptyOperator",
            "task_group": "load",
            "downstream_task_ids": "load.flaky",
        },
    }
    assert stored[joined, "dataJobInputOutput"]["inputDatajobEdges"] == [
        {"destinationUrn": JOB.replace("flaky", "part")}
    ]


def test_tasks_that_send_no_events_are_bounded_and_may_be_malformed():
    silent = {"emits_ol_events": False, "downstream_task_ids": ["", 7, "b", "\ud800"]}
    tasks = {f"task{n}": silent for n in range(2000)} | {"": silent, "b": 7, "c": [silent]}
    event = with_job_facet(event_of(DAG, "START"), airflow={"tasks": tasks})

    assert sum(p.aspect_name == "dataJobInfo" for p in converted(event)) == 500


def test_one_of_several_airflows_is_named():
    how = Conversion(platform_instance="west", cluster="staging")
    found = converted(event_of(FLAKY, "START"), how)
    instances = {
        p.urn.split(":")[2]: p.aspect for p in found if p.aspect_name == "dataPlatformInstance"
    }

    assert found[0].urn == f"urn:li:dataFlow:(airflow,west.{DAG},staging)"
    assert "/env" not in added(found[0].aspect)  # it is no environment that DataHub knows
    assert set(instances) == {"dataFlow", "dataJob", "dataProcessInstance"}
    assert instances["dataJob"] == {
        "platform": "urn:li:dataPlatform:airflow",
        "instance": "urn:li:dataPlatformInstance:(urn:li:dataPlatform:airflow,west)",
    }


@pytest.mark.parametrize(
    ("log_url", "page"),
    [
        ("https://me:s3cret@air.example/af/dags/x/runs/y", f"https://air.example/af/dags/{DAG}"),
        ("https://air.example/log?execution_date=1", None),
        ("javascript:alert(1)/dags/", None),
        (["http://a/dags/x"], None),
    ],
)
def test_a_page_is_where_the_log_of_the_try_is(log_url, page):
    event = event_of(FLAKY, "START")
    event["run"]["facets"]["airflow"]["taskInstance"]["log_url"] = log_url

    assert added(aspect(event, "dataFlowInfo")).get("/externalUrl") == page


def test_an_event_without_a_job_is_of_no_flow():
    assert converted({"eventTime": "2026-01-01T00:00:00Z", "dataset": {"name": "x"}}) == []


def test_every_recorded_event_is_converted():
    for event in recorded():
        assert converted(event)


def test_a_job_of_another_orchestrator_leads_to_its_source():
    location = {"url": "https://git.example/etl/job.sql"}
    event = with_job_facet(
        with_run_facet(event_of(FLAKY, "START"), airflow={}), sourceCodeLocation=location
    )

    assert added(aspect(event, "dataJobInfo"))["/externalUrl"] == "https://git.example/etl/job.sql"
