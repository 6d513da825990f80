"""A backend that is down when a task ends: its event is marked, and sent when it is up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.archive import Archive
from tests.loopback import Handler, serving
from tests.openlineage_spec import validate_event
from tests.spark_submit_double import FakeSparkSubmit

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


class _Handler(Handler):
    """Is up for what begins, and for what ends once that is possible."""

    def post(self):
        event = json.loads(self.body())
        self.server.received.append(event)
        is_down = self.server.is_down and event["eventType"] != "START"
        self.answer(503 if is_down else 201)


@pytest.fixture
def backend(monkeypatch):
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    with serving(_Handler, received=[], is_down=True) as running:
        transport = {"type": "http", "url": running.url, "retry": {"total": 0}}
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        # A worker's process has one client for its life, and this one may have sent before.
        monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)
        yield running


@pytest.fixture
def spark_submit(tmp_path, monkeypatch):
    fake = FakeSparkSubmit(tmp_path)
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give the archive a place of its own; Airflow itself has the one that it began with."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    return tmp_path / "airflow"


def resend():
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "resend"]
    names = ("dag_id", "task_id", "run_id", "since")
    args = SimpleNamespace(**dict.fromkeys(names), dry_run=False, conn_id="sparklineage_default")
    return command.run(args)


def named(facet):
    """Give a facet without the empty ones that Airflow puts into parents."""
    if not isinstance(facet, dict):
        return facet
    return {key: named(value) for key, value in facet.items() if key != "facets"}


@pytest.mark.parametrize(
    "in_thread",
    [pytest.param("False", id="fork"), pytest.param("True", id="thread", marks=pytest.mark.long)],
)
def test_an_event_that_did_not_arrive_is_sent_later_as_it_was(
    spark_submit, home, airflow_db, backend, run_dag, monkeypatch, in_thread
):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__EXECUTE_IN_THREAD", in_thread)
    spark_submit.does("staging_chain")
    with DAG("down", schedule="@daily", start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="job.py", observe=False)
    assert run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC)).state == "success"
    archive = Archive(f"file://{home}/sparklineage/archive", is_default=True)
    assert len(archive.unsent()) == 1
    start, refused = (e for e in backend.received if e["job"]["name"] == "down.revenue")
    backend.received.clear()

    assert resend() == 1
    assert len(archive.unsent()) == 1
    backend.is_down = False
    backend.received.clear()
    assert resend() == 0
    assert archive.unsent() == []

    start_again, end = backend.received
    for again, before in ((start_again, start), (end, refused)):
        assert again["eventType"] == before["eventType"]
        assert again["run"]["runId"] == before["run"]["runId"]
        for facet in ("parent", "nominalTime", "airflow"):
            assert named(again["run"]["facets"][facet]) == named(before["run"]["facets"][facet])
        assert again["job"]["name"] == before["job"]["name"]
        assert again["job"]["facets"]["jobType"] == before["job"]["facets"]["jobType"]
        validate_event(again)
    assert start_again["eventTime"] == start["eventTime"]
    assert (end["inputs"], end["outputs"]) == (refused["inputs"], refused["outputs"])
    ours = {key for key in refused["run"]["facets"] if key.startswith("sparkLineage_")}
    assert ours
    for key in ours:
        assert end["run"]["facets"][key] == refused["run"]["facets"][key]


def test_an_event_that_arrived_is_not_marked(
    spark_submit, home, airflow_db, backend, run_dag, monkeypatch
):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    backend.is_down = False
    with DAG("up", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="job.py", observe=False)
    assert run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC)).state == "success"
    archive = Archive(f"file://{home}/sparklineage/archive", is_default=True)
    [entry] = archive.entries("up")
    assert archive.unsent() == []
    # It was measured in the process that Airflow had forked to send the event.
    assert archive.answered(entry.name).seconds > 0
