"""How long a task waits before spark-submit starts, beyond what the stock operator makes it wait.

A task runs in a process of its own, so what it imports counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from airflow_provider_sparklineage.spark import choice, fetching
from benchmarks.results import Result

RUNS = 9
GOAL_MS = 100

# Executes an operator as a task's process does, and prints the milliseconds until spark-submit is
# started. What a task's process has imported by then is imported: it is forked from the supervisor,
# has parsed the DAG, and has asked the OpenLineage provider for its START event.
TASK = """
import json, sys, time
from datetime import UTC, datetime
from types import SimpleNamespace
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.openlineage.plugins import listener, macros
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.execution_time import supervisor
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

operator = {"ours": SparkLineageSubmitOperator, "stock": SparkSubmitOperator}[sys.argv[1]](
    task_id="revenue", application="job.py", conf={"spark.app.name": "revenue"}
)
dag_run = SimpleNamespace(
    logical_date=datetime(2024, 5, 6, tzinfo=UTC), run_after=datetime(2024, 5, 7, tzinfo=UTC),
    conf={}, clear_number=0)
ti = SimpleNamespace(dag_id="shop", task_id="revenue", run_id="manual", try_number=1, map_index=-1,
    dag_run=dag_run, stats_tags={})
ti.get_template_context = lambda: {"ti": ti, "dag_run": dag_run}
started = []
SparkSubmitHook.submit = lambda self, application: started.append(
    (time.perf_counter(), self._build_spark_submit_command(application)))
ExecutorSafeguard.tracker.set(operator)
listener.get_openlineage_listener().adapter.get_or_create_openlineage_client()
begun = time.perf_counter()
operator.execute({"ti": ti, "dag_run": dag_run})
[(at, command)] = started
print(json.dumps({"ms": (at - begun) * 1000, "injected": "--jars" in command}))
"""


def submitting() -> Result:
    """Execute our operator and the stock one in turns, each in processes of its own."""
    choice.fetch_for(choice.spark_of("spark-submit"), "spark-submit")
    with tempfile.TemporaryDirectory() as folder:
        runs = {"ours": [], "stock": []}  # type: dict[str, list[float]]
        for _ in range(RUNS):
            for name, milliseconds in runs.items():
                milliseconds.append(_milliseconds(name, Path(folder)))
    ours, stock = min(runs["ours"]), min(runs["stock"])
    figures = f"ours {ours:.0f} ms, stock {stock:.0f} ms before spark-submit starts"
    return Result("wait for lineage before a submission", ours - stock, GOAL_MS, figures, " ms")


def _milliseconds(name: str, folder: Path) -> float:
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": '{"type": "console"}',
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(folder / "captures"),
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
        "AIRFLOW_CONN_SPARKLINEAGE_DEFAULT": '{"conn_type": "sparklineage"}',
        "XDG_CACHE_HOME": str(fetching.cache_folder().parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", TASK, name], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["injected"] is (name == "ours"), "nothing was injected, so nothing was measured"
    return float(told["ms"])
