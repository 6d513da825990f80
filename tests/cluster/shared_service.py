"""A service that several processes of the tests use at the same time; it ends with its last user.

It runs in a process of its own. Each user holds a lock on the file ``users`` in its folder, and a
lock goes with its process, however that ends. ::

    running = shared_service.use(folder, "tests.cluster.daemons", *arguments)
    running.facts["namenode"]
    running.stop()

The module's process calls :func:`serve`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

START_S = 300  # eight, on two quiet cores; a secure one on busy cores takes minutes
STOP_S = 60
USERS, READY = "users", "ready.json"


def environment() -> dict[str, str]:
    """Give this process's environment, less what makes somebody else of its user."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("HADOOP_", "YARN_"))}


class ServiceError(Exception):
    """Raised when a service cannot be started; says why."""


class Use:
    """The use of a service that runs.

    :param folder: the folder of the service
    :param users: its file ``users``, on which this process holds a lock
    :param starter: the process of the service, if this process has started it
    """

    def __init__(
        self, folder: Path, users: TextIO, starter: subprocess.Popen[bytes] | None
    ) -> None:
        self._folder = folder
        self._users = users
        self._process = starter
        self.facts: dict[str, str] = json.loads((folder / READY).read_text())
        """What the service says of itself, such as its addresses."""

    def stop(self) -> None:
        """Use it no longer, and wait for its end if nobody else does."""
        self._users.close()
        if self._process is not None and not self._is_used():
            self._process.wait(STOP_S)

    def _is_used(self) -> bool:
        with (self._folder / USERS).open() as users:
            try:
                fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # by the process that ends it
                return False
            return not _is_exclusive(users)


def use(folder: Path, module: str, *arguments: str, prepare: Callable[[], None]) -> Use:
    """Start a service in a folder of its own, or use the one that runs there.

    :param module: the module that serves, which gets the folder and the arguments
    :param prepare: called before it is started, when no other one runs in the folder
    :raise ServiceError: if it does not start
    """
    folder.mkdir(parents=True, exist_ok=True)
    users = (folder / USERS).open("a")
    fcntl.flock(users, fcntl.LOCK_SH)  # one that is being ended has it alone
    with (folder / "starting").open("a") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        process = None
        if not (folder / READY).exists():
            prepare()
            process = _started(folder, [sys.executable, "-m", module, str(folder), *arguments])
    return Use(folder, users, process)


def _started(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    log = folder / "service.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt of the terminal is its users', who end it
        )
    ends = time.monotonic() + START_S
    while not (folder / READY).exists():
        if process.poll() is not None or time.monotonic() > ends:
            process.terminate()
            process.wait(STOP_S)
            message = f"Nothing has started in {folder}: {log.read_text(errors='replace')}"
            raise ServiceError(message)
        time.sleep(0.1)
    return process


def serve(folder: Path, start: Callable[[], Mapping[str, str]], stop: Callable[[], object]) -> None:
    """Run a service until nobody uses it; it is stopped however this process ends.

    :param start: starts it, and gives the facts for its users
    """
    signal.signal(signal.SIGTERM, _end)
    with (folder / USERS).open("w") as users:
        try:
            (folder / f"{READY}.part").write_text(json.dumps(dict(start())))
            (folder / f"{READY}.part").rename(folder / READY)
            # Held until all has ended, so that who comes now waits for that.
            while not _is_exclusive(users):
                time.sleep(0.2)
        finally:
            (folder / READY).unlink(missing_ok=True)
            stop()


def _end(*_: object) -> None:
    sys.exit("terminated")


def _is_exclusive(users: TextIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
