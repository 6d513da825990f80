"""The tab's part of the API server, on a database with task instances and XComs."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.models import import_all_models
from airflow.models.base import Base
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, insert, update
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.plugins.app import make_app

NOW = datetime(2024, 5, 6, tzinfo=UTC)
OF_TASK = {"dag_id": "shop", "run_id": "manual", "task_id": "revenue"}
LATEST = 3


def event(job="shop.revenue"):
    """Make the event of a try that succeeded."""
    return {
        "eventType": "COMPLETE",
        "job": {"namespace": "tests", "name": job},
        "run": {"facets": {"sparkLineage_capture": {}}},
    }


@pytest.fixture(scope="module")
def engine():
    import_all_models()
    made = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    Base.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def session(engine):
    """Give a session in which a task's third try has ended; what is done in it is rolled back."""
    with engine.connect() as connection, connection.begin() as everything:
        of_run = {"dag_id": "shop", "run_id": "manual"}
        run = {**of_run, "run_type": "manual", "run_after": NOW, "state": "success"}
        connection.execute(insert(DagRun).values(id=1, **run, span_status="not_started"))
        tried = {"try_number": LATEST, "max_tries": 3, "state": "success", "pool": "p"}
        for map_index in (-1, 7):
            ti = {**OF_TASK, **tried, "map_index": map_index, "span_status": "not_started"}
            connection.execute(insert(TaskInstance).values(id=uuid.uuid4(), **ti))
        with Session(connection) as made:
            yield made
        everything.rollback()


@pytest.fixture(scope="package")
def made_app():
    """Make the application, whose routes take longer to make than to be asked."""
    return make_app()


@pytest.fixture
def app(made_app):
    """Give the application; what a test overrides in it is forgotten."""
    yield made_app
    made_app.dependency_overrides.clear()


@pytest.fixture
def ask(app, session):
    """Ask as a user who may see the DAG; those who may not are in the browser's tests."""
    [route] = [r for r in app.routes if r.path.endswith("/lineage")]
    for guard in route.dependencies:
        app.dependency_overrides[guard.dependency] = lambda: None
    app.dependency_overrides[_get_session] = lambda: session
    client = TestClient(app, raise_server_exceptions=False)

    def ask(status=200, what="lineage", **query):
        query = {"run_id": "manual", "task_id": "revenue", **query}
        answer = client.get(f"/api/dags/shop/{what}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask


@pytest.fixture
def push(session):
    """Store an XCom as the task's; ``value`` is what comes out of the database."""

    def push(value, map_index=-1, key="sparklineage"):
        row = {**OF_TASK, "dag_run_id": 1, "map_index": map_index, "key": key}
        session.execute(insert(XComModel).values(**row, value=value, timestamp=NOW))

    return push


@pytest.fixture
def is_at(session):
    """Put the task into a state, and to a try."""

    def put(state, try_number=LATEST, map_index=None):
        values = {"state": state, "try_number": try_number}
        query = update(TaskInstance).where(TaskInstance.run_id == OF_TASK["run_id"])
        if map_index is not None:
            query = query.where(TaskInstance.map_index == map_index)
        session.execute(query.values(**values))

    return put


@pytest.fixture
def archive(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", (tmp_path / "archive").as_uri())
    return Archive((tmp_path / "archive").as_uri())


@pytest.fixture
def ran(session):
    """Add a run of a day in May 2024, in which the task pushed an event, or none."""
    ids = iter(range(2, 1000))

    def add(day, pushed=None, state="success", map_index=-1, task_id="revenue"):
        of_run = {"dag_id": "shop", "run_id": f"run of {day}"}
        at = NOW.replace(day=1) + timedelta(days=day - 1)
        number = next(ids)
        run = {**of_run, "run_type": "scheduled", "logical_date": at, "run_after": at}
        session.execute(
            insert(DagRun).values(id=number, **run, state=state, span_status="not_started")
        )
        of_task = {**of_run, "task_id": task_id, "map_index": map_index}
        tried = {"try_number": 1, "max_tries": 3, "state": state, "pool": "p"}
        session.execute(
            insert(TaskInstance).values(
                id=uuid.uuid4(), **of_task, **tried, span_status="not_started"
            )
        )
        if pushed is not None:
            row = {**of_task, "dag_run_id": number, "key": "sparklineage"}
            session.execute(insert(XComModel).values(**row, value=pushed, timestamp=at))

    return add


@pytest.fixture
def map_to(session, push):
    """Add a mapped sibling that has succeeded, and pushed an event."""

    def add(map_index, pushed):
        ti = {**OF_TASK, "map_index": map_index, "try_number": 1, "max_tries": 3, "pool": "p"}
        values = {**ti, "state": "success", "span_status": "not_started"}
        session.execute(insert(TaskInstance).values(id=uuid.uuid4(), **values))
        push(pushed, map_index=map_index)

    return add
