"""A receiver of the listener's events, which come by HTTP while the job runs, and its address.

A driver in a cluster delivers its captured files by Python code. If the driver has no Python
(Scala, Java, R, SQL), the task receives the events from the HTTP transport of the listener. The
receiver accepts only the events of this job, which it knows by a token that is made for the job,
and it listens only while the job runs. Each event becomes a line of the bundle's file, as a whole
or not at all.

``capture_endpoint`` (:class:`Endpoint`) is the name by which drivers reach this worker, and the
address on which the :class:`Receiver` listens.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import os
import re
import secrets
import shutil
import socket
import socketserver
import tempfile
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import RemoteDriverError, SettingsError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.lines import MAX_LINE_BYTES
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedIOBase, BufferedReader
    from pathlib import Path


T = TypeVar("T")

HOSTNAME = "{hostname}"
RESOLVE_S = 5.0
"""The time in which the addresses of a name have to be found: without this limit, a name server
that does not answer would take half a minute."""

_ENDPOINT = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<first>[0-9]{1,5})(?:-(?P<last>[0-9]{1,5}))?)?"
)
_LARGEST_PORT = 65535


class Endpoint(Frozen, frozen=True):
    """The name or address, with ports, to which drivers send events.

    :param host: the name or address, in the form that it has in a URL
    :param ports: the ports on which the worker may listen; the port 0 stands for any free port
    """

    host: str
    ports: range

    @classmethod
    def read(cls, text: str, hostname: str) -> Endpoint:
        """Read the option ``capture_endpoint``.

        :param text: the option, such as ``{hostname}:20000-20100``; without ports, any free port is
            used
        :param hostname: the worker's own name, which replaces ``{hostname}``
        :raise SettingsError: if the text is not a name with ports
        """
        match = _ENDPOINT.fullmatch(text.replace(HOSTNAME, hostname).strip())
        first = int(match["first"] or 0) if match else 0
        last = int(match["last"] or first) if match else 0
        if match is None or not (first <= last <= _LARGEST_PORT) or (match["first"] and not first):
            problem = f"[sparklineage] capture_endpoint {text} is no name with ports."
            fix = "Write it as worker-1.example.com:20000-20100; an IPv6 address in brackets."
            raise SettingsError(problem, fix)
        return cls(match["host"], range(first, last + 1))

    def listening(self, listen: Callable[[str, int], T]) -> T:
        """Listen on the first address of the name that this machine has, and the first free port.

        If this machine has none of the addresses, listen on all its interfaces
        (:func:`_addresses`).

        :param listen: a function that listens on an address and a port
        :return: the result of ``listen``
        :raise RemoteDriverError: if the name has no address here, or no port is free
        """
        reason = OSError(errno.EADDRNOTAVAIL, "It has no address")
        try:
            for address in _addresses(self.host, self._resolved()):
                for port in self.ports:
                    try:
                        return listen(address, port)
                    except OSError as error:
                        reason = error
                        if error.errno == errno.EADDRNOTAVAIL:
                            break  # the address is not this machine's
                        if error.errno != errno.EADDRINUSE:
                            raise
            raise reason
        except (OSError, OutOfTimeError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "its name server does not answer"
            if isinstance(error, UnicodeError):  # a label is empty, or has over 63 characters
                why = "No name server has such a name"
            problem = f"This worker cannot listen for the driver's events at {self}: {why}."
            fix = (
                "[sparklineage] capture_endpoint has to be a name or an address of this worker, "
                "with as many ports as tasks run on it at once."
            )
            raise RemoteDriverError(problem, fix) from error

    def _resolved(self) -> list[str]:
        bare = self.host.strip("[]")
        resolved = within(
            RESOLVE_S,
            lambda: socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM),
            "sparklineage-endpoint",
        )
        return [str(address[0]) for *_, address in resolved]

    def __str__(self) -> str:
        if not self.ports[-1]:
            return self.host
        ports = f"{self.ports[0]}-{self.ports[-1]}" if len(self.ports) > 1 else f"{self.ports[0]}"
        return f"{self.host}:{ports}"


def _addresses(host: str, resolved: list[str]) -> list[str]:
    """List the addresses on which to try to listen, in this order, until one works.

    An address of the host may belong to no interface of this machine, because a cloud or Kubernetes
    forwards it to this machine. And many machines have their own name in ``/etc/hosts`` with an
    address that only the machine itself can reach. In both cases the address to which drivers send
    is not known, so the last address in the list stands for all interfaces (except for
    ``localhost`` and for addresses that only this machine can reach).

    :param host: the name or address in ``capture_endpoint``
    :param resolved: the addresses of the host, by the name server or ``/etc/hosts``
    """
    outside = [a for a in resolved if not ipaddress.ip_address(a.partition("%")[0]).is_loopback]
    if host == "localhost" or (not outside and _is_address(host)):
        return resolved
    any_address = "::" if outside and all(":" in address for address in outside) else "0.0.0.0"  # noqa: S104
    return [*dict.fromkeys(outside), any_address]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


log = logger(__name__)

PATH = "/api/v1/lineage"
MAX_BYTES = 2 * 1024 * 1024 * 1024
"""The limit on all events of a job: more than merging can read in its time, and too little to fill
a disk."""
SEND_S = 1.0
"""The time for which the listener waits for an answer. It waits in Spark's thread for listeners,
not in the job's thread. An event that was sent in this time arrives even if the answer is late; an
event is lost only if no connection could be made."""
READ_S = 20.0
"""The time for which the receiver waits for more bytes of an event: a driver or its network may be
gone."""
HEADERS_S = 5.0
"""The time for all headers of a request together. The listener sends them at once; a program that
sends a byte now and then would otherwise keep its connection for ever."""
SLOWEST = 100 * 1024
"""The bytes that a sender has to send in each second, after its first :data:`READ_S`: while an
event is read, all later events wait."""
CONNECTIONS = 16
"""The largest number of connections at a time. The listener needs one connection, but every program
that reaches the port can open connections."""
_LONGEST_LENGTH = 18  # digits; int() raises an error for thousands of them
_POLL_S = 0.1
_SHUTDOWN_S = 2.0
"""The time for which closing waits until the server's thread has ended, twenty times the usual. In
a process that was forked from this one, there is no such thread, so waiting needs a limit."""
_CHUNK = 1024 * 1024


class Receiver:
    """A server that appends the events it receives to a file; it listens until it is closed."""

    def __init__(self, endpoint: Endpoint, path: Path) -> None:
        """Listen, and open the existing file to append to it.

        :param endpoint: the name or address, with ports, to which drivers send
        :param path: the events file of the bundle
        :raise RemoteDriverError: if the worker cannot listen on any of the addresses and ports
        :raise OSError: if the file cannot be opened, or a thread cannot be started
        """
        self.token = secrets.token_urlsafe(32)
        self.events = 0
        """The number of events that were written to the file."""
        self.refusals: Counter[str] = Counter()
        """The number of connections that were turned away, by the reason."""
        self.lost: list[str] = []
        """The reasons why events of requests with the token were lost."""
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
        """The properties of the transport with which a listener sends events to this receiver."""
        return {
            "type": "http",
            "url": self.url,
            "endpoint": PATH,
            "timeoutInMillis": str(int(SEND_S * 1000)),
            "auth.type": "api_key",
            "auth.apiKey": self.token,
        }

    def close(self, seconds: float = 0.0) -> None:
        """Stop listening, and close the file; a second call does nothing.

        :param seconds: the time to wait for the end of requests that have begun
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

    def problems(self) -> Iterator[tuple[DegradationCode, str]]:
        """Yield degradations, as code and message, if anything was refused, or no event came.

        An event that came without this receiver's token does not count.
        """
        if not self.events:
            problem = (
                f"The driver ran in a cluster, and no event of it came to {self.url}, where this "
                "worker listened. If the job did start a SparkSession, look in the "
                "driver's log for messages of HttpTransport, and let drivers reach [sparklineage] "
                "capture_endpoint."
            )
            yield DegradationCode.DRIVER_ELSEWHERE, problem
        if self.refusals:
            reasons = ", ".join(f"{n} {why}" for why, n in sorted(self.refusals.items()))
            problem = (
                f"{self.refusals.total()} connection(s) to {self.url} were turned away: {reasons}. "
                "An event of the driver may have been among them."
            )
            yield DegradationCode.DELIVERY_INCOMPLETE, problem
        if self.lost:
            problem = (
                f"{len(self.lost)} event(s) that the driver sent to this worker were not taken: "
                f"{self.lost[0]}."
            )
            yield DegradationCode.DELIVERY_INCOMPLETE, problem

    def take(self, stream: BufferedIOBase, size: int) -> HTTPStatus:
        """Read an event from its sender and append it to the file; give the status of the answer.

        :param stream: the body of the sender's request
        :param size: the event's size in bytes, as its sender declares
        """
        if size > MAX_LINE_BYTES:
            return self.lose(f"one of {size} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        # One at a time: the listener may send the next event before this one has arrived, and
        # the order in the file shows the order in time. The event goes through a temporary
        # file, because no part of an event may be in the events' file.
        with (
            self._one_at_a_time,
            tempfile.SpooledTemporaryFile(_CHUNK, dir=str(self._folder)) as body,
        ):
            try:
                left, begun = size, time.monotonic()
                # One read of the connection, because a read of so many bytes would wait for them
                # without a limit.
                while left and (chunk := stream.read1(min(left, _CHUNK))):
                    body.write(chunk.replace(b"\n", b" "))  # it is one line of the file
                    left -= len(chunk)
                    if left and time.monotonic() - begun > READ_S + (size - left) / SLOWEST:
                        return self.lose("one that came too slowly", HTTPStatus.REQUEST_TIMEOUT)
                if left:
                    return self.lose("one that ended early", HTTPStatus.BAD_REQUEST)
                body.write(b"\n")
                body.seek(0)
                return self._append(body, size + 1)
            except OSError as error:
                return self.lose(error.strerror or str(error), HTTPStatus.INSUFFICIENT_STORAGE)

    def _append(self, body: IO[bytes], size: int) -> HTTPStatus:
        if self._is_over:
            return HTTPStatus.GONE
        handle = self._file.fileno()
        start = os.fstat(handle).st_size
        if start + size > MAX_BYTES:
            # Not 503, after which the listener's client waits and tries again.
            why = f"those after the first {start} bytes"
            return self.lose(why, HTTPStatus.INSUFFICIENT_STORAGE)
        try:
            shutil.copyfileobj(body, self._file, _CHUNK)
        finally:
            if is_torn := os.fstat(handle).st_size != start + size:
                os.ftruncate(handle, start)
        if is_torn:  # on a full disk a part may be written without an error
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.events += 1
        return HTTPStatus.CREATED

    def lose(self, why: str, status: HTTPStatus) -> HTTPStatus:
        """Note that an event of a sender with the token is lost, and give the status again.

        :param why: the reason, as a description of the event
        """
        self.lost.append(why)
        return status

    def is_known(self, authorization: str) -> bool:
        """Whether a request has this receiver's token; count the request if it does not.

        :param authorization: the header ``Authorization`` of the request
        """
        expected = f"Bearer {self.token}".encode()
        if hmac.compare_digest(authorization.encode("utf-8", "replace"), expected):
            return True
        self.refusals["without the token of this try"] += 1
        return False


class _Connection:
    """An open connection.

    :ivar is_judged: whether its request was accepted or refused: then nothing ends it from outside
    """

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.is_judged = False

    def is_older_than(self, seconds: float) -> bool:
        return time.monotonic() - self.since > seconds


class _Server(socketserver.ThreadingTCPServer):
    """A server with one thread for each connection, up to :data:`CONNECTIONS` at a time.

    A connection whose request has not been judged gives way to a new one, the oldest first, and is
    ended after :data:`HEADERS_S`. The threads are daemons, so they do not keep the process alive.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64
    timeout = 0

    def __init__(self, address: str, port: int, receiver: Receiver) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.receiver = receiver
        self._open: dict[Any, _Connection] = {}
        self._changed = threading.Condition()
        super().__init__((address, port), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return cast("tuple[Any, Any]", super().get_request())
        except OSError as error:
            self.receiver.refusals[f"not accepted ({error.strerror})"] += 1
            time.sleep(_POLL_S)  # without a free file descriptor the server would try without end
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            if len(self._open) >= CONNECTIONS:
                oldest = next((r for r, c in self._open.items() if not c.is_judged), None)
                if oldest is None:
                    self.receiver.refusals[f"while {CONNECTIONS} others sent events"] += 1
                    self.shutdown_request(request)
                    return
                self._turn_away(oldest, "which gave way to later ones")
            self._open[request] = _Connection()
        try:
            super().process_request(request, client_address)
        except BaseException:
            with self._changed:
                self._turn_away(request, "for which there was no thread")
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changed:
                self._open.pop(request, None)
                self._changed.notify_all()

    def service_actions(self) -> None:
        with self._changed:
            for request, connection in [*self._open.items()]:
                if not connection.is_judged and connection.is_older_than(HEADERS_S):
                    self._turn_away(request, f"without a whole request in {HEADERS_S:g} s")

    def _turn_away(self, request: Any, why: str) -> None:
        # Its thread, which waits for bytes, then reads the end of the stream, and closes it.
        if self._open.pop(request, None):
            self.receiver.refusals[why] += 1
            with contextlib.suppress(OSError):  # its other side has ended it
                request.shutdown(socket.SHUT_RDWR)

    def judge(self, request: Any) -> bool:
        """Keep a connection open from now on, unless it was turned away already.

        :return: whether it is still open
        """
        with self._changed:
            connection = self._open.get(request)
            if connection is not None:
                connection.is_judged = True
            return connection is not None

    def wait_idle(self, seconds: float) -> None:
        """Wait until no connection can bring an event, but no longer than ``seconds``.

        This method is called when :meth:`serve_forever` has ended.
        The listener sends its headers at once, so a connection that has not sent them within
        :data:`SEND_S` is not waited for.
        """
        ends = time.monotonic() + seconds
        for _ in range(self.request_queue_size):  # connections that the system has accepted
            self.handle_request()
        with self._changed:
            while any(c.is_judged or not c.is_older_than(SEND_S) for c in self._open.values()):
                if (left := ends - time.monotonic()) <= 0:
                    break
                self._changed.wait(min(left, _POLL_S))
            for request, connection in [*self._open.items()]:
                if connection.is_judged:  # its thread goes on, but the event is not taken
                    self.receiver.lose("one that was too late", HTTPStatus.GONE)
                else:
                    self._turn_away(request, "without a whole request when the job ended")

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("%s from %s failed.", request, client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """A handler that answers one request per connection: no thread waits for a second request."""

    timeout = READ_S
    server: _Server

    def parse_request(self) -> bool:
        try:
            return super().parse_request()
        except ConnectionError:
            self.server.receiver.refusals["that broke before its request was whole"] += 1
            raise

    def do_POST(self) -> None:
        if self.server.judge(self.request):
            status = self._status()
            if status == HTTPStatus.CREATED and self._has_more():
                self.server.receiver.lose("one behind another of the same connection", status)
            self._answer(status)

    def _has_more(self) -> bool:
        """Whether the sender has already sent more than this request, which nothing will read."""
        self.connection.settimeout(0)
        try:
            return bool(cast("BufferedReader", self.rfile).peek(1))
        except OSError:  # the sender is gone
            return False
        finally:
            self.connection.settimeout(self.timeout)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not like the listener's; the parent class calls this method."""
        if self.server.judge(self.request):
            self.server.receiver.refusals["with a request that no listener sends"] += 1
            log.debug("%s %s %s", code, message, explain)
            self._answer(code)

    def _answer(self, status: int) -> None:
        self.send_response_only(status)  # without the name and version of the server
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self) -> HTTPStatus:
        receiver, headers = self.server.receiver, self.headers
        if not receiver.is_known(headers.get("Authorization", "")):
            return HTTPStatus.UNAUTHORIZED
        if self.path != PATH:
            return receiver.lose("one for another path", HTTPStatus.NOT_FOUND)
        if headers.get("Content-Encoding", "identity") != "identity":
            why = "one that is compressed"
            return receiver.lose(why, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdecimal() and len(length) <= _LONGEST_LENGTH
        if "Transfer-Encoding" in headers or not is_number:
            return receiver.lose("one of unknown length", HTTPStatus.LENGTH_REQUIRED)
        return receiver.take(self.rfile, int(length))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
