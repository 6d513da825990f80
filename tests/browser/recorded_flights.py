"""The recorded month of flights: its history, and its runs in Airflow's database.

After the month somebody wrote the flights of one day anew (``tests/history/record_flights.py``).
What was cleared then is not in it, so it is to be cleared. One more task wrote flights of a day
that no other run names; its DAG is the one that a user may not see.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.browser.auth_manager import DENIED_DAG

FOLDER = Path(__file__).parents[1] / "golden" / "history"
DAG_ID = "example_report_flight_delays"
TASKS = ("prepare_flights", "daily_delays", "weekly_report")
DAY, DENIED_DAY = "2013-01-15", "2013-03-31"
FLIGHTS = {"namespace": "file", "name": "/flights/lake/flights"}


def events() -> list[dict[str, Any]]:
    """Give the events of the month, and of the day that was written anew."""
    files = (FOLDER / f"flights_{part}.ndjson.gz" for part in ("month", "rewritten"))
    return [json.loads(line) for f in files for line in gzip.open(f).readlines()]


def denied() -> dict[str, Any]:
    """Give the event of a run that wrote a partition, of the DAG that a user may not see."""
    found = [e for e in events() if run_of(e) == DAY and e["job"]["name"].endswith(TASKS[0])]
    text = json.dumps(found[0]).replace(DAY, DENIED_DAY).replace(DAG_ID, DENIED_DAG)
    return {**(made := json.loads(text)), "run": {**made["run"], "runId": DENIED_RUN}}


def of_no_dag() -> list[dict[str, Any]]:
    """Give the events of runs that belong to no DAG: of dbt, and of a DAG that was deleted."""
    jobs = {"dbt.model": "delays_by_dbt", "deleted_dag.task": "delays_by_deleted"}
    return [
        {
            "eventType": "COMPLETE",
            "eventTime": f"{DAY}T12:00:00Z",
            "run": {"runId": f"00000000-0000-7000-8000-{n:012}"},
            "job": {"namespace": "dbt", "name": job},
            "inputs": [],
            "outputs": [{"namespace": "file", "name": f"/lake/{output}"}],
            "producer": "https://example.com/dbt",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
        }
        for n, (job, output) in enumerate(jobs.items(), 2)
    ]


DENIED_RUN = "00000000-0000-7000-8000-000000000001"


def run_of(event: dict[str, Any]) -> str:
    """Give the id of the DAG run that an event is of."""
    run_id: str = event["sending"]["runFacets"]["airflow"]["dagRun"]["run_id"]
    return run_id


def build(url: str, *added: dict[str, Any]) -> None:
    """Build a store of the month, and of other events."""
    from airflow_provider_sparklineage.history.engines.building import build
    from airflow_provider_sparklineage.history.sources import source_of
    from airflow_provider_sparklineage.history.store import Store

    file = Path(url.removeprefix("file://")).with_suffix(".ndjson")
    file.write_text("".join(f"{json.dumps(event)}\n" for event in (*events(), *added)))
    build(Store(url), [source_of(str(file))])


def write_runs() -> None:
    """Write the DAG and its successful runs into Airflow's database."""
    from airflow.sdk import DAG, BaseOperator
    from airflow.utils.session import create_session

    days = sorted({run_of(event) for event in events()})
    with DAG(DAG_ID, schedule=None, start_date=_midnight(days[0])) as dag:
        for task_id in TASKS:
            BaseOperator(task_id=task_id)
    with create_session() as session:
        written = _written(dag)
        for day in days:
            _write_run(written, day, session)


def _written(dag: Any) -> Any:
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG

    lazy = LazyDeserializedDAG.from_dag(dag)
    SerializedDAG.bulk_write_to_db("dags-folder", None, [lazy])
    SerializedDagModel.write_dag(lazy, bundle_name="dags-folder")
    return SerializedDagModel.get_dag(DAG_ID)


def _write_run(dag: Any, day: str, session: Any) -> None:
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    at = _midnight(day)
    run = dag.create_dagrun(
        run_id=day,
        logical_date=at,
        run_after=at,
        data_interval=(at, at),
        run_type=DagRunType.MANUAL,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.SUCCESS,
        session=session,
    )
    for instance in run.get_task_instances(session=session):
        instance.state = TaskInstanceState.SUCCESS
        instance.try_number = 1


def _midnight(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00:00Z")
