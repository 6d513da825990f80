"""The whole set-up by one connection and one setting: a task's lineage reaches an HTTP server."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.openlineage_spec import validate_event
from tests.operators.conftest import FakeSparkSubmit

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


class Collector(ThreadingHTTPServer):
    """A backend that takes every event."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def events_of(self, job):
        return [event for _, event in self.received if event["job"]["name"] == job]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append((dict(self.headers), event))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def backend():
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(params=["environment", "database"])
def one_connection(request, backend, airflow_db, monkeypatch):
    """Set up all there is to set up: the connection, and the setting that names it."""
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    extra = {
        "transport": {
            "type": "http",
            "url": backend.url,
            "auth": {"type": "airflow_connection_api_key"},
        },
        "max_partitions": 7,
    }
    fields = {"conn_type": "sparklineage", "password": "k3y-of-marquez", "extra": extra}
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    # A worker's process has one client for its life, and this one may have sent before.
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)
    if request.param == "environment":
        monkeypatch.setenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT", json.dumps(fields))
        yield
        return
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection("sparklineage_default", **fields | {"extra": json.dumps(extra)}))
    yield
    with create_session() as session:
        session.query(Connection).filter_by(conn_id="sparklineage_default").delete()


@pytest.fixture
def spark_submit(tmp_path, monkeypatch):
    fake = FakeSparkSubmit(tmp_path)
    fake.install(monkeypatch)
    return fake


def test_one_connection_and_one_setting_are_the_whole_set_up(
    spark_submit, one_connection, backend, run_dag
):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    spark_submit.does("staging_chain")
    with DAG("one_connection", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert run.state == "success"
    start, complete = backend.events_of("one_connection.revenue")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    validate_event(complete)
    assert "/lake/orders" in [dataset["name"] for dataset in complete["inputs"]]
    [revenue] = [d for d in complete["outputs"] if d["name"] == "/lake/revenue"]
    assert "columnLineage" in revenue["facets"]
    headers, _ = backend.received[0]
    assert headers["Authorization"] == "Bearer k3y-of-marquez"
    given = spark_submit.given
    assert "k3y-of-marquez" not in json.dumps([given.argv, given.files]), "Spark has a secret"
