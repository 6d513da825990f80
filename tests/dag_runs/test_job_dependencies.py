"""Partition keys and ``jobDependencies``: Airflow's provider writes them, our events fit them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.dag_runs.states import undated
from tests.observed_writes import written

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

KEY = "2024-05-06"


@pytest.fixture
def producing(spark_submit):
    """Make a DAG whose task writes a partition and records it on its asset."""
    from airflow.sdk import DAG, Asset

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    spark_submit.does("staging_chain", observations=written(KEY))
    start = datetime(2024, 5, 1, tzinfo=UTC)
    with DAG("producing", schedule=None, start_date=start) as dag:
        SparkLineageSubmitOperator(
            task_id="task",
            application="job.py",
            writes=["/lake/revenue/dt={{ partition_key }}"],
            outlets=[Asset("file:///lake/revenue")],
            record_asset_partitions=True,
        )
    return dag


def consumed_by(dag_id):
    """Make a run of a DAG that the asset's events have triggered; give its id."""
    from airflow.models.asset import AssetEvent
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType
    from sqlalchemy import select

    with create_session() as session:
        run = DagRun(
            dag_id=dag_id,
            run_id="triggered",
            run_type=DagRunType.ASSET_TRIGGERED,
            run_after=datetime(2024, 5, 7, tzinfo=UTC),
            state=DagRunState.RUNNING,
        )
        events = select(AssetEvent).where(AssetEvent.source_dag_id == "producing")
        run.consumed_asset_events = list(session.scalars(events))
        session.add(run)
    return "triggered"


def test_a_run_that_our_task_has_triggered_depends_on_the_run_of_our_event(
    producing, run_dag, events_of
):
    from airflow.providers.openlineage.utils.utils import get_dag_job_dependency_facet
    from openlineage.client.serde import Serde

    with undated(KEY):
        run_dag(producing, None)
    *_, sent = events_of("producing.task", 2)

    facet = get_dag_job_dependency_facet("consuming", consumed_by("consuming"))["jobDependencies"]
    [upstream] = Serde.to_dict(facet)["upstream"]
    assert upstream["job"] == {key: sent["job"][key] for key in ("namespace", "name")}
    assert upstream["run"]["runId"] == sent["run"]["runId"]
    [event] = upstream["airflow"]["asset_events"]
    [output] = [d for d in sent["outputs"] if d["name"] == "/lake/revenue"]
    [named] = output["outputFacets"]["subset"]["outputCondition"]["partitions"]
    assert event["partition_key"] == named["dimensions"]["dt"] == KEY


def test_the_events_of_a_task_have_the_key_as_airflow_writes_it_and_leave_dependencies_to_the_dag(
    producing, run_dag, events_of, tmp_path, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", f"file://{tmp_path}/archive")
    with undated(KEY):
        run_dag(producing, None)
    start, complete = events_of("producing.task", 2)[-2:]
    [path] = [p for p in (tmp_path / "archive").rglob("*.json*") if p.is_file()]
    archived = json.loads(path.read_text())
    added = archived["sending"]["runFacets"]

    runs = [facets["airflow"]["dagRun"] for facets in (start["run"]["facets"], added)]
    runs.append(complete["run"]["facets"]["airflow"]["dagRun"])
    assert [run["partition_key"] for run in runs] == [KEY] * 3
    assert not [e for e in (start, complete, archived) if "jobDependencies" in e["run"]["facets"]]
    assert "jobDependencies" not in added
