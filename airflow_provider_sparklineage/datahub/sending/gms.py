"""GMS, DataHub's metadata service: one request to it, and what its answer is good for.

What is sent is what the emitter of DataHub's own SDK sends, as a test compares, and it is sent
without the SDK: its import costs every process that Airflow forks 36 MB and a third of a second,
and its retries have no end that fits into Airflow's ten seconds.

GMS takes a batch as a whole or not at all. Asked to be asynchronous, it answers once Kafka has
acknowledged each proposal, so that none is lost, and does not wait for its database and its index.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from requests import PreparedRequest, Response, Session

    from airflow_provider_sparklineage.datahub.configuration import Server

_PATH = "/aspects?action=ingestProposalBatch"
_MAX_ANSWER = 64 * 1024
_LONGEST_REASON = 300
_FORBIDDEN_URN = re.compile(r"Urn: (urn:li:.+?)(?=, HttpStatus: |$)", re.MULTILINE)


class Kind(Enum):
    """What is to be done after an answer."""

    STORED = "stored"
    REFUSED = "refused"
    """One of the proposals is wrong, or not allowed: without it the others may be taken."""
    FAILED = "failed"
    """GMS met an error; of the server or of a proposal, it does not know."""
    BUSY = "busy"
    """Later it may do."""
    USELESS = "useless"
    """No request will do better."""


class Answer(NamedTuple):
    """What a request came to.

    :param why: for people, without secrets; empty if all is stored
    :param after: seconds that the server wants to be left alone for
    :param urns: that were not allowed, if it names them
    """

    kind: Kind
    why: str = ""
    after: float = 0.0
    urns: frozenset[str] = frozenset()


class Gms:
    """A connection to GMS, for one event: neither a fork nor a thread has to share it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._secret = ""
        self._session: Session | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def ingest(self, body: bytes, seconds: float) -> Answer:
        """Send a batch; never raises.

        :param seconds: that all of it may take; a server that sends a byte now and then included
        """
        try:
            return within(seconds, lambda: self._posted(body, seconds), "sparklineage-datahub")
        except OutOfTimeError:
            self._session = None  # it is in use, until whatever it waits for has happened
            return Answer(Kind.BUSY, f"{self._server.url} did not answer within {seconds:.2g} s")
        except Exception as error:
            self.close()
            return self._broken(error)

    def _posted(self, body: bytes, seconds: float) -> Answer:
        session = self._session = self._session or self._connected()
        with (
            _unprinted(),
            session.post(
                self._server.url + _PATH,
                data=body,
                timeout=seconds,
                verify=self._server.verify,  # of the session it would come after the environment
                cert=self._server.cert,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            content = response.raw.read(_MAX_ANSWER, decode_content=True)
            return self._judged(response, content)

    def _connected(self) -> Session:
        import requests

        session = requests.Session()
        session.headers.update(
            {
                "Content-Type": "application/json",
                "X-RestLi-Protocol-Version": "2.0.0",
                **dict(self._server.headers),
            }
        )
        bearer = (self._server.bearer() or "").strip()  # a file with a token ends with a newline
        self._secret = bearer.removeprefix("Bearer ")

        def authenticated(request: PreparedRequest) -> PreparedRequest:
            if bearer:
                request.headers["Authorization"] = bearer
            return request

        session.auth = authenticated  # not what .netrc has for the host
        return session

    def _judged(self, response: Response, content: bytes) -> Answer:
        status = response.status_code
        if 300 <= status < 400:
            where = response.headers.get("Location") or "nowhere"
            return self._answer(Kind.USELESS, f"{self._server.url} sends on to {where} ({status})")
        document = _json(response, content)
        if response.ok:
            if document is not None:
                return Answer(Kind.STORED)
            why = f"what answers at {self._server.url} is not GMS: its answer is no JSON"
            return self._answer(Kind.USELESS, why)
        text = str((document or {}).get("message") or response.reason)
        answer = self._answer(_KINDS.get(status, Kind.USELESS), f"{status} {text}")
        if status == 403:
            urns = frozenset(_FORBIDDEN_URN.findall(text))
            return answer._replace(urns=urns, kind=Kind.REFUSED if urns else Kind.USELESS)
        return answer._replace(after=_pause(response.headers.get("Retry-After")))

    def _broken(self, error: Exception) -> Answer:
        """Judge an exception: of the connection, mostly."""
        import requests

        kind = Kind.USELESS
        if isinstance(error, (requests.ConnectionError, requests.Timeout, OSError)):
            kind = Kind.BUSY
        if isinstance(error, (requests.exceptions.SSLError, requests.exceptions.InvalidURL)):
            kind = Kind.USELESS
        elif isinstance(error, ValueError):
            # What is no header; the exception's text has all of it.
            return self._answer(
                kind, "the token, or one of the headers, cannot be sent as a header"
            )
        return self._answer(kind, f"{self._server.url} {_of_connection(error)}")

    def _answer(self, kind: Kind, why: str) -> Answer:
        """Give an answer whose reason has nothing of the token, which a server may repeat."""
        hidden = why.replace(self._secret, "***") if self._secret else why
        return Answer(kind, truncated(" ".join(scrub(hidden).split()), _LONGEST_REASON))


def _of_connection(error: Exception) -> str:
    """Say what became of a connection; libraries say it around five other things."""
    text = str(error)
    for pattern, meaning in _CONNECTIONS:
        if re.search(pattern, text, re.IGNORECASE):
            return meaning
    return f"cannot be asked ({type(error).__name__}: {text})"


_CONNECTIONS = (
    ("WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER", "does not speak TLS"),
    ("CERTIFICATE_VERIFY_FAILED", "has a certificate that is not trusted here"),
    ("NameResolution|Name or service not known|getaddrinfo", "has a host without an IP address"),
    ("Unable to connect to proxy|ProxyError", "is behind a proxy that does not answer"),
    ("refused", "is where nothing listens"),
    ("RemoteDisconnected|reset by peer|IncompleteRead|broken pipe|BadStatusLine|aborted",
     "closed the connection before it answered"),
    ("timed out", "did not answer in time"),
)  # fmt: skip

_KINDS = {
    400: Kind.REFUSED,
    413: Kind.REFUSED,
    422: Kind.REFUSED,
    408: Kind.BUSY,
    425: Kind.BUSY,
    429: Kind.BUSY,
    500: Kind.FAILED,
    502: Kind.BUSY,
    503: Kind.BUSY,
    504: Kind.BUSY,
}
"""401 and 404 among the others: the token, or the URL, is wrong for whatever is sent."""


def _json(response: Response, content: bytes) -> dict[str, Any] | None:
    """Give the JSON object of an answer; a page of a proxy's has none."""
    import json

    if "json" not in response.headers.get("Content-Type", ""):
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _pause(retry_after: str | None) -> float:
    """Read how many seconds a server wants: a number of them, or a date."""
    if not retry_after:
        return 0.0
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, TypeError):
        at = parsedate_to_datetime(retry_after)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
    return 0.0


@contextmanager
def _unprinted() -> Iterator[None]:
    """Let ``http.client`` not print the token: with its debug level it prints every header."""
    level, HTTPConnection.debuglevel = HTTPConnection.debuglevel, 0
    try:
        yield
    finally:
        HTTPConnection.debuglevel = level
