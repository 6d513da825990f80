"""DAG runs in this process: an Airflow database, and DAGs made inside a test."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import time
import warnings
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from tests.conftest import AIRFLOW_EVENTS
from tests.operators.conftest import spark_submit

__all__ = ["spark_submit"]  # a fixture of the operators' tests as well


@pytest.fixture(scope="session")
def stacks(tmp_path_factory):
    """Give a file to which this process, and each that it forks, writes its stacks on SIGUSR1."""
    with (tmp_path_factory.mktemp("forked") / "stacks.txt").open("w+") as file:
        faulthandler.register(signal.SIGUSR1, file)
        yield file
        faulthandler.unregister(signal.SIGUSR1)


@pytest.fixture(scope="session")
def airflow_db(stacks):
    """Make Airflow's database, once for all tests of this process, and end Airflow's processes."""
    from airflow.utils.db import initdb

    for folder in ("AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW_HOME"):
        Path(os.environ[folder]).mkdir(parents=True, exist_ok=True)
    initdb()
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    DagBundlesManager().sync_bundles_to_db()
    os.register_at_fork(after_in_child=_end_with_parent)
    yield
    end_senders(stacks)


def _end_with_parent():
    """Let the kernel kill this process when its parent has ended, even if that was killed."""
    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def end_senders(stacks, limit_s=10.0):
    """End the processes that Airflow has forked to send the events of DAG runs.

    The end of this process would wait for them without a limit. SIGTERM does not end them: they
    have the handler of Airflow's task runner, which does nothing in them.

    :param limit_s: seconds to wait for each; one that hangs is killed, and a warning has its stack
    """
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    listener = get_openlineage_listener()
    if listener._executor is not None:
        listener._executor.shutdown(wait=False)
        listener._executor = None
    for process in multiprocessing.active_children():  # also of executors that Airflow has given up
        if wait([process.sentinel], limit_s):
            continue
        os.kill(process.pid, signal.SIGUSR1)
        if not wait([process.sentinel], 1.0):
            os.kill(process.pid, signal.SIGKILL)
            wait([process.sentinel])
        stacks.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("always")  # the tests have passed
            text = f"A process that sends the events of DAG runs hung:\n{stacks.read()}"
            warnings.warn(text, RuntimeWarning, stacklevel=1)


@pytest.fixture
def run_dag(airflow_db):
    """Run a DAG as ``airflow dags test`` does; the DAG must be in the database for that."""
    return run_as_dags_test


def run_as_dags_test(dag, logical_date):
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.serialized_objects import LazyDeserializedDAG

    serialised = _serialised_dag()
    if hasattr(LazyDeserializedDAG, "from_dag"):  # since Airflow 3.1
        lazy = LazyDeserializedDAG.from_dag(dag)
    else:
        dag.relative_fileloc = "dag.py"
        lazy = LazyDeserializedDAG(data=serialised.to_dict(dag))
    serialised.bulk_write_to_db("dags-folder", None, [lazy])
    SerializedDagModel.write_dag(lazy, bundle_name="dags-folder")
    return dag.test(logical_date=logical_date)


def _serialised_dag():
    """Give the class of Airflow that writes DAGs to the database."""
    try:
        from airflow.serialization.definitions.dag import SerializedDAG
    except ImportError:  # before Airflow 3.2
        from airflow.serialization.serialized_objects import SerializedDAG
    return SerializedDAG


@pytest.fixture
def events_of():
    """OpenLineage events that Airflow emitted for a job, in their order."""

    def events(job, count, timeout_s=30):
        # The DAG's own events come from a process pool, after the run has returned.
        deadline = time.monotonic() + timeout_s
        while True:
            lines = AIRFLOW_EVENTS.read_text().splitlines() if AIRFLOW_EVENTS.exists() else []
            found = [e for e in map(json.loads, lines) if e["job"]["name"] == job]
            if len(found) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    return events


@pytest.fixture
def spark_on_path(monkeypatch):
    """Let the tests' own spark-submit be found, as a worker started from its environment would."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)


@pytest.fixture
def task_runs(spark_submit, run_dag, events_of):
    """Give the runs of a DAG that a Marquez hears of: ``task_runs(MarquezModel(), "dag_id")``."""
    from tests.dag_runs.states import Runs

    def runs(marquez, name):
        return Runs(marquez, name, spark_submit, run_dag, events_of)

    return runs
