"""What the tab asks the API server for, of a database with task instances and XComs."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.links.lineage import LineageJobLink
from airflow_provider_sparklineage.plugins import stored, task_lineage
from airflow_provider_sparklineage.plugins.app import make_app
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.operators.tab.conftest import LATEST, event

pytestmark = pytest.mark.airflow


def test_the_latest_try_is_that_of_the_xcom(ask, push):
    push(event())
    answer = ask()
    assert answer["event"] == event()
    assert (answer["try_number"], answer["latest"], answer["tries"]) == (3, 3, [3])


def test_each_mapped_instance_has_its_own(ask, push):
    push(event("of 7"), map_index=7)
    assert ask(map_index=7)["event"] == event("of 7")
    assert ask()["event"] is None
    ask(404, map_index=8)


def test_an_earlier_try_is_that_of_the_archive(ask, push, archive):
    push(event("of 3"))
    archive.write(TaskIdentity("shop", "revenue", "manual", 1), Written(event("of 1")))
    answer = ask(try_number=1)
    assert (answer["event"], answer["tries"]) == (event("of 1"), [1, 3])
    assert ask(try_number=2)["message"] == task_lineage.NOTHING


def test_an_archive_that_is_away_is_a_note(ask, push, monkeypatch):
    push(event())
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "gs://nobody@nowhere/x")
    answer = ask()
    assert answer["event"] == event()
    assert "could not be read from" in answer["note"]


def test_what_was_collected_after_the_task_is_that_of_the_archive(ask, push, archive):
    """Its XCom is replaced as well, unless that was done where Airflow's database is not."""
    unfinished = event("as far as the task knew")
    entry = {"code": "application_unfinished", "message": "The job is still running."}
    unfinished["run"]["facets"]["sparkLineage_capture"] = {"degradations": [entry]}
    push(unfinished)
    assert ask()["event"] == unfinished
    archive.write(TaskIdentity("shop", "revenue", "manual", 3), Written(event("collected")))
    assert ask()["event"] == event("collected")


def test_keys_of_an_archive_that_is_away_are_not_in_the_note(ask, push, monkeypatch):
    push(event())
    url = "s3://AKIA:hunter2@bucket/x?token=hunter2"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    answer = ask()
    assert "The archive s3://bucket/x could not be read from" in answer["note"]
    assert "hunter2" not in json.dumps(answer)


def test_it_is_not_asked_for_what_the_xcom_of_the_only_try_has(ask, push, is_at, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "gs://nobody@nowhere/x")
    is_at("success", try_number=1)
    push(event())
    assert ask()["note"] == ""


@pytest.mark.parametrize("state", ["running", "queued", "scheduled", "deferred", None])
def test_a_task_that_goes_on_has_not_ended(ask, is_at, state):
    is_at(state)
    answer = ask()
    assert answer["message"] == task_lineage.RUNNING
    assert ask(what="state") == {
        "latest": LATEST,
        "state": state,
        "has_ended": False,
        "expected_at": None,
    }
    assert (answer["state"], answer["has_ended"]) == (state, False)


def test_a_try_that_failed_is_shown_until_the_next_one_is_due(ask, push, is_at):
    push(event())
    is_at("up_for_retry")
    answer = ask()
    assert (answer["event"], answer["has_ended"]) == (event(), False)


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "upstream_failed", "removed"])
def test_a_task_at_its_end_has(ask, is_at, state):
    is_at(state)
    assert ask(what="state")["has_ended"] is True
    assert ask()["message"] == task_lineage.NOTHING


def test_the_state_of_what_is_not_there(ask):
    ask(404, what="state", task_id="nosuch")


LINK = "/lineage/job/tests/shop.revenue?tableLevelNode=job%3Atests%3Ashop.revenue"


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        pytest.param(f"http://own:3000{LINK}", "http://own:3000", id="of the task's connection"),
        pytest.param("http://own:3000/else", "http://default:3000", id="of something else"),
        pytest.param({"a": 1}, "http://default:3000", id="no text"),
        pytest.param(None, "http://default:3000", id="none"),
    ],
)
def test_links_lead_to_the_task_s_own_backend(ask, push, monkeypatch, link, leads_to):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", "http://default:3000")
    push(event() | {"inputs": [{"namespace": "file", "name": "/lake/orders"}]})
    if link is not None:
        push(json.dumps(link), key=LineageJobLink().xcom_key)
    links = ask()["links"]
    assert links["job"] == f"{leads_to}{LINK}"
    assert [d["url"].partition("/lineage/")[0] for d in links["datasets"]] == [leads_to]


def test_a_dataset_is_linked_by_the_name_that_the_backend_has_for_it(ask, push, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", "http://marquez:3000")
    nameless = {"namespace": "file", "name": ""}
    push(event() | {"inputs": [{"namespace": "s3://lake~eu", "name": "orders"}, nameless]})
    [found] = ask()["links"]["datasets"]
    assert (found["namespace"], found["name"]) == ("s3://lake~eu", "orders")
    assert "/lineage/dataset/s3%3A%2F%2Flake_eu/orders?" in found["url"]


DATAHUB_JOB = quote("urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),revenue)", safe="")
DATAHUB_ORDERS = quote("urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,DEV)", safe="")


@pytest.mark.parametrize("is_linked", [True, False], ids=["of the task", "of the configuration"])
def test_links_lead_to_pages_of_datahub_as_the_transport_names_them(
    ask, push, monkeypatch, is_linked
):
    link = f"http://own:9002/tasks/{DATAHUB_JOB}/Lineage"
    datahub = {"type": DATAHUB_TRANSPORT, "server": "http://gms:8080", "env": "DEV"}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(datahub))
    if is_linked:
        push(json.dumps(link), key=LineageJobLink().xcom_key)
    else:
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", "datahub")
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", "http://own:9002/")
    push(event() | {"inputs": [{"namespace": "s3://lake", "name": "orders"}]})
    links = ask()["links"]
    assert (links["backend"], links["job"]) == ("DataHub", link)
    [orders] = links["datasets"]
    assert orders["url"] == f"http://own:9002/dataset/{DATAHUB_ORDERS}/Lineage"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("s3://another/xcom/1", stored.CUSTOM_XCOM_BACKEND, id="custom backend"),
        pytest.param({"a": 1}, "no lineage of a Spark job", id="another value"),
        pytest.param(json.dumps({"a": 1}), "no lineage of a Spark job", id="as text"),
        pytest.param("[" * 100_000, stored.CUSTOM_XCOM_BACKEND, id="endless lists"),
    ],
)
def test_what_is_no_lineage_is_a_sentence(ask, push, value, message):
    push(value)
    answer = ask()
    assert answer["event"] is None
    assert message in answer["message"]


@pytest.mark.parametrize("name", ["subprocess.Popen", "airflow.sdk.definitions.asset.Asset"])
def test_nothing_that_a_task_pushed_is_made_an_object_of_in_the_server(ask, push, name):
    """Airflow makes objects of XComs in workers only: a task could name a class that acts."""
    push(json.dumps({"__classname__": name, "__version__": 1, "__data__": {"name": "x"}}))
    assert "no lineage of a Spark job" in ask()["message"]


@pytest.mark.parametrize("query", [{"map_index": 2**40}, {"map_index": -2}, {"try_number": 0}])
def test_numbers_that_fit_into_no_database_are_not_asked_for(ask, query):
    ask(422, **query)


def test_all_that_is_somebody_s_data_has_a_guard():
    """Those of the history have other ones, see ``test_history_page``."""
    of_dags = [route for route in make_app().routes if route.path.startswith("/api/")]
    of_dags = [route for route in of_dags if not route.path.startswith("/api/history/")]
    assert {route.path.rpartition("/")[2] for route in of_dags} == {
        "lineage",
        "partitions",
        "state",
    }
    assert all(len(route.dependencies) == 1 for route in of_dags)
