"""Under a real scheduler: DAGs scheduled on partitions of an asset run for what was written."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessor

from tests.observed_writes import written
from tests.spark_submit_double import FakeSparkSubmit

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.skipif(
        not hasattr(OutletEventAccessor, "add_partitions"),
        reason="Airflow records partitions of assets from 3.3 on",
    ),
]

# Starting Airflow's three processes takes a minute on a busy machine, and each task 10 s.
TIMEOUT_S = 300

DAGS = """
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

revenue = Asset("file:///lake/revenue")
start = {{"start_date": datetime(2024, 5, 7, tzinfo=UTC), "is_paused_upon_creation": False}}

with DAG("producer", schedule="@once", **start):
    SparkLineageSubmitOperator(
        task_id="revenue",
        application="job.py",
        outlets=[revenue],
        record_asset_partitions=True,
        retries=3,
        retry_delay=timedelta(seconds=1),
    )

with DAG("consumer", schedule=PartitionedAssetTimetable(assets=revenue), **start):

    @task
    def note(partition_key=None):
        with Path({keys!r}).open("a") as file:
            file.write(f"{{partition_key}}\\n")

    note()
"""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture
def home(tmp_path):
    """Lay out an Airflow home with two DAGs, and a spark-submit that wrote two partitions."""
    fake = FakeSparkSubmit(tmp_path)
    fake.does("staging_chain", observations=written("2024-05-05", "2024-05-06"))
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "partitions.py").write_text(DAGS.format(keys=str(tmp_path / "keys")))
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    transport = {"type": "file", "log_file_path": str(tmp_path / "events"), "append": True}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_")} | {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__API__BASE_URL": server,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of this test alone " * 4,
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{server}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        # A busy machine needs longer than the default to send an event, which is lost then.
        "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "60",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(tmp_path / "captures"),
        "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(fake.jar),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "PATH": os.pathsep.join([fake.path, str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SPARK_HOME": str(fake.home),
    }
    return tmp_path, environment


@pytest.fixture
def airflow(home):
    """Run Airflow's processes for the length of a test."""
    folder, environment = home

    def command(*words):
        return [sys.executable, "-m", "airflow", *words]

    migrated = subprocess.run(
        command("db", "migrate"), env=environment, capture_output=True, text=True, check=False
    )
    assert migrated.returncode == 0, migrated.stderr[-2000:]
    running = []
    try:
        for name in ("api-server", "dag-processor", "scheduler"):
            with (folder / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    command(name), env=environment, stdout=log, stderr=log, start_new_session=True
                )
            running.append(process)
            if name == "api-server":  # a task that finds no server fails
                await_answer(f"{environment['AIRFLOW__API__BASE_URL']}/execution/health")
        yield folder
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that the process left behind
            process.wait()


def await_answer(url, timeout_s=120):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=10):
            return
        time.sleep(0.5)
    pytest.fail(f"{url} did not answer within {timeout_s} s")


def log_tails(folder):
    logs = [*folder.glob("*.log"), *folder.glob("logs/**/*.log")]
    return "\n".join(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)


def test_a_downstream_dag_runs_for_each_partition_that_was_written(airflow):
    keys = airflow / "keys"
    deadline = time.monotonic() + TIMEOUT_S
    found = []
    while len(found) < 2 and time.monotonic() < deadline:
        time.sleep(1)
        found = keys.read_text().splitlines() if keys.exists() else []
    assert sorted(found) == ["2024-05-05", "2024-05-06"], log_tails(airflow)
