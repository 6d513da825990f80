"""A running ``airflow standalone``, with DAGs of a test, on this machine's loopback alone."""

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
from typing import TYPE_CHECKING, Any, Protocol

from tests.browser.api import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.spark_submit_double import FakeSparkSubmit

START_TIMEOUT_S = 300  # of an Airflow on a machine that has other work

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


class NotStartedError(Exception):
    """Raised with the end of its log when a server does not answer."""


class Process(Protocol):
    """What may end while it is waited for."""

    def poll(self) -> int | None:
        """Give its exit code when it has ended."""


class Standalone(Api):
    """The processes of an Airflow with a home of its own, in a group of their own.

    :param folder: its home: with ``dags``, and with logs and events when it runs
    :param passwords: of its users, who may do everything
    :param fake: what its tasks find as ``spark-submit``
    :param environment: added to that of all of its processes
    :param local_settings: what is in the user's ``airflow_local_settings``
    """

    def __init__(
        self,
        folder: Path,
        passwords: dict[str, str],
        fake: FakeSparkSubmit,
        environment: Mapping[str, str],
        local_settings: str = "",
    ) -> None:
        ports = free_port(), free_port(), free_port()  # web server, logs of workers and triggerer
        super().__init__(f"http://127.0.0.1:{ports[0]}", passwords)
        self.folder = folder
        self.log = folder / "standalone.log"
        (folder / "config").mkdir()
        (folder / "config" / "airflow_local_settings.py").write_text(local_settings + ON_LOOPBACK)
        (folder / "passwords.json").write_text(json.dumps(passwords))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=_environment(folder, ports, fake, [*passwords]) | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def await_answer(self) -> None:
        """Wait until its web server answers; a task that begins before fails."""
        await_answer(self, f"{self.url}/api/v2/version", self.log)

    def until(self, found: Callable[[], Any], timeout_s: float) -> Any:
        """Wait until something is found, and give it.

        :raise TimeoutError: with the end of Airflow's log
        """
        deadline = time.monotonic() + timeout_s
        while not (value := found()):
            if time.monotonic() > deadline:
                message = f"Airflow took over {timeout_s} s:\n{self.log.read_text()[-3000:]}"
                raise TimeoutError(message)
            time.sleep(0.5)
        return value

    def poll(self) -> int | None:
        """As of a process."""
        return self._process.poll()

    def end(self) -> None:
        """End all of its processes, and wait for that."""
        for number in (signal.SIGTERM, signal.SIGKILL):  # workers outlive a scheduler at times
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(15)


def free_port() -> int:
    """Find a port that nobody listens to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def await_answer(process: Process, url: str, log: Path) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    message = f"The API server did not start:\n{log.read_text()[-3000:]}"
    raise NotStartedError(message)


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
    }
