"""A real spark-submit in a BashOperator, collected: the lineage that the operator would report."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.record_events import APPLICATIONS

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
}


@pytest.fixture
def lake(orders_lake, tmp_path):
    return str(shutil.copytree(orders_lake, tmp_path / "lake"))


@pytest.fixture
def captures(monkeypatch, tmp_path):
    folder = tmp_path / "captures"
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(folder))
    return folder


def collect(run_id):
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "collect"]
    options = dict.fromkeys(("dag", "task", "now", "again", "dry_run"))
    return command.run(SimpleNamespace(run=run_id, conn_id="sparklineage_default", **options))


def reported(event):
    """Give what an event says of its datasets, but for when it was."""
    sides = {}
    for side in ("inputs", "outputs"):
        for dataset in event[side]:
            facets = dict(dataset.get("facets", {}))
            for key in ("inputFacets", "outputFacets"):
                facets |= dataset.get(key, {})
            facets.pop("version", None)
            sides[side, dataset["name"]] = facets
    return sides


@pytest.mark.long
def test_what_is_collected_of_a_command_is_what_the_operator_reports(
    spark_on_path, lake, captures, run_dag, events_of, tmp_path, capsys
):
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG
    from airflow.utils.session import create_session

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
    from airflow_provider_sparklineage.plugins import stored
    from airflow_provider_sparklineage.spark.submit import listener_selection

    listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")
    application = f"{APPLICATIONS}/staging_chain.py"
    flags = " ".join(f"--conf {key}={value}" for key, value in CONF.items())
    by_args = (
        f"spark-submit {{{{ macros.sparklineage.submit_args() }}}} {flags} {application} {lake}"
    )
    with DAG("shell_dag", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        by_args = BashOperator(task_id="by_args", bash_command=by_args)
        by_folder = BashOperator(
            task_id="by_folder",
            bash_command=f"spark-submit {flags} {application} {lake}; exit 3",
            env={"SPARK_CONF_DIR": "{{ macros.sparklineage.spark_conf_dir() }}"},
            append_env=True,
        )
        by_operator = SparkLineageSubmitOperator(
            task_id="by_operator",
            application=application,
            application_args=[lake],
            conf=CONF,
            trigger_rule="all_done",
        )
        by_args >> by_folder >> by_operator
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert len(list(captures.glob("*/manifest.json"))) == 2
    assert collect(run.run_id) == 0, capsys.readouterr()
    assert "could not be replaced" not in capsys.readouterr().err
    archive = Archive(f"file://{os.environ['AIRFLOW_HOME']}/sparklineage/archive", is_default=True)
    tries = {t: TaskIdentity("shell_dag", t, run.run_id, 1) for t in dag.task_ids}
    events = {name: archive.read(task) for name, task in tries.items()}
    expected = reported(events["by_operator"])
    assert len(expected) == 5
    assert reported(events["by_args"]) == expected
    assert reported(events["by_folder"]) == expected
    # As Airflow has it: the second task has failed after its job.
    assert [events[t]["eventType"] for t in ("by_args", "by_folder")] == ["COMPLETE", "FAIL"]
    with create_session() as session:
        assert stored.pushed(tries["by_args"], session).event["outputs"]
    # One run of one job: Airflow's own events, then those that were collected.
    sent = events_of("shell_dag.by_args", 4)
    assert [e["eventType"] for e in sent] == ["START", "COMPLETE", "START", "COMPLETE"]
    assert len({(e["job"]["namespace"], e["run"]["runId"]) for e in sent}) == 1
    assert [bool(e["outputs"]) for e in sent] == [False, False, True, True]
    # A failed one is kept.
    assert [f.parent.name[:20] for f in captures.glob("*/manifest.json")] == [
        "shell_dag.by_folder-"
    ]


def test_each_try_ended_as_airflow_knows(captures, spark_submit, run_dag, capsys, monkeypatch):
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.cli import collector

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(captures))
    spark_submit.does("staging_chain")
    command = (
        "spark-submit {{ macros.sparklineage.submit_args() }} job.py; exit {{ 2 - ti.try_number }}"
    )
    with DAG("retried_dag", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        BashOperator(task_id="job", bash_command=command, retries=1, retry_delay=timedelta(0))
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert run.state == "success"
    tries = [TaskIdentity("retried_dag", "job", run.run_id, number) for number in (1, 2, 3)]
    assert [collector.state_of(task) for task in tries] == ["FAIL", "COMPLETE", ""]
    assert collect(run.run_id) == 0, capsys.readouterr()
    archive = Archive(f"file://{os.environ['AIRFLOW_HOME']}/sparklineage/archive", is_default=True)
    assert [archive.read(task)["eventType"] for task in tries[:2]] == ["FAIL", "COMPLETE"]
