"""The names of DataFlows and DataJobs."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.datahub.configuration import Conversion
from airflow_provider_sparklineage.datahub.naming import AIRFLOW, JobName, job_name
from airflow_provider_sparklineage.event.model import PlainEvent, fitted
from airflow_provider_sparklineage.model.producer import producer
from tests.unit.datahub.airflow_events import DAG, event_of, recorded
from tests.unit.datahub.sdk import require_sdk

SPARK = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/spark"


def event(name, *, parent=None, run=None, job_type=None, sender=SPARK):
    facets = {"parent": {"job": {"name": parent}}} if parent else {}
    return {
        "producer": sender,
        "run": {"facets": {**facets, **(run or {})}},
        "job": {"name": name, "facets": {"jobType": job_type} if job_type else {}},
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (event("a.dag.group.task", parent="a.dag"), ("spark", "a.dag", "group.task")),
        (event("app", job_type={"jobType": "APPLICATION"}), ("spark", "app", "")),
        (
            event("a.dag", job_type={"jobType": "DAG", "integration": "AIRFLOW"}),
            (AIRFLOW, "a.dag", ""),
        ),
        (event("app.write.table", parent="app"), ("spark", "app", "write.table")),
        (event("app.write", parent="other"), ("spark", "app", "write")),
        (event("task", parent="task"), ("spark", "task", "task")),
        (event("dag.", parent="dag"), ("spark", "dag.", "dag.")),
        (event("a.b.c", run={"airflow": {"dag": {"dag_id": "a.b"}}}), ("spark", "a.b", "c")),
        (event("a.b", run={"airflow": [1], "parent": "none"}), ("spark", "a", "b")),
        (event(7), ("spark", "", "")),
        (event("a.b", sender=producer()), (AIRFLOW, "a", "b")),
        (event("a.b", sender="https://github.com/apache/airflow/tree/x"), (AIRFLOW, "a", "b")),
        (event("a.b", run={"processing_engine": {"name": " Flink "}}), ("flink", "a", "b")),
        (event("a.b", sender=None), ("unknown", "a", "b")),
    ],
)
def test_a_name_is_cut_into_flow_and_job(given, expected):
    assert job_name(fitted(given, PlainEvent)) == expected


def test_an_event_of_airflow_has_its_dag_and_its_task():
    assert job_name(fitted(event_of(DAG, "START"), PlainEvent)) == (AIRFLOW, DAG, "")
    part = event_of(f"{DAG}.load.part", "START")
    assert job_name(fitted(part, PlainEvent)) == (AIRFLOW, DAG, "load.part")


@pytest.mark.parametrize("instance", ["", "west"])
@pytest.mark.parametrize(
    ("dag", "task"), [("dag", "group.task"), ("täglich", "größe"), ("a,b", "c(d)␟")]
)
def test_the_urns_are_those_of_datahubs_airflow_plugin(dag, task, instance):
    require_sdk()
    from datahub.api.entities.datajob import DataFlow, DataJob

    how = Conversion(platform_instance=instance, cluster="prod")
    flow = DataFlow(orchestrator=AIRFLOW, id=dag, env="prod", platform_instance=instance or None)
    job = DataJob(id=task, flow_urn=flow.urn, platform_instance=instance or None)

    assert JobName(AIRFLOW, dag, task).flow_urn(how) == flow.urn.urn()
    assert JobName(AIRFLOW, dag, task).job_urn(how) == job.urn.urn()


@pytest.mark.parametrize("char", ["a", "é", "界", "(", "/"])
def test_a_urn_is_never_longer_than_the_server_takes(char):
    from urllib.parse import quote_plus

    name = JobName(AIRFLOW, char * 250, char * 250)
    other = JobName(AIRFLOW, char * 250 + "x", char * 250)

    assert len(quote_plus(name.job_urn(Conversion()))) <= 512
    assert name.flow_urn(Conversion()) != other.flow_urn(Conversion())


def test_all_recorded_tasks_are_of_their_dags():
    names = {job_name(fitted(one, PlainEvent)) for one in recorded()}

    assert names == {
        (AIRFLOW, DAG, ""),
        *((AIRFLOW, DAG, f"load.{task}") for task in ("read", "part", "flaky")),
        (AIRFLOW, DAG, "skipped"),
        (AIRFLOW, "bad", ""),
        (AIRFLOW, "bad", "fails"),
    }
