"""The side of who sends events: starts the emitter, feeds it, and ends it when time is up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.relay import emitter
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_LOOK_S = 0.25
"""How often it is asked whether time is up: a worker that is killed has seconds."""


class Sent(Frozen, frozen=True):
    """What became of the events that were to be sent.

    :param outcomes: of each event that was come to, in order: empty if the transport took it, else
        why it did not want it
    :param stopped: why no more were sent; empty if there was no such reason
    :param lost: how many were taken and not delivered, as far as the transport says
    :param printed: what the transport printed or logged
    """

    outcomes: tuple[str, ...] = ()
    stopped: str = ""
    lost: int = 0
    printed: str = ""

    @property
    def events(self) -> int:
        """How many the transport took."""
        return self.outcomes.count("")

    @property
    def refused(self) -> tuple[str, ...]:
        """Why, of those that it did not want."""
        return tuple(filter(None, self.outcomes))


def send(
    lines: Sequence[bytes],
    configuration: dict[str, Any] | None,
    seconds: float,
    past_deadline: Callable[[], bool] = lambda: False,
    notice: Callable[[int], None] = lambda _: None,
) -> Sent:
    """Send events through a transport, in their order, in a process that ends when this returns.

    :param lines: events as JSON, each with its line end
    :param configuration: of OpenLineage's client; it goes through a pipe and is nowhere to be seen.
        None: as the client finds it in its environment
    :param seconds: that it may take
    :param past_deadline: asked now and then; when it says True, the process is ended
    :param notice: called now and then with how many events were come to
    :raise OSError: if the process cannot be started
    """
    header = {
        "configuration": configuration,
        "path": sys.path,
        "parent": os.getpid(),
        "seconds": seconds,
    }
    given = [json.dumps(header, default=str).encode() + b"\n", *lines]
    until = time.monotonic() + seconds
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603  (our own script, by the Python that runs this)
            # -P: the folder of the script is no place to import from.
            [sys.executable, "-P", str(Path(emitter.__file__))],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,  # a signal to the task's process group must not cut an event
        )
        writer = threading.Thread(target=_write, args=(process.stdin, given), daemon=True)
        writer.start()
        late = False
        try:
            while not late and not _ended(process):
                notice(_lines(out))
                late = time.monotonic() >= until or past_deadline()
        finally:  # Airflow's task timeout can fire in here
            # And what a transport has started, which would keep the writer waiting at the pipe.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            writer.join()
        answers, printed = _content(out), _content(err)
    return _read(answers, printed, "time was up" if late else "", process.returncode)


def _write(stdin: IO[bytes], given: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError), stdin:  # a process that was ended reads no more
        stdin.writelines(given)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _lines(file: IO[bytes]) -> int:
    # Not by seeking: the process that writes to it would go on from there.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).count(b"\n")


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _read(out: bytes, err: bytes, stopped: str, code: int) -> Sent:
    lost = 0
    outcomes: list[str] = []
    for line in out.splitlines():
        try:
            result = json.loads(line)
        except ValueError:  # the last one of a process that was ended
            continue
        lost = result.get("lost", lost)
        stopped = stopped or result.get("stopped", "")
        if "sent" in result or "refused" in result:
            outcomes.append(result.get("refused", ""))
    printed = err.decode(errors="replace")
    if code and not stopped:
        last = printed.strip().splitlines()[-1:] or ["it printed nothing"]
        stopped = f"the process that sends them ended with {code}: {last[0]}"
    return Sent(tuple(outcomes), stopped, lost, printed)
