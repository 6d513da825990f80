"""Proposals to GMS: in batches, again while that may help, until a time has passed.

Proposals can be sent twice without harm: an aspect is put in the place of the same one, a patch
adds what is there, and a time series has its entry once per time. So after an answer that did not
come, the batch is sent again. A batch of which one proposal is refused is halved until that one is
alone; it is left out, and named.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub.sending.gms import Gms, Kind
from airflow_provider_sparklineage.event.producer import DISTRIBUTION, version
from airflow_provider_sparklineage.model.exceptions import DeliveryError
from airflow_provider_sparklineage.model.texts import some, truncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.datahub.configuration import Server
    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.datahub.sending.gms import Answer

BATCH, BATCH_BYTES = 200, 4 * 1024 * 1024
"""The most that a request has, but for one proposal alone.

200 are those of DataHub's own emitter; it sends up to 15 MB, which GMS has at most, and which one
slow answer would lose all of.
"""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 2.0
_TRIES_OF_AN_ERROR = 2
_NAMED = 3


class Line(NamedTuple):
    """A proposal as it is sent.

    :param text: JSON, in ASCII: GMS takes a byte for a character
    :param may_be_there: whether it is no loss if GMS refuses it, because it has such an aspect; one
        that does not know the header by which it is asked to leave that does
    """

    urn: str
    aspect_name: str
    text: str
    may_be_there: bool = False


class _StoppedError(Exception):
    """Raised when nothing more can be sent; the reason is for people."""


def send(server: Server, proposals: Iterable[Proposal], until: float) -> int:
    """Send proposals, in their order.

    :param proposals: taken as they are sent, so that not all of them are in memory
    :param until: ``time.monotonic()`` after which nothing is sent
    :return: how many there were
    :raise DeliveryError: if not all were stored; says what was, and what was not and why
    """
    gms = Gms(server)
    sending = _Sending(gms, server, until)
    stopped = ""
    try:
        for batch in batches(proposals):
            sending.send(batch)
    except _StoppedError as error:
        stopped = str(error)
    finally:
        gms.close()
    if stopped or sending.refused:
        raise sending.error(stopped)
    return sending.stored


def batches(proposals: Iterable[Proposal]) -> Iterator[list[Line]]:
    """Yield what is sent with one request each."""
    metadata = {
        "lastObserved": time.time_ns() // 1_000_000,
        "properties": {"clientId": DISTRIBUTION, "clientVersion": version()},
    }
    batch: list[Line] = []
    size = 0
    for proposal in proposals:
        text = _text(proposal, metadata)
        line = Line(proposal.urn, proposal.aspect_name, text, proposal.only_if_absent)
        if batch and (len(batch) == BATCH or size + len(line.text) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.text)
    if batch:
        yield batch


def _text(proposal: Proposal, metadata: dict[str, object]) -> str:
    document = {
        "entityType": proposal.entity_type,
        "entityUrn": proposal.urn,
        "changeType": proposal.change_type,
        "aspectName": proposal.aspect_name,
        "aspect": {"contentType": proposal.content_type, "value": proposal.text()},
        "systemMetadata": metadata,
    }
    return json.dumps(
        document | {"headers": headers} if (headers := proposal.headers) else document
    )


class _Sending:
    """What became of the proposals of an event."""

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
        """Send a batch, or those of it that are not refused."""
        answer = self._asked(batch)
        if answer.kind is Kind.STORED:
            self.stored += len(batch)
        elif answer.urns:
            forbidden = [line for line in batch if line.urn in answer.urns]
            allowed = [line for line in batch if line.urn not in answer.urns]
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
        self.refused += [
            f"{line.aspect_name} of {line.urn} ({answer.why})"
            for line in batch
            if not line.may_be_there
        ]

    def _asked(self, batch: Sequence[Line]) -> Answer:
        """Send a batch until the answer is one that will not change."""
        waits = "true" if self._server.is_async else "false"
        proposals = ",".join(line.text for line in batch)
        body = f'{{"proposals":[{proposals}],"async":"{waits}"}}'.encode()
        pause, tries, why = _FIRST_PAUSE_S, 0, "there was no time left"
        while (left := self._left) > 0:
            answer, tries = self._gms.ingest(body, left), tries + 1
            if answer.kind is Kind.USELESS:
                raise _StoppedError(answer.why)
            if answer.kind in (Kind.STORED, Kind.REFUSED):
                return answer
            if answer.kind is Kind.FAILED and tries == _TRIES_OF_AN_ERROR:
                return answer
            why = answer.why
            wait = max(pause, answer.after)
            if wait >= self._left:
                break
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise _StoppedError(why)

    def error(self, stopped: str) -> DeliveryError:
        """Say what was stored and what was not."""
        reasons = [f"what is left was not sent, because {stopped}"] if stopped else []
        if self.refused:
            few = some(self.refused, _NAMED, lambda text: truncated(text, 500))
            reasons.append(f"{len(self.refused)} were refused: {few}")
        stored = f"{self.stored:,} aspects" if self.stored else "nothing"
        problem = f"DataHub at {self._server.url} stored {stored} of this event"
        return DeliveryError(f"{problem}; {'; '.join(reasons)}.", is_refusal=not stopped)
