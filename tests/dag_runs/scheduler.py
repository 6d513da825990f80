"""An Airflow with a real scheduler, whose DAGs each submit to a spark-submit of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.api import Api
from tests.standalone import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from tests.spark_submit_double import FakeSparkSubmit

# Starting Airflow's three processes takes a minute on a busy machine, and each task 10 s.
TIMEOUT_S = 180
_USER = "admin"


class Airflow(Api):
    """The processes of an Airflow with a home of its own.

    :param home: a folder that has ``dags``
    :param fakes: of each DAG the double that its task submits to
    :param jar: the listener
    """

    def __init__(self, home: Path, fakes: dict[str, FakeSparkSubmit], jar: Path) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}", {_USER: _USER})
        self.home = home
        self.fakes = fakes
        self._jar = jar
        self.captures = home / "captures"
        self._events = home / "events"
        self._environment = self._environment_of(port)
        self._running: list[subprocess.Popen[bytes]] = []
        self._token = ""

    def start(self) -> None:
        """Make the database and start the processes.

        :raise TimeoutError: if the API server does not answer
        """
        (self.home / "passwords.json").write_text(json.dumps({_USER: _USER}))
        migrated = subprocess.run(
            self._command("db", "migrate"), env=self._environment, capture_output=True, check=False
        )
        assert migrated.returncode == 0, migrated.stderr[-2000:]
        for name in ("api-server", "dag-processor", "scheduler"):
            with (self.home / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    self._command(name),
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._running.append(process)
            if name == "api-server":  # a task that finds no server fails
                self.until(self._answers)
        self._token = self.token(_USER)

    def stop(self) -> None:
        """End the processes."""
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that the process left behind
            process.wait()

    # --- what a test does and asks ----------------------------------------------------------------

    def until(self, found: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> Any:
        """Wait until something is found, and give it.

        :raise TimeoutError: with the ends of Airflow's logs
        """
        deadline = time.monotonic() + timeout_s
        while not (value := found()):
            if time.monotonic() > deadline:
                raise TimeoutError(self._log_tails())
            time.sleep(0.2)
        return value

    def trigger(self, dag_id: str, run_id: str = "run") -> None:
        """Begin a run of a DAG, once Airflow knows the DAG."""
        path, body = f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "dag_run_id": run_id}
        self.until(lambda: self._ask("POST", path, self._token, body)[0] == 200)

    def begin(self, dag_id: str) -> SimpleNamespace:
        """Begin a run of a DAG; give what its task's spark-submit was given, once that runs."""
        self.trigger(dag_id)
        return self.submitted(dag_id)

    def submitted(self, dag_id: str) -> SimpleNamespace:
        """Wait until a task's spark-submit runs; give what it was given, and forget that it ran."""
        fake = self.fakes[dag_id]
        self.until(lambda: fake.ran)
        given = fake.given
        fake.forgets()
        return given

    def await_state(self, dag_id: str, state: str) -> None:
        """Wait until the task of a DAG's first run is in a state."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/task"
        self.until(lambda: self.get(path, self._token)[1].get("state") == state)

    def mark(self, dag_id: str, state: str) -> None:
        """Mark a DAG's task, as a person does in the page."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/run/taskInstances/task"
        assert self.patch(path, {"new_state": state}, self._token) == 200

    def clear(self, dag_id: str) -> None:
        """Clear a DAG's task, as a person does in the page."""
        body = {"dry_run": False, "dag_run_id": "run", "only_failed": False, "only_running": True}
        path = f"/api/v2/dags/{dag_id}/clearTaskInstances"
        assert self._ask("POST", path, self._token, body)[0] == 200

    def events(self, dag_id: str, count: int) -> list[dict[str, Any]]:
        """Wait for so many events of a DAG's task, and give them in their order."""

        def sent() -> list[dict[str, Any]]:
            text = self._events.read_text() if self._events.exists() else ""
            every = [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]
            found = [event for event in every if event["job"]["name"] == f"{dag_id}.task"]
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = self.until(sent)
        return found

    def bundles(self, dag_id: str) -> list[Path]:
        """Give the bundles of a DAG's task that are there, in the order of their tries."""
        return sorted(self.captures.glob(f"{dag_id}.task-try*"))

    def properties_files(self) -> list[Path]:
        """Give the properties files that are there, which have keys."""
        return list(self.captures.glob(".sparklineage-properties-*"))

    def _log_tails(self) -> str:
        logs = [*self.home.glob("*.log"), *self.home.glob("logs/**/*.log")]
        return "\n".join(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    # --- its processes ----------------------------------------------------------------------------

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/execution/health", timeout=10):
            return True
        return False

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *words]

    def _environment_of(self, port: int) -> dict[str, str]:
        transport = {"type": "file", "log_file_path": str(self._events), "append": True}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_")}
        return inherited | {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of this test alone " * 4,
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.home / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:admin",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            # What a person does to a task reaches its worker with a heartbeat, and a worker that
            # is gone is noticed by the lack of them.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "6",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            # A busy machine needs longer than the default to send an event, which is lost then.
            "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "60",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(self.captures),
            "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(self._jar),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
