"""An API server of Airflow in a process of its own, and the browser that looks at it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from playwright.sync_api import Browser

START_TIMEOUT_S = 300  # of an Airflow on a machine that has other work
_CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]


class NotStartedError(Exception):
    """Raised with the end of its log when a server does not answer."""


class Process(Protocol):
    """What may end while it is waited for."""

    def poll(self) -> int | None:
        """Give its exit code when it has ended."""


def find_chromium() -> str | None:
    """Find Debian's Chromium; playwright's own is not used."""
    return shutil.which("chromium")


@contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    """Start a browser, and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def api_server(environment: Mapping[str, str], log: Path) -> Iterator[str]:
    """Start an API server on the database that the environment names; gives its URL."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "airflow", "api-server", "--port", str(port), "--workers", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1"],
            env={**environment, "AIRFLOW__API__BASE_URL": url},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        await_answer(process, f"{url}/api/v2/version", log)
        yield url
    finally:
        # All of its processes, which are in a group of their own.
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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
