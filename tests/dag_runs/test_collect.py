"""What a job did that nobody waited for, collected later: what Airflow's page and next run see."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.conftest import golden
from tests.remote_driver import RemoteDriver

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

SECRET = "pl4nted-s3cr3t"


@pytest.fixture
def lake(tmp_path, spark_submit, monkeypatch):
    """Give the folder that stands for a file system which workers and drivers reach."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    return tmp_path / "lake"


@pytest.fixture
def connection(airflow_db):
    """Keep a connection with a password in Airflow's database."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection("warehouse", "jdbc", password=SECRET))
    yield
    with create_session() as session:
        session.delete(session.query(Connection).filter_by(conn_id="warehouse").one())


def collect(run_id):
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "collect"]
    options = dict.fromkeys(("dag", "task", "now", "again", "dry_run"))
    return command.run(SimpleNamespace(run=run_id, conn_id="sparklineage_default", **options))


def deliver(lake):
    """Deliver what a job reports, a secret of Airflow's in it."""
    [manifest] = lake.glob("*/manifest.json")
    run_id = json.loads(manifest.read_text())["application_run_id"]
    events = golden("staging_chain").read_text()
    of_recording = json.loads(events.splitlines()[0])["run"]["runId"]
    events = events.replace(of_recording, run_id)
    events = events.replace('"description":"', f'"description":"{SECRET} ')
    assert SECRET in events
    RemoteDriver(manifest.parent, run_id).starts().delivers("events", events).ends()


def test_the_tab_and_the_next_run_see_what_was_collected(lake, run_dag, connection, capsys):
    from airflow.sdk import DAG
    from airflow.utils.session import create_session

    from airflow_provider_sparklineage.cli import collector
    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
    from airflow_provider_sparklineage.plugins import stored, task_lineage

    not_waiting = {"spark.yarn.submit.waitAppCompletion": "false"}
    with DAG("unawaited", schedule="@daily", start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", conf=not_waiting, durable=False
        )
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert run.state == "success"
    task = TaskIdentity("unawaited", "revenue", run.run_id, 1)

    def pushed():
        with create_session() as session:
            return stored.pushed(task, session)

    def shown():
        with create_session() as session:
            return task_lineage.lineage(task, session).event

    assert pushed().event["inputs"] == shown()["inputs"] == []
    deliver(lake)
    assert collect(run.run_id) == 0, capsys.readouterr()
    assert "could not be replaced" not in capsys.readouterr().err
    names = [dataset["name"] for dataset in pushed().event["inputs"]]
    assert names == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert shown() == pushed().event
    assert SECRET not in json.dumps(shown())
    # What another try has pushed is left alone.
    before = pushed()
    other = Written({**before.event, "inputs": []})
    assert not collector.replace_xcom(replace(task, try_number=2), other)
    assert pushed() == before
