"""Imports while the job runs: they spare the time after it, and change nothing else."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_sparklineage.operators.adoption import kinds
from airflow_provider_sparklineage.operators.attempt import task_try
from tests.conftest import long_after

pytestmark = pytest.mark.airflow

# In an interpreter of its own: here everything is imported by now.
SCRIPT = """
import pathlib, sys
import pytest
from airflow_provider_sparklineage.operators.attempt import task_try
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests import spark_submit_double

folder, delay_s = sys.argv[1:]
task_try.IMPORT_DELAY_S = float(delay_s)
finish = task_try.Try.finish

def noting(*args):
    before = set(sys.modules)
    finish(*args)
    found = {m for m in set(sys.modules) - before if m.startswith("airflow_provider_sparklineage")}
    print("FOUND", sorted(found))

task_try.Try.finish = noting
fake = spark_submit_double.FakeSparkSubmit(pathlib.Path(folder))
fake.install(pytest.MonkeyPatch())
fake.does(events="staging_chain", sleep=1)
operator = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
spark_submit_double.execute(operator, spark_submit_double.task_context())
assert operator.lineage_try.collected["outputs"]
"""


@pytest.mark.parametrize(
    ("delay_s", "imports"),
    [
        pytest.param(0, False, id="long"),
        pytest.param(100, True, id="short", marks=pytest.mark.long),
    ],
)
def test_a_job_that_runs_long_enough_leaves_nothing_to_import_after_it(tmp_path, delay_s, imports):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(delay_s)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Airflow logs to standard output as well.
    [found] = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    assert (found != "FOUND []") is imports


# Whatever a DAG's file imports is imported each time that the file is parsed.
PARSING = """
import importlib, sys, warnings
from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException
from airflow_provider_sparklineage.get_provider_info import get_provider_info
warnings.simplefilter("ignore")
for module in get_provider_info()["operators"][0]["python-modules"]:
    try:
        importlib.import_module(module)
    except AirflowOptionalProviderFeatureException:
        pass
ours = "airflow_provider_sparklineage."
heavy = (f"{ours}operators.adapters", f"{ours}operators.attempt.submit", f"{ours}event")
print("FOUND", sorted(m for m in sys.modules if m.startswith(heavy)))
"""


def test_a_dag_file_imports_nothing_that_tasks_need_when_they_run():
    done = subprocess.run(
        [sys.executable, "-c", PARSING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "FOUND []" in done.stdout


# Airflow's own packages that the stock operator's module does not import, and ours does.
WITHOUT_OTHERS = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
importlib.import_module(sys.argv[1])
stock = {name.split(".")[2] for name in sys.modules if name.startswith("airflow.providers.")}
importlib.import_module(sys.argv[2])
ours = {name.split(".")[2] for name in sys.modules if name.startswith("airflow.providers.")}
print("FOUND", sorted(ours - stock - {"common", "openlineage"}))
"""
MODULES = sorted({tuple(p.rpartition(".")[0] for p in (k.stock, k.ours)) for k in kinds.KINDS})


@pytest.mark.parametrize(("stock", "ours"), long_after(1, MODULES))
def test_an_operator_imports_the_provider_of_no_other_service(stock, ours):
    pytest.importorskip(stock, exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OTHERS, stock, ours],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "FOUND []" in done.stdout


@pytest.mark.parametrize("delay_s", [0, 100])
def test_no_thread_is_left_when_the_job_has_ended(monkeypatch, delay_s):
    monkeypatch.setattr(task_try, "IMPORT_DELAY_S", delay_s)
    before = threading.enumerate()
    with task_try.importing_meanwhile():
        assert len(threading.enumerate()) <= len(before) + 1
    assert threading.enumerate() == before


def test_an_import_that_fails_waits_for_who_needs_it(monkeypatch):
    module = "airflow_provider_sparklineage.event.archive"
    ran = threading.Event()
    monkeypatch.setattr(task_try, "IMPORT_DELAY_S", 0)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delattr("airflow_provider_sparklineage.event.archive")
    imports = task_try._import_for_collecting  # its failure would be one of the test, in its thread
    monkeypatch.setattr(task_try, "_import_for_collecting", lambda: (imports(), ran.set()))
    with task_try.importing_meanwhile():
        assert ran.wait(10)


class _CannotStart(threading.Timer):
    def start(self):
        msg = "can't start new thread"
        raise RuntimeError(msg)


class _TimedOut(threading.Timer):
    def join(self, timeout=None):
        super().join(timeout)
        raise AirflowTaskTimeout


@pytest.mark.parametrize("timer", [_CannotStart, _TimedOut])
@pytest.mark.parametrize("job", [None, ValueError("Spark failed")], ids=["done", "failed"])
def test_the_outcome_of_the_job_stays_what_it_is(monkeypatch, timer, job):
    monkeypatch.setattr(threading, "Timer", timer)
    ended = None
    try:
        with task_try.importing_meanwhile():
            if job is not None:
                raise job
    except ValueError as error:
        ended = error
    assert ended is job
