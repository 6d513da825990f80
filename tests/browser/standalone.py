"""A running ``airflow standalone``, with a task that fails once and then waits to be let go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.api import Api
from tests.spark_submit_double import FakeSparkSubmit

if TYPE_CHECKING:
    from collections.abc import Callable

DAG_ID, TASK_ID = "live", "revenue"

# Its first try fails; the second one runs until its gate is there.
DAG = """
import shutil
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

with DAG(
    {dag_id!r},
    schedule="@once",
    start_date=datetime(2024, 5, 6, tzinfo=UTC),
):
    SparkLineageSubmitOperator(
        task_id={task_id!r},
        application="staging_chain.py",
        writes=["/lake/revenue/dt=2024-05-06"],
        retries=1,
        retry_delay=timedelta(0),
        on_retry_callback=lambda _context: shutil.copy({second!r}, {script!r}),
    )
"""

# Airflow's log servers listen to every machine, and have no option for it. Airflow imports this as
# ``airflow_local_settings``.
ON_LOOPBACK = """
import socket

LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
bind = socket.socket.bind


def bind_on_loopback(of, address):
    if of.family in LOOPBACK and address[0] in ("", "0.0.0.0", "::"):
        address = (LOOPBACK[of.family], *address[1:])
    return bind(of, address)


socket.socket.bind = bind_on_loopback
"""


class Standalone(Api):
    """The processes of an Airflow with a home of its own, in a group of their own.

    :param folder: its home, with logs
    :param ports: of its web server, and of the logs of its workers and its triggerer
    """

    def __init__(
        self, folder: Path, ports: tuple[int, int, int], passwords: dict[str, str]
    ) -> None:
        super().__init__(f"http://127.0.0.1:{ports[0]}", passwords)
        self.log = folder / "standalone.log"
        self._gate = folder / "gate"
        self._archive = folder / "archive"
        fake = FakeSparkSubmit(folder)
        fake.does("staging_chain", until=str(self._gate))
        second = fake.script.rename(folder / "second.json")
        fake.does("staging_chain", exit=1)
        (folder / "dags").mkdir()
        files = {"second": str(second), "script": str(fake.script)}
        text = DAG.format(dag_id=DAG_ID, task_id=TASK_ID, **files)
        (folder / "dags" / "live.py").write_text(text)
        (folder / "config").mkdir()
        (folder / "config" / "airflow_local_settings.py").write_text(ON_LOOPBACK)
        (folder / "passwords.json").write_text(json.dumps(passwords))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=_environment(folder, ports, fake, [*passwords]),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def begin(self, user: str, timeout_s: float) -> None:
        """Let the DAG run, once Airflow knows it; a task that begins before the server fails."""
        self._await(
            lambda: (
                self.patch(f"/api/v2/dags/{DAG_ID}", {"is_paused": False}, self.token(user)) == 200
            ),
            timeout_s,
        )

    def task_instance(self, timeout_s: float) -> str:
        """URL of its task instance, when the first try of that has ended."""
        self._await(lambda: any(self._first_tries()), timeout_s)
        [document] = self._first_tries()
        run_id = document.relative_to(self._archive).parts[1]
        return f"{self.url}/dags/{DAG_ID}/runs/{run_id}/tasks/{TASK_ID}"

    def _first_tries(self) -> list[Path]:
        return list(self._archive.glob(f"{DAG_ID}/*/{TASK_ID}/-1/1.json"))

    def _await(self, is_so: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > deadline:
                message = f"Airflow took over {timeout_s} s:\n{self.log.read_text()[-3000:]}"
                raise TimeoutError(message)
            time.sleep(0.5)

    def poll(self) -> int | None:
        """As of a process."""
        return self._process.poll()

    def release(self) -> None:
        """Let the task that waits go on to its end."""
        self._gate.touch()

    def end(self) -> None:
        """End all of its processes, and wait for that."""
        self.release()
        for number in (signal.SIGTERM, signal.SIGKILL):  # workers outlive a scheduler at times
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(15)


def _environment(
    folder: Path, ports: tuple[int, int, int], fake: FakeSparkSubmit, users: list[str]
) -> dict[str, str]:
    web, workers, triggerer = map(str, ports)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW_", "SPARK_"))}
    transport = {"type": "file", "log_file_path": str(folder / "events"), "append": True}
    return inherited | {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{web}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": web,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{web}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:admin" for user in users),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": triggerer,
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": workers,
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL": f"file://{folder}/archive",
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(folder / "captures"),
        "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(fake.jar),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        # A busy machine needs longer than the default.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "PATH": os.pathsep.join([fake.path, str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SPARK_HOME": str(fake.home),
    }
