"""Merge delivered events in a process of its own: ``history build --delivered``.

A server of many requests, or the process of a task, keeps its memory and its speed: DuckDB takes
some hundred MB while it merges. If another build has the lock of the store, the process ends at
once with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

_NICENESS = 10
_MAX_TEXT = 2000  # characters of what the process printed last


def start(url: str) -> subprocess.Popen[str]:
    """Start merging; its standard error has why it failed.

    :param url: URL of the store; if there is none, it is built from the archive
    """
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "history", "build"]
    process = subprocess.Popen(  # noqa: S603  (our own command)
        [*command, "--delivered", "--store", url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    with suppress(OSError, AttributeError):  # it has ended, or this is not POSIX
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
    return process


def merge(url: str, timeout_s: float) -> str:
    """Merge the delivered events; give the problem if they were not merged, else an empty text."""
    process = start(url)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"merging took more than {timeout_s:.0f} s"
    finally:  # also if the task is ended
        problem = ended(process)
    return problem


def ended(process: subprocess.Popen[str]) -> str:
    """End a process if it still runs; give the problem if it failed, else an empty text."""
    if process.poll() is None:
        process.kill()
    _, printed = process.communicate()
    return printed[-_MAX_TEXT:].strip() if process.returncode else ""


# --- while somebody looks at the page -------------------------------------------------------------
#
# An open page asks for the state of the store again and again. If tasks have delivered events that
# are not in the tables yet, or if there is no store, one process is started that merges them; the
# answer does not wait for it. So nobody can start more than one such process of an API server's
# process, and nothing runs when nobody looks.


_PAUSE_S = 20.0
"""Time from the start of a process to that of the next one, at least."""
_LONGEST_S = 3600.0
"""Time after which a process is ended that has not ended itself."""


class State(NamedTuple):
    """How far the tables of a store are behind.

    :param generation: number of the tables' generation; 0 if there is no store
    :param built_at: when the tables were made, in ISO 8601; None if there is no store
    :param waiting: number of delivered events that are not in the tables yet
    :param since: when the first of them was delivered, in ISO 8601; None if there are none
    :param is_merging: whether they are being merged
    :param problem: why they could not be merged; empty if nothing went wrong
    """

    generation: int
    built_at: str | None
    waiting: int
    since: str | None
    is_merging: bool
    problem: str


class Keeper:
    """Merges the events that were delivered to one store, by one process at a time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._working = now, Lock()
        self._process: subprocess.Popen[str] | None = None
        self._begun: float | None = None
        self._problem = ""

    def state(self, url: str, *, may_merge: bool) -> State:
        """Give the state of a store; start merging if the store is behind.

        :param url: URL of the store
        :param may_merge: whether to start it
        :raise HistoryError: if the store cannot be read
        """
        store = Store(url)
        manifest, waiting = store.manifest, incoming.waiting(store)
        is_behind = bool(waiting.names) or not manifest.generation
        with self._working:
            self._look_after()
            is_due = self._begun is None or self._now() - self._begun > _PAUSE_S
            if may_merge and is_behind and is_due and self._process is None:
                self._process, self._begun = start(url), self._now()
            is_merging = self._process is not None
            return State(
                manifest.generation,
                str(msgspec.to_builtins(manifest.built_at)) if manifest.generation else None,
                len(waiting.names),
                waiting.since.isoformat() if waiting.since else None,
                is_merging,
                self._problem if is_behind and not is_merging else "",
            )

    def close(self) -> None:
        """End the process if it runs, e.g. after a test."""
        with self._working:
            if self._process is not None:
                ended(self._process)
                self._process = None

    def _look_after(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None and self._now() - (self._begun or 0.0) < _LONGEST_S:
            return
        self._problem, self._process = ended(process), None
