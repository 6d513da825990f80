"""Send proposals to DataHub's server, GMS, or write them to files.

Proposals go to GMS in batches. A batch that fails is sent again while that may help, until the time
for the event is over. A proposal can be sent twice without harm: an aspect replaces an equal one, a
patch adds entries that exist already, and a time series has one entry per time. So a batch is
sent again if no answer came. A batch with a refused proposal is halved until that proposal is
alone; the refused proposal is left out, and the error names it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import zlib
from base64 import b64decode
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit
from uuid import uuid4

from airflow_provider_sparklineage.datahub.proposals import with_stored
from airflow_provider_sparklineage.event.model import PlainEvent, fitted
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import DeliveryError
from airflow_provider_sparklineage.model.producer import DISTRIBUTION, version
from airflow_provider_sparklineage.model.texts import some, truncated
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from requests import PreparedRequest, Response, Session

    from airflow_provider_sparklineage.datahub.configuration import Server
    from airflow_provider_sparklineage.datahub.proposals import Json, Proposal


BATCH, BATCH_BYTES = 200, 4 * 1024 * 1024
"""The most proposals, and the most bytes, of one request; a larger proposal is sent alone.

DataHub's own emitter also sends 200 proposals. But it sends up to 15 MB, the limit of GMS: after
one slow answer, all 15 MB would have to be sent again.
"""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 2.0
_TRIES_OF_AN_ERROR = 2
_MAX_NAMED = 3
_SHARE_OF_READING = 0.25  # of the time for an event, for all stored aspects together


class Line(NamedTuple):
    """A proposal in the form in which it is sent.

    :param text: the proposal as JSON, in ASCII, because GMS reads each byte as a character
    """

    proposal: Proposal
    text: str


class _StoppedError(Exception):
    """Raised when nothing more can be sent; its message is the reason."""


def send(server: Server, proposals: Iterable[Proposal], until: float) -> int:
    """Send proposals to GMS, in the given order.

    :param proposals: the proposals; they are read batch by batch, so that they are not all in
        memory
    :param until: the value of ``time.monotonic()`` after which nothing is sent
    :return: the number of stored proposals. A refused proposal with ``only_if_absent`` counts as
        neither stored nor lost, because DataHub may have the aspect already
    :raise DeliveryError: if a proposal was lost; the error's text has the number of stored
        proposals, and the reasons for the lost ones
    """
    gms = Gms(server)
    sending = _Sending(gms, server, until)
    stopped = ""
    try:
        for batch in batches(_with_stored(gms, proposals, until)):
            sending.send(batch)
    except _StoppedError as error:
        stopped = str(error)
    finally:
        gms.close()
    if stopped or sending.refused:
        raise sending.error(stopped)
    return sending.stored


def _with_stored(gms: Gms, proposals: Iterable[Proposal], until: float) -> Iterator[Proposal]:
    """Yield proposals that keep what others have stored, as far as it can be read in time.

    :param until: the value of ``time.monotonic()`` after which nothing is sent
    """
    begun = time.monotonic()
    reads_until = begun + _SHARE_OF_READING * (until - begun)
    for proposal in proposals:
        aspect: Json = {}
        if proposal.keeps and (left := reads_until - time.monotonic()) > 0:
            aspect = gms.stored(proposal.urn, proposal.aspect_name, left)
        completed = with_stored(proposal, aspect)
        if not (isinstance(completed.aspect, dict) and completed.aspect.get("patch") == []):
            yield completed


def batches(proposals: Iterable[Proposal]) -> Iterator[list[Line]]:
    """Divide proposals into requests of at most ``BATCH`` proposals and ``BATCH_BYTES`` bytes."""
    metadata = {
        "lastObserved": time.time_ns() // 1_000_000,
        "properties": {"clientId": DISTRIBUTION, "clientVersion": version()},
    }
    batch: list[Line] = []
    size = 0
    for proposal in proposals:
        text = json.dumps(proposal.request() | {"systemMetadata": metadata})
        if batch and (len(batch) == BATCH or size + len(text) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(Line(proposal, text))
        size += len(text)
    if batch:
        yield batch


class _Sending:
    """Sends one event's proposals; counts the stored proposals, and lists the refused ones."""

    def __init__(self, gms: Gms, server: Server, until: float) -> None:
        self._gms = gms
        self._server = server
        self._until = until
        self.stored = 0
        self.refused: list[str] = []

    @property
    def _left(self) -> float:
        return self._until - time.monotonic()

    def send(self, batch: Sequence[Line]) -> None:
        """Send a batch; leave out the proposals that GMS refuses.

        :raise _StoppedError: if nothing more can be sent
        """
        answer = self._final_answer(batch)
        if answer.kind is Kind.STORED:
            self.stored += len(batch)
        elif answer.urns:
            forbidden = [line for line in batch if line.proposal.urn in answer.urns]
            allowed = [line for line in batch if line.proposal.urn not in answer.urns]
            self._refuse(forbidden, answer)
            if not forbidden:
                raise _StoppedError(answer.why)
            if allowed:
                self.send(allowed)
        elif len(batch) == 1:
            self._refuse(batch, answer)
        else:
            half = len(batch) // 2
            self.send(batch[:half])
            self.send(batch[half:])

    def _refuse(self, batch: Sequence[Line], answer: Answer) -> None:
        """Add refused proposals to ``refused``, except those with ``only_if_absent``.

        A proposal with that flag is not lost: a GMS of a version that does not know the header of
        the proposal refuses the proposal if the aspect exists already.

        :param batch: the refused proposals
        :param answer: GMS's answer, with the reason
        """
        self.refused += [
            f"{one.aspect_name} of {one.urn} ({answer.why})"
            for one, _ in batch
            if not one.only_if_absent
        ]

    def _final_answer(self, batch: Sequence[Line]) -> Answer:
        """Send a batch, again and again if need be, until GMS gives a final answer.

        :raise _StoppedError: if no request can succeed, or no time is left
        """
        waits = "true" if self._server.is_async else "false"
        proposals = ",".join(line.text for line in batch)
        body = f'{{"proposals":[{proposals}],"async":"{waits}"}}'.encode()
        pause, tries, why = _FIRST_PAUSE_S, 0, "there was no time left"
        while (left := self._left) > 0:
            answer, tries = self._gms.ingest(body, left), tries + 1
            if answer.kind is Kind.USELESS:
                raise _StoppedError(answer.why)
            is_last_try = answer.kind is Kind.FAILED and tries == _TRIES_OF_AN_ERROR
            if is_last_try or answer.kind in (Kind.STORED, Kind.REFUSED):
                return answer
            why = answer.why
            wait = max(pause, answer.after)
            if wait >= self._left:
                break
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise _StoppedError(why)

    def error(self, stopped: str) -> DeliveryError:
        """Make the error with the number of stored aspects, and the reasons for the lost ones.

        :param stopped: the reason for sending no more; empty if all was sent
        """
        reasons = [f"what is left was not sent, because {stopped}"] if stopped else []
        if self.refused:
            few = some(self.refused, _MAX_NAMED, lambda text: truncated(text, 500))
            reasons.append(f"{len(self.refused)} were refused: {few}")
        stored = f"{self.stored:,} aspects" if self.stored else "nothing"
        problem = f"DataHub at {self._server.url} stored {stored} of this event"
        return DeliveryError(f"{problem}; {'; '.join(reasons)}.", is_refusal=not stopped)


# The requests to GMS are those of the emitter in DataHub's own SDK (a test compares them), but they
# are made without the SDK: its import costs every process that Airflow forks 36 MB and a third of a
# second, and its retries do not end within Airflow's ten seconds.
#
# GMS stores a batch as a whole or not at all. If the request asks for ``async``, GMS answers once
# Kafka has acknowledged each proposal, so that none is lost, and does not wait for its database and
# its index.

_INGEST_PATH = "/aspects?action=ingestProposalBatch"
_MAX_ANSWER = 64 * 1024
_MAX_STORED = 8 * 1024 * 1024  # the edges of a dataset with thousands of columns
_MAX_REASON = 300
_FORBIDDEN_URN = re.compile(r"Urn: (urn:li:.+?)(?=, HttpStatus: |$)", re.MULTILINE)


class Kind(Enum):
    """The kinds of GMS's answers; the kind decides what is sent next."""

    STORED = "stored"
    REFUSED = "refused"
    """One of the proposals is wrong, or not allowed: without it GMS may store the others."""
    FAILED = "failed"
    """GMS met an error, and does not say whether the server or a proposal is the cause."""
    BUSY = "busy"
    """The same request may succeed later."""
    USELESS = "useless"
    """No request to this server can succeed."""


class Answer(NamedTuple):
    """The result of a request.

    :param why: the reason for a failure, for people and without secrets; empty if GMS stored all
    :param after: seconds to wait before the next request, as the server demands
    :param urns: URNs of entities that the token may not change; empty if GMS names none
    """

    kind: Kind
    why: str = ""
    after: float = 0.0
    urns: frozenset[str] = frozenset()


class Gms:
    """A connection to GMS for only one event, so that no two processes or threads share it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._secrets = _forms_of_secrets(value for _, value in server.headers)
        self._session: Session | None = None
        self._is_readable = True

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def ingest(self, body: bytes, seconds: float) -> Answer:
        """Send a batch; never raises.

        :param body: the JSON of the request
        :param seconds: the time limit of the whole request, however slowly the server answers
        """
        try:
            return within(seconds, lambda: self._posted(body, seconds), "sparklineage-datahub")
        except OutOfTimeError:
            self._session = None  # the thread of the late request still uses it
            return Answer(Kind.BUSY, f"{self._server.url} did not answer within {seconds:.2g} s")
        except Exception as error:
            self.close()
            return self._broken(error)

    def stored(self, urn: str, aspect_name: str, seconds: float) -> Json:
        """Give a stored aspect; {} if there is none, or it cannot be read; never raises.

        After a server has not given an aspect, it is not asked again: a token may write and not
        read, and nothing depends on what is stored.

        :param seconds: the time limit of the request
        """
        if not self._is_readable:
            return {}
        path = f"/aspects/{quote(urn, safe='')}?aspect={aspect_name}&version=0"
        try:
            found = within(seconds, lambda: self._stored(path, seconds), "sparklineage-datahub")
        except OutOfTimeError:
            self._session = None  # the thread of the late request still uses it
            found = None
        except Exception:  # as an answer would be to the proposals themselves
            self.close()
            found = None
        self._is_readable = found is not None
        return found or {}

    def _stored(self, path: str, seconds: float) -> Json | None:
        with self._requested("GET", path, None, seconds) as response:
            if response.status_code == 404:
                return {}
            document = _json_object(response, _content(response, _MAX_STORED))
        aspects = (document or {}).get("aspect")
        if not response.ok or not isinstance(aspects, dict):
            return None
        one = next(iter(aspects.values()), None)  # by the name of its class
        return one if isinstance(one, dict) else None

    def _posted(self, body: bytes, seconds: float) -> Answer:
        with self._requested("POST", _INGEST_PATH, body, seconds) as response:
            return self._judged(response, _content(response, _MAX_ANSWER))

    @contextmanager
    def _requested(
        self, method: str, path: str, body: bytes | None, seconds: float
    ) -> Iterator[Response]:
        session = self._session = self._session or self._connected()
        with (
            _without_debug_output(),
            session.request(
                method,
                self._server.url + path,
                data=body,
                timeout=seconds,
                # An environment variable would override `verify` if the session had it.
                verify=self._server.verify,
                cert=self._server.cert,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            yield response

    def _connected(self) -> Session:
        import requests

        session = requests.Session()
        session.headers.update(
            {
                "Content-Type": "application/json",
                "X-RestLi-Protocol-Version": "2.0.0",
                "Accept-Encoding": "identity",  # what is compressed can be a thousand times larger
                **dict(self._server.headers),
            }
        )
        bearer = (self._server.bearer() or "").strip()  # a file with a token ends with a newline
        self._secrets |= _forms_of_secrets([bearer])

        def authenticated(request: PreparedRequest) -> PreparedRequest:
            if bearer:
                request.headers["Authorization"] = bearer
            return request

        session.auth = authenticated  # else requests takes the password of .netrc for the host
        return session

    def _judged(self, response: Response, content: bytes) -> Answer:
        status = response.status_code
        if 300 <= status < 400:
            where = _host_of(response.headers.get("Location") or "")
            return self._answer(Kind.USELESS, f"{self._server.url} sends on to {where} ({status})")
        document = _json_object(response, content)
        if 200 <= status < 300:
            if document is None:
                why = f"what answers at {self._server.url} is not GMS: its answer is no JSON"
                return self._answer(Kind.USELESS, why)
            status = _status_inside(document)
            if not status:
                return Answer(Kind.STORED)
        text = str((document or {}).get("message") or response.reason)
        answer = self._answer(_KINDS_BY_STATUS.get(status, Kind.USELESS), f"{status} {text}")
        if status == 403:
            urns = frozenset(_FORBIDDEN_URN.findall(text))
            return answer._replace(urns=urns, kind=Kind.REFUSED if urns else Kind.USELESS)
        return answer._replace(after=_seconds_to_wait(response.headers.get("Retry-After")))

    def _broken(self, error: Exception) -> Answer:
        """Make an answer from an exception; most exceptions are errors of the connection."""
        import requests
        import urllib3

        errors = requests.exceptions
        of_url = errors.InvalidURL, errors.InvalidSchema, urllib3.exceptions.LocationParseError
        is_final = isinstance(error, (errors.SSLError, *of_url))
        if isinstance(error, ValueError) and not is_final:
            # A header is invalid. The exception's text would show all of it, with secrets.
            why = "the token, or one of the headers, cannot be sent as a header"
            return self._answer(Kind.USELESS, why)
        is_passing = isinstance(error, OSError) and not is_final  # as all errors of requests are
        kind = Kind.BUSY if is_passing else Kind.USELESS
        return self._answer(kind, f"{self._server.url} {_connection_problem(error)}")

    def _answer(self, kind: Kind, why: str) -> Answer:
        """Make an answer; hide the token and the headers, because a server may repeat them.

        :param why: the reason for a failure, which may have secrets
        """
        for secret in sorted(self._secrets, key=len, reverse=True):
            why = why.replace(secret, "***")
        return Answer(kind, truncated(" ".join(scrub(why).split()), _MAX_REASON))


_SHORTEST_SECRET = 4  # a shorter text, such as a tenant's number, is part of many other texts
_IN_HEADERS = re.compile(r"[\s,;=]+")  # between the parts of `Basic …`, or of a cookie


def _forms_of_secrets(values: Iterable[str]) -> frozenset[str]:
    """Give the texts by which a server can repeat the values of headers, or the secrets in them."""
    forms = set()
    for value in values:
        parts = {value, value.partition(" ")[2], *_IN_HEADERS.split(value)}
        for part in tuple(parts):
            with suppress(ValueError):  # user and password of Basic authentication
                user_and_password = b64decode(part, validate=True).decode()
                parts |= {user_and_password, user_and_password.partition(":")[2]}
        forms |= parts | {quote(part, safe="") for part in parts}
    return frozenset(one for one in forms if len(one) >= _SHORTEST_SECRET)


def _content(response: Response, limit: int) -> bytes:
    """Read the body of a response, but not more than ``limit`` bytes.

    A body that is compressed, though nobody asked for that, is unpacked up to the limit.
    """
    content: bytes = response.raw.read(limit, decode_content=False)
    if response.headers.get("Content-Encoding", "identity").lower() not in ("gzip", "deflate"):
        return content
    with suppress(zlib.error):
        return zlib.decompressobj(_ANY_ZLIB).decompress(content, limit)
    return b""


_ANY_ZLIB = zlib.MAX_WBITS | 32  # finds out by itself whether it is gzip's form or zlib's


def _host_of(location: str) -> str:
    """Give the scheme and host of a redirect's target, because the rest may have a session's key.

    :param location: the target, as the header ``Location`` has it
    """
    with suppress(ValueError):
        parts = urlsplit(location)
        if parts.hostname:
            return f"{parts.scheme}://{parts.hostname}"
    return "another path"


def _connection_problem(error: Exception) -> str:
    """Describe a connection's error in a few words, by patterns in the libraries' long texts."""
    text = str(error)
    known = (
        one for pattern, one in _CONNECTION_PROBLEMS if re.search(pattern, text, re.IGNORECASE)
    )
    return next(known, f"cannot be asked ({type(error).__name__}: {text})")


_CONNECTION_PROBLEMS = (
    ("WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER", "does not speak TLS"),
    ("CERTIFICATE_VERIFY_FAILED", "has a certificate that is not trusted here"),
    ("NameResolution|Name or service not known|getaddrinfo|label empty",
     "has a host without an IP address"),
    ("Unable to connect to proxy|ProxyError", "is behind a proxy that does not answer"),
    ("refused", "is where nothing listens"),
    ("RemoteDisconnected|reset by peer|IncompleteRead|broken pipe|BadStatusLine|aborted",
     "closed the connection before it answered"),
    ("timed out", "did not answer in time"),
)  # fmt: skip

_KINDS_BY_STATUS = {
    **dict.fromkeys((400, 413, 422), Kind.REFUSED),
    **dict.fromkeys((408, 425, 429, 502, 503, 504), Kind.BUSY),
    500: Kind.FAILED,
}
"""The kind of an answer, by its HTTP status.

Any other status is ``USELESS``: at 401 or 404 the token or the URL is wrong for any request.
"""


def _status_inside(document: Json) -> int:
    """Give the status of an error that a gateway has put into an answer with status 200; else 0."""
    status = document.get("status")
    is_error = isinstance(status, int) and status >= 400
    return status if is_error and "value" not in document else 0  # type: ignore[return-value]


def _json_object(response: Response, content: bytes) -> dict[str, Any] | None:
    """Give the JSON object of a response; None for any other response, such as a proxy's page.

    :param content: the body of the response
    """
    if "json" not in response.headers.get("Content-Type", ""):
        return None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _seconds_to_wait(retry_after: str | None) -> float:
    """Read the header ``Retry-After``, a number of seconds or a date; 0.0 if it is neither."""
    if not retry_after:
        return 0.0
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, TypeError):
        at = parsedate_to_datetime(retry_after)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
    return 0.0


@contextmanager
def _without_debug_output() -> Iterator[None]:
    """Keep ``http.client`` from printing the token: at a debug level, it prints all headers."""
    level, HTTPConnection.debuglevel = HTTPConnection.debuglevel, 0
    try:
        yield
    finally:
        HTTPConnection.debuglevel = level


# ``datahub ingest`` reads the files, which are in one folder, one file for each event. DataHub's
# file source reads a JSON array, or each ``*.json`` of a folder, but not lines of JSON. Several
# processes, which may be killed, cannot safely append to one array. So each event gets a file of
# its own, which is renamed once it is complete. File names begin with the time of the event, so
# that a sorted list of files is in the order of time. The file of an event always has the same
# name, so that an event that is written twice has only one file.

_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9]+")


def write_file(folder: Path, event: Json, proposals: Iterable[Proposal]) -> Path:
    """Write the proposals of an event to a file; the folder is made if it is missing.

    :param event: the event of the proposals; the file's name has the event's time, type and run id
    :return: the path of the file
    :raise DeliveryError: if the file cannot be written
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{uuid4().hex}.part"
        try:
            with part.open("x", encoding="ascii") as file:
                digest = _write_array(file, proposals)
            return part.replace(folder / f"{_file_name(event)}-{digest}.json")
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        problem = f"DataHub's folder {folder} takes no file ({error.strerror})."
        raise DeliveryError(problem) from None


def _write_array(file: IO[str], proposals: Iterable[Proposal]) -> str:
    """Write proposals as a JSON array; return a short checksum of the proposals."""
    checksum = hashlib.sha256()
    before = "[\n"
    for proposal in proposals:
        text = json.dumps(proposal.document())
        checksum.update(text.encode())
        file.write(before + text)
        before = ",\n"
    file.write("[]\n" if before == "[\n" else "\n]\n")
    return checksum.hexdigest()[:8]


def _file_name(event: Json) -> str:
    """Give the event's time, type and run id for a file's name, joined by ``-``.

    For an event of a dataset or a job alone, the result is only the time.
    """
    plain = fitted(event, PlainEvent)
    parts = filter(None, (plain.eventTime, plain.eventType, plain.run.runId))
    return "-".join(_NOT_IN_FILE_NAMES.sub("", part)[:40] for part in parts)
