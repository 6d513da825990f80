"""The example with stock operators, and one environment variable, next to the one with ours."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adoption.adopting import STOCK_CLASS
from tests.adoption.comparing import without_run

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
OURS, STOCK = "example_report_flight_delays", "example_adopt_operators"
DAY = "2013-01-07"
TASKS = ["prepare_flights", "daily_delays", "weekly_report"]
TIMEOUT_S = 600  # of three Sparks on a machine that has other work


@pytest.fixture(scope="module")
def events(airflow_home, listener):
    """Run both, each in an Airflow of its own; gives the events of the tasks of each."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    homes = {dag_id: airflow_home(dag_id) for dag_id in (OURS, STOCK)}

    def start(dag_id, **more):
        home = homes[dag_id]
        environment = home.environment | {
            "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(listener),
            "PATH": path,
        }
        run = json.dumps({"lake": str(home.folder / "lake")})
        command = [sys.executable, "-m", "airflow", "dags", "test", dag_id, DAY, "--conf", run]
        with home.log.open("w") as log:
            return subprocess.Popen(command, env=environment | more, stdout=log, stderr=log)

    running = [start(OURS), start(STOCK, AIRFLOW__SPARKLINEAGE__ADOPT="all")]
    try:
        ended = [process.wait(TIMEOUT_S) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert ended == [0, 0], [home.log.read_text()[-3000:] for home in homes.values()]
    return {dag_id: of_tasks(home, dag_id) for dag_id, home in homes.items()}


def of_tasks(home, dag_id):
    """Give the events of tasks, by task and type, without what is of a run."""
    doc = ast.get_docstring(ast.parse((EXAMPLES / f"{dag_id}.py").read_text()), clean=False)
    texts = {json.dumps(doc)[1:-1]: "DOC", str(home.folder): "/home", dag_id: "DAG"}
    every = [json.loads(line) for line in without_run(home.events, texts).splitlines()]
    found = {}
    for event in every:
        _, _, task = event["job"]["name"].partition(".")
        if task:
            found[task, event["eventType"]] = event
    return found


@pytest.mark.parametrize("kind", ["START", "COMPLETE"])
@pytest.mark.parametrize("task", TASKS)
def test_the_events_of_a_task_are_the_same(events, task, kind):
    ours, stock = events[OURS][task, kind], events[STOCK][task, kind]
    assert stock["inputs"] or kind == "START"
    assert of_airflow(stock)["task"]["operator_class_path"] == STOCK_CLASS
    for event in (ours, stock):
        # What the two files say of themselves, which is neither of the tasks nor of their jobs.
        del of_airflow(event)["dag"]
        task_facet = of_airflow(event)["task"]
        for name in ("operator_class", "operator_class_path", "operator_provider_version"):
            task_facet.pop(name, None)
        # Of what Spark's listener wrote, which has the names of the home and the DAG.
        event["run"]["facets"].get("sparkLineage_capture", {}).pop("bytes", None)
    assert stock == ours


def of_airflow(event):
    """Give the facet of what Airflow knows of the task."""
    return event["run"]["facets"]["airflow"]
