"""How long a task waits before spark-submit starts, beyond what the stock operator makes it wait.

Three things come before it: the task's fields are rendered, the OpenLineage provider asks for the
START event in a process that it forks and waits for, and ``execute()`` sets the submission up. A
task runs in a process of its own, so what it imports counts. Not counted are the import of the
operator's module, which has a figure of its own, and what Airflow itself needs to answer (here it
answers at once: with the lineage of the task's last run, and a connection from the environment).
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import airflow_provider_sparklineage
from airflow_provider_sparklineage.spark.submit import fetching, listener_selection
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 9
GOAL_MS = 100
PHASES = ("rendering", "START", "execute")

# Runs an operator as a task's process does, and prints the milliseconds of wall clock and of CPU
# until each phase has ended, the last one when spark-submit is started. What a task's process has
# imported by then is imported: it is forked from the supervisor, and has parsed the DAG.
TASK = """
import json, os, resource, sys, time
from datetime import UTC, datetime
from types import SimpleNamespace
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.openlineage.plugins import listener, macros
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.execution_time import supervisor, task_runner
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

operator = {"ours": SparkLineageSubmitOperator, "stock": SparkSubmitOperator}[sys.argv[1]](
    task_id="revenue", application="job.py", conf={"spark.app.name": "revenue"},
    application_args=["--date", "{{ ds }}", "--output", "s3a://lake/revenue/dt={{ ds }}"],
)
of_last_run = json.loads(sys.argv[2])
date = datetime(2024, 5, 6, tzinfo=UTC)
dag_run = SimpleNamespace(logical_date=date, run_after=date, conf={}, clear_number=0)
ti = SimpleNamespace(dag_id="shop", task_id="revenue", run_id="manual", try_number=1, map_index=-1,
    dag_run=dag_run, stats_tags={}, xcom_push=lambda **pushed: None,
    xcom_pull=lambda **asked: of_last_run,
    get_previous_ti=lambda **asked: SimpleNamespace(run_id="before", try_number=1))
context = {"ti": ti, "dag_run": dag_run, "logical_date": date, "ds": "2024-05-06"}
ti.get_template_context = lambda: context
ended = []

def end(phase):
    cpu = sum(sum(resource.getrusage(who)[:2]) for who in
              (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ended.append((phase, time.perf_counter() * 1000, cpu * 1000))

def submit(hook, application):
    end("execute")
    ended.append(hook._build_spark_submit_command(application))

SparkSubmitHook.submit = submit
ExecutorSafeguard.tracker.set(operator)
end("import")
operator.render_template_fields(context)
end("rendering")
child = os.fork()
if not child:
    facets = getattr(operator, "get_openlineage_facets_on_start", lambda: None)()
    assert facets is None or [d.name for d in facets.outputs] == ["/lake/revenue"], facets
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
end("START")
operator.execute(context)
command = ended.pop(4)
print(json.dumps({"ended": ended, "injected": "--jars" in command}))
"""

_SCHEMA = {"fields": [{"name": f"column_{number}", "type": "string"} for number in range(20)]}
_LAST_RUN = {
    "eventType": "COMPLETE",
    "job": {"namespace": "default", "name": "shop.revenue"},
    "run": {
        "runId": "01234567-89ab-7cde-8f01-23456789abcd",
        "facets": {"sparkLineage_capture": {}},
    },
    "inputs": [{"namespace": "s3://lake", "name": "/lake/orders", "facets": {"schema": _SCHEMA}}],
    "outputs": [{"namespace": "s3://lake", "name": "/lake/revenue", "facets": {"schema": _SCHEMA}}],
}


def measured() -> Iterator[Result]:
    """Run our operator and the stock one in turns, each in processes of its own."""
    listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")
    # As pip leaves an installed package.
    compileall.compile_dir(Path(airflow_provider_sparklineage.__path__[0]), quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        runs = {"ours": [], "stock": []}  # type: dict[str, list[list[tuple[float, float]]]]
        for _ in range(RUNS):
            for name, measured in runs.items():
                measured.append(_phases(name, Path(folder)))
    ours, stock = (min(sum(wall for wall, _ in run) for run in runs[who]) for who in runs)
    cpu = [min(sum(cpu for _, cpu in run) for run in runs[who]) for who in runs]
    of_each = (min(run[number][0] for run in runs["ours"]) for number in range(len(PHASES)))
    phases = ", ".join(f"{name} {ms:.0f}" for name, ms in zip(PHASES, of_each, strict=True))
    figures = (
        f"ours {ours:.0f} ms ({phases}), stock {stock:.0f} ms before spark-submit starts; "
        f"CPU {cpu[0]:.0f} and {cpu[1]:.0f} ms"
    )
    yield Result("wait for lineage before a submission", ours - stock, GOAL_MS, figures, " ms")


def _phases(name: str, folder: Path) -> list[tuple[float, float]]:
    """Give the milliseconds of each phase: by the clock, and of CPU."""
    transport = {"type": "http", "url": "http://127.0.0.1:9"}  # to which nothing is sent here
    extra = {"transport": transport, "web_url": "http://127.0.0.1:9"}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID": "sparklineage_default",
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(folder / "captures"),
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
        "AIRFLOW_CONN_SPARKLINEAGE_DEFAULT": json.dumps(
            {"conn_type": "sparklineage", "extra": extra}
        ),
        "XDG_CACHE_HOME": str(fetching.cache_folder().parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", TASK, name, json.dumps(_LAST_RUN)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    assert printed["injected"] is (name == "ours"), "nothing was injected, so nothing was measured"
    times = [(wall, cpu) for _, wall, cpu in printed["ended"]]
    return [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(times)]
