"""The full set-up by one connection and one setting: a task's lineage reaches an HTTP server."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime

import pytest

from tests.conftest import long_after
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
    """Notes every event, and answers as configured; with no status, never."""

    def post(self):
        self.server.received.append((dict(self.headers), json.loads(self.body())))
        if self.server.status is None:
            self.server.gate.wait(60)
        else:
            self.answer(self.server.status, self.server.page)


@pytest.fixture
def backend():
    with serving(_Handler, received=[], status=201, page="", gate=threading.Event()) as running:
        yield running


@pytest.fixture(params=long_after(1, ["database", "environment"]))
def one_connection(request, backend, airflow_db, monkeypatch):
    """Set up all there is to set up: the connection, and the setting that names it."""
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    extra = {
        "transport": {
            "type": "http",
            "url": backend.url,
            "retry": {"total": 0},
            "timeout": 1,
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


def test_one_connection_and_one_setting_are_the_full_set_up(
    spark_submit, one_connection, backend, run_dag
):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    spark_submit.does("staging_chain")
    with DAG("one_connection", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert run.state == "success"
    job = "one_connection.revenue"
    start, complete = (event for _, event in backend.received if event["job"]["name"] == job)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    validate_event(complete)
    assert "/lake/orders" in [dataset["name"] for dataset in complete["inputs"]]
    [revenue] = [d for d in complete["outputs"] if d["name"] == "/lake/revenue"]
    assert "columnLineage" in revenue["facets"]
    headers, _ = backend.received[0]
    assert headers["Authorization"] == "Bearer k3y-of-marquez"
    given = spark_submit.given
    assert "k3y-of-marquez" not in json.dumps([given.argv, given.files]), "Spark has a secret"


@pytest.mark.parametrize("one_connection", ["environment"], indirect=True)
@pytest.mark.parametrize(
    "relays",
    [pytest.param(False, id="", marks=pytest.mark.long), pytest.param(True, id="relaying")],
)
@pytest.mark.parametrize(
    ("status", "page"),
    long_after(
        1,
        [
            pytest.param(500, "", id="500"),
            pytest.param(404, "<html>Not found</html>", id="404"),
            pytest.param(413, "", id="413"),
            pytest.param(None, "", id="never"),
        ],
    ),
)
def test_a_backend_that_takes_nothing_fails_no_task(
    spark_submit, one_connection, backend, run_dag, monkeypatch, tmp_path, status, page, relays
):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    backend.status, backend.page = status, page
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", f"file://{tmp_path}/archive")
    spark_submit.does("staging_chain")
    with DAG("refused", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", observe=False, relay_spark_events=relays
        )
    try:
        assert run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC)).state == "success"
    finally:
        backend.gate.set()
    events = [e for _, e in backend.received if e["job"]["name"] == "refused.revenue"]
    assert [e["eventType"] for e in events] == ["START", "COMPLETE"]
    [archived] = (tmp_path / "archive").rglob("*.json")
    event = json.loads(archived.read_text())
    assert "/lake/orders" in [dataset["name"] for dataset in event["inputs"]]
    declared = event["run"]["facets"]["sparkLineage_capture"]["degradations"]
    assert ("relay_incomplete" in [d["code"] for d in declared]) is relays
