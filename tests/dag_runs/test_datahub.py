"""DataHub by its transport in a connection: what a run leaves there, and what an outage costs."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.settings.connection import CONN_TYPE
from tests.lineage_backend import receiving
from tests.spark_submit_double import FakeSparkSubmit
from tests.unit.datahub.gms import TOKEN, Scripted, gms
from tests.unit.datahub.sdk import require_sdk

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

CLASS_PATH = "airflow_provider_sparklineage.datahub.DataHubTransport"
TASKS = ("revenue", "notify")
TABLES = "urn:li:dataset:"
DAY = datetime(2024, 5, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _sdk():
    require_sdk()


@pytest.fixture
def connection(airflow_db, monkeypatch):
    """Have Airflow's provider send by the transport of a connection."""
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT", raising=False)
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    # A worker's process has one client for its life, and this one may have sent before.
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)

    def connect(transport):
        fields = {"conn_type": CONN_TYPE, "password": TOKEN, "extra": {"transport": transport}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT", json.dumps(fields))

    return connect


@pytest.fixture
def archive(tmp_path, monkeypatch):
    home = tmp_path / "airflow"
    monkeypatch.setenv("AIRFLOW_HOME", str(home))
    return Archive(f"file://{home}/sparklineage/archive", is_default=True)


@pytest.fixture
def run(tmp_path, monkeypatch, run_dag, archive):
    """Run a task of Spark's and one of another kind; give the state of the run."""
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    fake = FakeSparkSubmit(tmp_path)
    fake.install(monkeypatch)
    fake.does("staging_chain")
    with DAG("shop", schedule=None, start_date=DAY) as dag:
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", observe=False)
        task >> BashOperator(task_id="notify", bash_command="true")
    return lambda: run_dag(dag, DAY).state


def to(server, **given):
    auth = {"type": "airflow_connection_api_key"}
    return {"type": CLASS_PATH, "server": server.url, "auth": auth, "timeout": 2} | given


def stored(server):
    """Give what the server has of each entity: the names of aspects by its URN."""
    found = {}
    for proposal in server.stored:
        found.setdefault(proposal["entityUrn"], set()).add(proposal["aspectName"])
    return found


def resend():
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "resend"]
    names = ("dag_id", "task_id", "run_id", "since")
    args = SimpleNamespace(**dict.fromkeys(names), dry_run=False, conn_id="sparklineage_default")
    return command.run(args)


def check_lineage(server):
    """Check that the output has its upstream tables, and a column of its what it is made of."""
    [revenue] = [
        urn for urn in stored(server) if urn.startswith("urn:li:dataset:") and "lake/revenue" in urn
    ]
    assert {"schemaMetadata", "upstreamLineage"} <= stored(server)[revenue]
    text = json.dumps([p["aspect"]["value"] for p in server.stored if p["entityUrn"] == revenue])
    assert "lake/orders" in text


def test_a_connection_sends_every_task_to_datahub(run, connection, archive):
    with gms() as server:
        connection(to(server))
        assert run() == "success"

    found = stored(server)
    flow = "urn:li:dataFlow:(airflow,shop,prod)"
    assert "dataFlowInfo" in found[flow]
    for task in TASKS:
        assert "dataJobInfo" in found[f"urn:li:dataJob:({flow},{task})"]
    # The DAG's own run is sent from another process, once the run has returned.
    assert sum(urn.startswith("urn:li:dataProcessInstance:") for urn in found) >= len(TASKS)
    check_lineage(server)
    assert archive.unsent() == []


def test_datahub_and_marquez_get_what_each_of_them_shows(run, connection, archive):
    with gms() as server, receiving() as marquez:
        http = {"type": "http", "url": marquez.url}
        connection({"type": "composite", "transports": {"datahub": to(server), "marquez": http}})
        assert run() == "success"

    check_lineage(server)
    assert [e["eventType"] for e in marquez.events if e["job"]["name"] == "shop.revenue"] == [
        "START",
        "COMPLETE",
    ]
    assert archive.unsent() == []


@contextmanager
def and_marquez(server):
    with receiving() as marquez:
        http = {"type": "http", "url": marquez.url}
        children = {"marquez": http, "datahub": to(server, timeout=1)}
        yield {"type": "composite", "transports": children}


@contextmanager
def alone(server):
    yield to(server, timeout=1)


@pytest.mark.long
@pytest.mark.parametrize("ways", [alone, and_marquez])
def test_what_datahub_did_not_take_is_sent_when_it_is_up(run, connection, archive, ways):
    with gms(always=Scripted(503)) as server, ways(server) as transport:
        connection(transport)
        assert run() == "success", "no task is harmed"
        assert len(archive.unsent()) == 1
        assert resend() == 1
        assert len(archive.unsent()) == 1
        server.always = None
        assert resend() == 0
        assert archive.unsent() == []

    check_lineage(server)
    assert "urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),revenue)" in stored(server)
