"""A scripted GMS on the loopback: takes what DataHub's takes, refuses what it refuses.

Its checks are those of DataHub's ``AspectResource.ingestProposalBatch``: a batch is stored as a
whole, or 403 names the URNs that the user may not change, or 422 names what is no aspect.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import Handler, serving
from tests.unit.datahub import sdk

JSON = "application/json"
TOKEN = "eyJhbGciOi.datahub.token"
PROPOSALS, ONE = "/aspects?action=ingestProposalBatch", "/aspects?action=ingestProposal"


class Scripted(NamedTuple):
    """An answer that is given whatever was sent.

    :param seconds: before it
    """

    status: int
    body: str = '{"message": "scripted"}'
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = 0


class _Gms(Handler):
    protocol_version = "HTTP/1.1"

    def get(self):
        self.server.asked.append(self.path)
        if self.server.config:
            return self._scripted(self.server.config)
        if (aspect := self.server.aspects.get(_aspect_of(self.path))) is not None:
            if callable(aspect):
                return aspect(self)
            return self._answer_json(200, {"version": 0, "aspect": {"com.linkedin.Some": aspect}})
        config = {"noCode": "true", "versions": {"acryldata/datahub": {"version": "v1.3.0"}}}
        return self._answer_json(200 if self.path == "/config" else 404, config)

    def post(self):
        body = self.body()
        self.server.asked.append(self.path)
        self.server.requests.append((dict(self.headers), body))
        scripted = next(self.server.script, self.server.always)
        if scripted is None:
            return self._ingest(body)
        return scripted(self) if callable(scripted) else self._scripted(scripted)

    def _scripted(self, given):
        time.sleep(given.seconds)
        self.answer(given.status, given.body, **{"Content_Type": JSON} | dict(given.headers))

    def _ingest(self, body):
        server = self.server
        if server.token and self.headers.get("Authorization") != f"Bearer {server.token}":
            return self._error(401, "Unauthorized to perform this action.")
        if self.path not in (PROPOSALS, ONE):
            return self._error(404, f"No root resource defined for path '{self.path}'")
        if len(body) > server.max_bytes:
            return self._error(413, "Request Entity Too Large")
        if self.headers.get("X-RestLi-Protocol-Version") != "2.0.0":
            return self._error(400, "which protocol?")
        given = json.loads(body)
        proposals = given["proposals"] if self.path == PROPOSALS else [given["proposal"]]
        if barred := [p["entityUrn"] for p in proposals if p["entityUrn"] in server.forbids]:
            named = ", ".join(f"HttpStatus: 403 Urn: {urn}" for urn in barred)
            text = f"User urn:li:corpuser:airflow is unauthorized to modify entity: {named}"
            return self._error(403, text)
        for proposal in proposals:
            if problem := _problem(proposal):
                return self._error(422, problem)
        server.stored += proposals
        server.modes.append(given.get("async"))
        return self._answer_json(200, {"value": "success"})

    def _error(self, status, message):
        error = {"exceptionClass": "com.linkedin.restli.server.RestLiServiceException"}
        self._answer_json(status, {**error, "message": message, "status": status})

    def _answer_json(self, status, document):
        self.answer(status, json.dumps(document), Content_Type=JSON)


def _aspect_of(path):
    """Give the URN and the name of the aspect that a GET is for."""
    parts = urlsplit(path)
    names = parse_qs(parts.query).get("aspect", [""])
    return unquote(parts.path.removeprefix("/aspects/")), names[0]


def _problem(proposal: dict[str, Any]) -> str:
    """Say what is wrong with a proposal as GMS gets it; empty if nothing is."""
    if not sdk.is_aspect(name := proposal["aspectName"]):
        return f"Unknown aspect {name} for entity {proposal['entityType']}"
    try:
        sdk.check_sent(proposal)
    except Exception as error:
        return f"{proposal.get('entityUrn')}: {type(error).__name__}: {error}"
    return ""


@contextmanager
def gms(
    *script,
    always=None,
    token=TOKEN,
    max_bytes=16_000_000,
    forbids=frozenset(),
    config=None,
    aspects=None,
):
    """Serve one, which first gives the answers of a script.

    ``stored`` are the proposals that it took, ``requests`` headers and body of each POST, ``modes``
    whether a batch was to be stored later.

    :param script: each a :class:`Scripted`, or a function of the handler
    :param forbids: URNs of entities that the user may not change
    :param always: what is answered when the script is over, instead of what GMS would answer
    :param config: what a GET is answered, instead of what ``/config`` gives
    :param aspects: those that are stored, by URN and name; or functions of the handler
    """
    sdk.load()
    with serving(
        _Gms,
        script=iter(script),
        always=always,
        token=token,
        max_bytes=max_bytes,
        forbids=forbids,
        config=config,
        aspects=aspects or {},
        stored=[],
        requests=[],
        modes=[],
        asked=[],
    ) as server:
        yield server


def closing(handler):
    """Close the connection without an answer."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def trickling(handler):
    """Answer a byte at a time, for as long as somebody listens."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)
    except OSError:
        return
