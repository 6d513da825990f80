"""How long a task lasts after its job has ended, for the sake of lineage.

A task runs in a process of its own, as in :mod:`.submitting`; the job is one of wide writes, of
which events and observations are put into place, and lasts for two seconds, in which the task waits
for it. Not counted is what the stock operator and Airflow do then: its OpenLineage provider sends
the event in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.event.steps.size import ever_smaller
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.allowance import garbage_collector_paused
from airflow_provider_sparklineage.model.terms import EVENTS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest, TaskIdentity
from benchmarks import submitting, wide_writes
from benchmarks.amplification import amplified, run_id
from benchmarks.measuring import Growth, cpu_s, usual
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = 5
GOAL_MS = 400
WRITES, COLUMNS = 10, 200
SIZES = (1, 3, 10, 30)

# Runs an operator as a task's process does, and prints the milliseconds of wall clock and of CPU
# from the end of the job on: in all, and of each phase.
TASK = """
import json, os, pathlib, sys, time
from datetime import UTC, datetime
from types import SimpleNamespace
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.openlineage.plugins import listener, macros
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.execution_time import supervisor, task_runner
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

folder = pathlib.Path(sys.argv[1])
pushed, spent = {}, {}
date = datetime(2024, 5, 6, tzinfo=UTC)
dag_run = SimpleNamespace(logical_date=date, run_after=date, conf={}, clear_number=0)
ti = SimpleNamespace(dag_id="shop", task_id="revenue", run_id="manual", try_number=1, map_index=-1,
    dag_run=dag_run, stats_tags={}, xcom_push=lambda key, value: pushed.update({key: value}),
    xcom_pull=lambda **asked: None, get_previous_ti=lambda **asked: None)
context = {"ti": ti, "dag_run": dag_run, "logical_date": date, "ds": "2024-05-06"}
ti.get_template_context = lambda: context

def clock():
    return time.perf_counter() * 1000, time.process_time() * 1000

def phase(name, function):
    def timed(*args, **kwargs):
        wall, cpu = clock()
        try:
            return function(*args, **kwargs)
        finally:
            now, busy = clock()
            spent[name] = now - wall, busy - cpu
    return timed

def submit(hook, application):
    global modules, began
    command = hook._build_spark_submit_command(application)
    conf = dict(a.split("=", 1) for f, a in zip(command, command[1:]) if f == "--conf")
    events = (folder / "events.ndjson").read_text()
    run_id = conf["spark.openlineage.applicationRunId"]
    location = conf["spark.openlineage.transport.location"]
    pathlib.Path(location).write_text(events.replace(sys.argv[2], run_id))
    observations = (folder / "observations.ndjson").read_bytes()
    pathlib.Path(conf["spark.sparklineage.observations"]).write_bytes(observations)
    time.sleep(2)
    modules, began = len(sys.modules), clock()
    from airflow_provider_sparklineage.event import pipeline
    from airflow_provider_sparklineage.lineage import bundle
    from airflow_provider_sparklineage.operators.attempt import publish
    bundle.task_lineage = phase("merging", bundle.task_lineage)
    pipeline.events_of = phase("making the event", pipeline.events_of)
    publish.publish = phase("XCom and archive", publish.publish)

SparkSubmitHook.submit = submit
operator = SparkLineageSubmitOperator(
    task_id="revenue", application="job.py", conf={"spark.app.name": "revenue"})
ExecutorSafeguard.tracker.set(operator)
operator.render_template_fields(context)
operator.execute(context)
spent["all"] = tuple(now - then for now, then in zip(clock(), began))
imported = len(sys.modules) - modules
phase("the provider's hook", operator.get_openlineage_facets_on_complete)(ti)
outputs = len(operator.lineage_try.collected["outputs"])
print(json.dumps({"spent": spent, "imported": imported, "outputs": outputs,
                  "xcom": len(json.dumps(pushed["sparklineage"]))}))
"""

_MISSED = "merging is half of it, and fitting the event into the XCom a fifth"


def measured() -> Iterator[Result]:
    """Measure a task of wide writes, what of it grows, and XCom and archive alone."""
    yield waiting()
    yield growing()
    yield publishing(1)
    yield publishing(20)


def waiting() -> Result:
    """Run a task some times, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wide_writes.write_to(work, WRITES, COLUMNS)
        submitting.make_ready()
        environment = submitting.environment(work) | {
            "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL": f"file://{work}/archive"
        }
        runs = [_run(work, environment) for _ in range(RUNS)]
        size = next(work.glob("archive/**/*.json")).stat().st_size / 1e6
    wall, cpu = (usual([run["spent"]["all"][kind] for run in runs]) for kind in (0, 1))
    phases = ", ".join(
        f"{name} {usual([run['spent'][name][1] for run in runs]):.0f}"
        for name in runs[0]["spent"]
        if name != "all"
    )
    figures = (
        f"{phases} ms of CPU; {wall:.0f} ms by the clock; {runs[0]['imported']} modules are "
        f"imported after the job; an event of {size:.1f} MB, an XCom of "
        f"{runs[0]['xcom'] / 1000:.0f} KB"
    )
    return Result(
        f"wait after {WRITES} writes of {COLUMNS} columns", cpu, GOAL_MS, figures, " ms", _MISSED
    )


def _run(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", TASK, str(folder), wide_writes.RUN_ID],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert printed["outputs"] == WRITES, "the job was not collected, so nothing was measured"
    return printed


def growing() -> Result:
    """Let a job make more and more writes; in this process, so that nothing is imported."""
    with tempfile.TemporaryDirectory() as name:

        def make(writes: int) -> Callable[[], object]:
            folder = Path(name, str(writes))
            folder.mkdir()
            wide_writes.write_to(folder, writes, COLUMNS)
            return lambda: _collect(folder)

        growth = Growth.of(SIZES, make)
    return Result(f"growth with writes of {COLUMNS} columns", growth.exponent, 1.1, str(growth))


def _collect(folder: Path) -> None:
    bundle = CaptureBundle(folder, Manifest(application_run_id=wide_writes.RUN_ID))
    event = merged_event(bundle, task_lineage(bundle))
    with garbage_collector_paused():
        xcom.encode(Written(event), xcom.MAX_BYTES, ever_smaller(event, ""))


def publishing(copies: int) -> Result:
    """Make the XCom and write the archive; Airflow's own request for an XCom is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / EVENTS).write_bytes(b"".join(amplified(copies)))
        bundle = CaptureBundle(Path(folder), Manifest(application_run_id=run_id()))
        event = merged_event(bundle, task_lineage(bundle))
    task = TaskIdentity("shop", "revenue", "manual", 1)

    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(f"file://{folder}")

        def publish() -> None:
            written = Written(event)
            xcom.encode(written, xcom.MAX_BYTES, ever_smaller(event, ""))
            archive.write(task, written)

        took = cpu_s(publish) * 1000
    size = len(json.dumps(event)) / 1000
    return Result("XCom and archive of a task", took, 50, f"an event of {size:.0f} KB", " ms")
