"""How long a task waits before spark-submit starts, beyond what the stock operator makes it wait.

Three things come before it: the task's fields are rendered, the OpenLineage provider asks for the
START event in a process that it forks and waits for (in which it also makes its client, unless that
is made), and ``execute()`` sets the submission up. A task runs in a process of its own, so what it
imports counts. Not counted are the import of the operator's module, which has a figure of its own,
and what Airflow itself needs to answer (here it answers at once: with the lineage of the task's
last run, and a connection from the environment).
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import airflow_provider_sparklineage
from airflow_provider_sparklineage.spark.submit import fetching, listener_selection
from benchmarks.measuring import usual
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = 7
GOALS_MS = {2: 100, 50: 150}
"""By the number of templated arguments."""
NAMES = ("ours", "stock")
PHASES = ("rendering", "START", "execute")

# Makes an operator and the context of its task instance, as a task's process has them.
SETUP = """
import json, os, resource, sys
from datetime import UTC, datetime
from types import SimpleNamespace
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.openlineage.plugins import listener, macros
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.execution_time import supervisor, task_runner
from airflow.sdk.listener import get_listener_manager
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

OPERATORS = {"ours": SparkLineageSubmitOperator, "stock": SparkSubmitOperator}
get_listener_manager()  # loads the plugins, before a task's process parses the DAG
of_last_run = json.loads(sys.argv[3])
date = datetime(2024, 5, 6, tzinfo=UTC)
before = SimpleNamespace(run_id="before", try_number=1, map_index=-1, logical_date=None)
dag_run = SimpleNamespace(logical_date=date, run_after=date, conf={}, clear_number=0)
ti = SimpleNamespace(dag_id="shop", task_id="revenue", run_id="manual", try_number=1, map_index=-1,
    dag_run=dag_run, stats_tags={}, xcom_push=lambda **pushed: None,
    xcom_pull=lambda **asked: of_last_run,
    get_previous_ti=lambda **asked: before)
context = {"ti": ti, "dag_run": dag_run, "logical_date": date, "ds": "2024-05-06",
    "ds_nodash": "20240506", "ts": "2024-05-06T00:00:00+00:00",
    "macros": SimpleNamespace(ds_add=lambda day, days: f"{day}{days:+}")}
ti.get_template_context = lambda: context

def made(**arguments):
    operator = context["task"] = OPERATORS[sys.argv[1]](task_id="revenue", **arguments)
    ExecutorSafeguard.tracker.set(operator)
    return operator

def hook(event, *outputs):
    # The OpenLineage provider asks for an event in a process that it forks and waits for.
    child = os.fork()
    if not child:
        facets = getattr(operator, f"get_openlineage_facets_on_{event}", lambda *_: None)
        facets = facets() if event == "start" else facets(ti)
        listener.get_openlineage_listener().adapter.get_or_create_openlineage_client()
        assert facets is None or [d.name for d in facets.outputs] == [*outputs], facets
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in
               (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

ended = []

def end(phase):
    ended.append(cpu() * 1000)
"""

BEFORE_A_JOB = """
end("import")
operator.render_template_fields(context)
end("rendering")
hook("start", "/lake/revenue")
end("START")
operator.execute(context)
"""
"""What a task's process does before its job is started; the job's start ends the last phase."""

# Runs the operator as a task's process does, and prints the milliseconds for which it had kept a
# core busy at the end of each phase, the last one when spark-submit is started. What a task's
# process has imported by then is imported: it is forked from the supervisor and has parsed the DAG.
TASK = (
    SETUP
    + """
dates = ("{{ ds }}", "{{ ds_nodash }}", "{{ ts[:13] }}", "{{ macros.ds_add(ds, -1) }}")
more = [f"s3a://lake/table_{n}/dt={dates[n % 4]}" for n in range(int(sys.argv[2]) - 2)]
arguments = ["--date", "{{ ds }}", "--output", "s3a://lake/revenue/dt={{ ds }}", *more]
operator = made(
    application="job.py", conf={"spark.app.name": "revenue"}, application_args=arguments
)

def submit(hook, application):
    end("execute")
    ended.append(hook._build_spark_submit_command(application))

SparkSubmitHook.submit = submit
"""
    + BEFORE_A_JOB
    + """
command = ended.pop(4)
traces = operator.lineage_try.rendered.texts if sys.argv[1] == "ours" else ()
traced = sum(bool(text.spans) for text in traces)
print(json.dumps({"ended": ended, "injected": "--jars" in command, "traced": traced}))
"""
)

_SCHEMA = {"fields": [{"name": f"column_{number}", "type": "string"} for number in range(20)]}
LAST_RUN = {
    "eventType": "COMPLETE",
    "job": {"namespace": "default", "name": "shop.revenue"},
    "run": {
        "runId": "01234567-89ab-7cde-8f01-23456789abcd",
        "facets": {"sparkLineage_capture": {}},
    },
    "inputs": [{"namespace": "s3://lake", "name": "/lake/orders", "facets": {"schema": _SCHEMA}}],
    "outputs": [{"namespace": "s3://lake", "name": "/lake/revenue", "facets": {"schema": _SCHEMA}}],
}

_MISSED = "imports are more than half of what is left"


def measured() -> Iterator[Result]:
    """Run our operator and the stock one in turns, each in processes of its own."""
    make_ready()
    with tempfile.TemporaryDirectory() as folder:
        for count, goal in GOALS_MS.items():
            job = f"a submission with {count} templated arguments"
            yield waiting(job, partial(_phases, count, Path(folder)), goal, _MISSED)


def waiting(job: str, phases: Callable[[str], list[float]], goal: float, missed: str) -> Result:
    """Measure how long a task waits before its job, beyond what the stock operator waits.

    :param phases: gives the milliseconds of each phase, of one of :data:`NAMES`
    """
    turns = [[phases(name) for name in NAMES] for _ in range(RUNS)]
    ours, stock = (
        [usual(phase) for phase in zip(*runs, strict=True)] for runs in zip(*turns, strict=True)
    )
    figures = f"ours {_described(ours)}, stock {_described(stock)}, of CPU"
    name = f"wait before {job}, beyond stock"
    return Result(name, sum(ours) - sum(stock), goal, figures, " ms", missed)


def _described(phases: list[float]) -> str:
    """Give the sum of the phases, and each of them, for people."""
    of_each = ", ".join(f"{name} {ms:.0f}" for name, ms in zip(PHASES, phases, strict=True))
    return f"{sum(phases):.0f} ms ({of_each})"


def _phases(count: int, folder: Path, name: str) -> list[float]:
    printed = printed_by(TASK, name, environment(folder), str(count))
    assert printed["injected"] is (name == "ours"), "nothing was injected, so nothing was measured"
    assert printed["traced"] == (count if name == "ours" else 0), "what has no spans is not traced"
    return of_phases(printed["ended"])


def printed_by(task: str, name: str, env: dict[str, str], argument: str = "") -> dict[str, Any]:
    """Run a task's script in a process of its own; give what it prints at its end."""
    done = subprocess.run(
        [sys.executable, "-c", task, name, argument, json.dumps(LAST_RUN)],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def of_phases(ended: list[float]) -> list[float]:
    """Give the milliseconds for which each phase kept a core busy, from when each has ended."""
    return [after - before for before, after in pairwise(ended)]


def make_ready() -> None:
    """Fetch the listener, and compile this package, before anything is measured."""
    listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")
    # As pip leaves an installed package.
    compileall.compile_dir(Path(airflow_provider_sparklineage.__path__[0]), quiet=2)


def environment(folder: Path) -> dict[str, str]:
    """Give the environment of a task's process: an Airflow that sends lineage, below a folder."""
    transport = {"type": "http", "url": "http://127.0.0.1:9"}  # to which nothing is sent here
    extra = {"transport": transport, "web_url": "http://127.0.0.1:9"}
    return {
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
