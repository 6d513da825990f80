"""The doctor's trial of a task: a small application goes to the task's own service."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime

import pytest
from airflow.sdk import DAG

from airflow_provider_sparklineage.cli.doctor import task as tasks
from airflow_provider_sparklineage.settings.checks import Status

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]

SERVICES = (
    "livy",
    "spark_kubernetes",
    "emr_serverless",
    "emr_containers",
    "emr_steps",
    "dataproc_job",
    "dataproc_batch",
    "synapse",
)


def of(operator):
    """Give the doctor a task that has this operator."""
    with DAG("shop", schedule=None, start_date=datetime(2024, 5, 6, tzinfo=UTC)) as dag:
        dag.add_task(operator)
    return tasks.of_dag(dag, operator.task_id)


@pytest.mark.parametrize("service", SERVICES)
def test_the_trial_runs_by_the_service_of_the_task_and_changes_nothing_of_it(
    service, submit_by, location
):
    task = of(submit_by(service).operator("staging_chain", "/lake", conf={"spark.app.name": "x"}))
    operator = task.operator
    before = deepcopy([getattr(operator, name) for name in operator.lineage_injected_fields])
    checks, machine = tasks.check(task)
    assert {c.name: c.message for c in checks if c.status is not Status.OK} == {}
    assert {tasks.PROVIDER, tasks.SERVICE, tasks.JOB} <= {c.name for c in checks}
    trial = tasks.run_trial(task, machine)
    assert trial.status is Status.OK, trial
    assert "its lineage is complete" in trial.message
    assert [getattr(operator, name) for name in operator.lineage_injected_fields] == before
    assert [each.name for each in location.iterdir()] == [".tools"]
    assert [*location.glob(".tools/*/reached-by-*")]
