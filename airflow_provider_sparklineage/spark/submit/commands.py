"""Commands that are asked something: each within its time, and ended with what it has started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_POLL_S = 0.1
_MAX_BYTES = 1 << 20  # of a command that prints without end, the rest is not kept
_REAP_S = 5.0  # a process that hangs in the kernel is not waited for


def output(
    command: list[str],
    env: Mapping[str, str],
    timeout_s: float,
    take: Callable[[str], object] = lambda _: None,
) -> str:
    """Run a command and give what it prints, without credentials in URLs.

    What it leaves running in the background is not waited for. When its time is up, or the caller
    is interrupted, it is killed with all processes of its group.

    :param take: takes each line when it is there
    :raise OSError: if it cannot be started
    :raise subprocess.TimeoutExpired: if it does not end in time; has what it printed by then
    """
    process = subprocess.Popen(  # noqa: S603  (Spark's commands, as the user named them)
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a group of its own
    )
    printed = _Printed(take)
    try:
        _wait(process, printed, time.monotonic() + timeout_s)
    except BaseException as error:  # Airflow's task timeout is one
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if isinstance(error, TimeoutError):
            raise subprocess.TimeoutExpired(command, timeout_s, printed.text) from None
        raise
    finally:
        _close(process)
    printed.end()
    return printed.text


class _Printed:
    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._rest = b""
        self._bytes = 0
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def add(self, chunk: bytes) -> None:
        if self._bytes > _MAX_BYTES:
            return
        self._bytes += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line + b"\n")

    def end(self) -> None:
        self._line(self._rest)

    def _line(self, line: bytes) -> None:
        text = scrub(line.decode(errors="replace"))
        self._lines.append(text)
        self._take(text)


def _wait(process: subprocess.Popen[bytes], printed: _Printed, ends: float) -> None:
    """Read until the command has ended.

    :raise TimeoutError: if it does not
    """
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0:
            if selector.select(min(left, _POLL_S)):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                printed.add(chunk)
            elif process.poll() is not None:  # what holds the pipe is in the background
                break
    try:
        process.wait(max(0.0, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
