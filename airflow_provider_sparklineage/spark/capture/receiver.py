"""What takes the events that a listener sends by HTTP while its job runs, and keeps them.

A driver in a cluster delivers by Python. Where it has none (Scala, Java, R, SQL), the task listens
for the HTTP transport of the listener: for this job only, by a token that is made for it, and for
no longer than it runs. Each event becomes a line of the bundle's file, whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import shutil
import socket
import socketserver
import tempfile
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import IO, TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.spark.capture.lines import MAX_LINE_BYTES
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from io import BufferedIOBase
    from pathlib import Path

    from airflow_provider_sparklineage.spark.capture.endpoint import Endpoint

log = logger(__name__)

PATH = "/api/v1/lineage"
MAX_BYTES = 2 * 1024 * 1024 * 1024
"""Of all events of a job: more than merging reads in its time, and no disk is full of it."""
SEND_S = 1.0
"""For which the listener waits for an answer, in Spark's thread for listeners, not in the job's.
What it has sent by then still arrives; the event is lost only if no connection could be made."""
READ_S = 20.0
"""For which this waits for the next bytes of a request: a driver or its network may be gone."""
CONNECTIONS = 16
"""At a time; the listener needs one. Whoever reaches the port can open as many as there may be."""
_POLL_S = 0.1
_SHUTDOWN_S = 2.0
"""Twenty times what it takes; in a process that was forked from this one, nothing listens."""
_CHUNK = 1024 * 1024


class Receiver:
    """Listens from when it is made until it is closed."""

    def __init__(self, endpoint: Endpoint, path: Path) -> None:
        """Listen, and append to a file that is there.

        :raise RemoteDriverError: if nothing can be listened on
        :raise OSError: if the file cannot be opened, or a thread not be started
        """
        self.token = secrets.token_urlsafe(32)
        self.events = 0
        """How many were taken."""
        self.refused = 0
        """How many requests had no token, or another one."""
        self.lost: list[str] = []
        """Why events were not taken that had the token."""
        self._folder = path.parent
        self._one_at_a_time = threading.Lock()
        self._closing = threading.Lock()
        self._is_over = False
        self._server = endpoint.listening(lambda address, port: _Server(address, port, self))
        self.url = f"http://{endpoint.host}:{self._server.server_address[1]}"
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.fdopen(os.open(path, flags), "ab", buffering=0)
            thread = threading.Thread(
                target=self._server.serve_forever,
                kwargs={"poll_interval": _POLL_S},
                name="sparklineage-receiver",
                daemon=True,
            )
            thread.start()
        except (OSError, RuntimeError):
            self._server.server_close()
            raise

    @property
    def transport(self) -> dict[str, str]:
        """Properties of the transport by which a listener sends here."""
        return {
            "type": "http",
            "url": self.url,
            "endpoint": PATH,
            "timeoutInMillis": str(int(SEND_S * 1000)),
            "auth.type": "api_key",
            "auth.apiKey": self.token,
        }

    def close(self, seconds: float = 0.0) -> None:
        """Take no more; a second time does nothing.

        :param seconds: how long to wait for what is on its way
        """
        if not self._closing.acquire(blocking=False):
            return
        with contextlib.suppress(OutOfTimeError):
            within(_SHUTDOWN_S, self._server.shutdown, "sparklineage-receiver-end")
        self._server.wait_idle(seconds)
        self._server.server_close()
        self._is_over = True
        if self._one_at_a_time.acquire(timeout=_POLL_S):
            self._file.close()
            self._one_at_a_time.release()

    def take(self, stream: BufferedIOBase, size: int) -> HTTPStatus:
        """Take an event from its sender."""
        if size > MAX_LINE_BYTES:
            return self._lose(f"one of {size} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        # The listener may send the next one before this has arrived; their order says what was
        # when. What arrives in part must not be in the file.
        with (
            self._one_at_a_time,
            tempfile.SpooledTemporaryFile(_CHUNK, dir=str(self._folder)) as body,
        ):
            try:
                left = size
                while left and (chunk := stream.read(min(left, _CHUNK))):
                    body.write(chunk.replace(b"\n", b" "))  # it is one line of the file
                    left -= len(chunk)
                if left:
                    return self._lose("one that ended early", HTTPStatus.BAD_REQUEST)
                body.write(b"\n")
                body.seek(0)
                return self._append(body, size + 1)
            except OSError as error:
                return self._lose(error.strerror or str(error), HTTPStatus.INSUFFICIENT_STORAGE)

    def _append(self, body: IO[bytes], size: int) -> HTTPStatus:
        if self._is_over:
            return HTTPStatus.GONE
        handle = self._file.fileno()
        start = os.fstat(handle).st_size
        if start + size > MAX_BYTES:
            # Not 503, after which the listener's client waits and asks again.
            why = f"those after the first {start} bytes"
            return self._lose(why, HTTPStatus.INSUFFICIENT_STORAGE)
        try:
            shutil.copyfileobj(body, self._file, _CHUNK)
        finally:
            if is_torn := os.fstat(handle).st_size != start + size:
                os.ftruncate(handle, start)
        if is_torn:  # where the disk is full, a part is written, and that is no error
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.events += 1
        return HTTPStatus.CREATED

    def _lose(self, why: str, status: HTTPStatus) -> HTTPStatus:
        self.lost.append(why)
        return status

    def is_known(self, authorization: str) -> bool:
        """Whether a request has the token."""
        expected = f"Bearer {self.token}".encode()
        if hmac.compare_digest(authorization.encode("utf-8", "replace"), expected):
            return True
        self.refused += 1
        return False


class _Server(socketserver.ThreadingTCPServer):
    """One thread for each connection, up to a limit; none outlives the process."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: str, port: int, receiver: Receiver) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.receiver = receiver
        self._slots = threading.Semaphore(CONNECTIONS)
        super().__init__((address, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def wait_idle(self, seconds: float) -> None:
        """Wait until no connection is open any more."""
        ends = time.monotonic() + seconds
        for _ in range(CONNECTIONS):
            if not self._slots.acquire(timeout=max(0.0, ends - time.monotonic())):
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("%s from %s failed.", request, client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request for each connection, so that no thread waits for a next one."""

    timeout = READ_S
    server: _Server

    def do_POST(self) -> None:
        self.send_response_only(self._status())  # no name and no version of what answers
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self) -> HTTPStatus:
        receiver = self.server.receiver
        if not receiver.is_known(self.headers.get("Authorization", "")):
            return HTTPStatus.UNAUTHORIZED
        if self.path != PATH:
            return HTTPStatus.NOT_FOUND
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            return HTTPStatus.LENGTH_REQUIRED
        return receiver.take(self.rfile, int(length))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
