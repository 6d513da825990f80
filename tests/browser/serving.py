"""An API server of Airflow in a process of its own, and the browser that looks at it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.standalone import await_answer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from playwright.sync_api import Browser

_CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]


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
