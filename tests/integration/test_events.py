"""What is sent to a real Marquez: it takes every event, shows all of it, and its links open."""

from __future__ import annotations

import random
import uuid
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.event.pipeline import events_of, ready_to_send
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Adaptation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER, RECORDED
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer
from tests.unit.lineage.test_hostile_events import CASES, merged, spoiled

pytestmark = needs_marquez
MARQUEZ = BACKENDS["marquez"]
TO_MARQUEZ = Adaptation(backend="marquez", airflow_url="https://airflow.example", has_history=True)
NAMESPACE = f"recorded/{uuid.uuid4()}"


def for_marquez(lineage, report):
    return events_of(lineage, TO_MARQUEZ, report, header=HEADER).adapted


@pytest.fixture(scope="module")
def server():
    return MarquezServer(MARQUEZ_URL)


@pytest.fixture
def sent(server):
    """Send merged events; afterwards its lists still answer."""

    def send(event):
        event["job"]["namespace"] = NAMESPACE
        event["run"]["runId"] = str(uuid.uuid4())
        server.send(event)
        return event

    yield send
    for path in ("namespaces", "jobs", "sources"):
        server.get(path, query="?limit=10")


@pytest.mark.parametrize(("spark", "case"), RECORDED)
def test_every_recorded_job_is_shown_in_full(sent, server, recorded, spark, case):
    found = recorded(case, spark)
    event = sent(ready_to_send(for_marquez(found.lineage, ReadReport()), TO_MARQUEZ))
    read = {(d["namespace"], d["name"]) for d in event["inputs"]}
    for output in event["outputs"]:
        name = DatasetName(output["namespace"], output["name"])
        page = server.get("namespaces", name.namespace, "datasets", name.name)
        fields = (output["facets"].get("columnLineage") or {}).get("fields") or {}
        shown = {
            (column["name"], source["namespace"], source["dataset"], source["field"])
            for column in page["columnLineage"] or ()
            for source in column["inputFields"]
        }
        # Of what is no input of the run (a constant that came by a staging table) it draws nothing.
        expected = {
            (column, s["namespace"], s["name"], s["field"])
            for column, of in fields.items()
            for s in of["inputFields"]
            if (s["namespace"], s["name"]) in read
        }
        assert expected <= shown
        assert set(fields) <= {field["name"] for field in page["fields"]}
        _assert_described(page, output["facets"])
        _assert_opens(server, MARQUEZ.dataset_page("http://web", name), "tableLevelNode", "lineage")
        for column in sorted({column for column, *_ in expected})[:1]:
            page = MARQUEZ.columns_page("http://web", name, column)
            _assert_opens(server, page, "column", "column-lineage")
    job = MARQUEZ.job_page("http://web", NAMESPACE, event["job"]["name"])
    _assert_opens(server, job, "tableLevelNode", "lineage")
    text = server.get("namespaces", NAMESPACE, "jobs", event["job"]["name"])["description"]
    assert text == event["job"]["facets"]["documentation"]["description"]
    run = server.get("jobs", "runs", event["run"]["runId"])
    assert _lines(run) == _lines(event["run"])


def _assert_described(page, facets):
    """Compare what the page says of a dataset, and of each column, with what was sent."""
    assert page["description"] == facets.get("documentation", {}).get("description")
    assert {field["name"]: field["description"] for field in page["fields"]} == {
        field["name"]: field.get("description")
        for field in facets.get("schema", {}).get("fields", ())
    }


def _lines(run):
    check = run["facets"].get("sparkLineage_partitionCheck", {})
    return {key: text for key, text in check.items() if " " in key}


def _assert_opens(server, page, parameter, endpoint):
    """Ask for what a page asks for; a page that does not open must not be linked to."""
    if page is not None:
        [node] = parse_qs(urlsplit(page).query)[parameter]
        answer = server.get(endpoint, query=f"?depth=1&nodeId={quote(node, safe='')}")
        assert node in {entry["id"] for entry in answer["graph"]}


@pytest.mark.parametrize("seed", range(40))
def test_no_spoiled_event_breaks_it(sent, seed):
    chance = random.Random(seed)
    lineage, report = merged(*spoiled(chance.choice(CASES), chance, chance.randint(1, 12)))
    sent(for_marquez(lineage, report))
