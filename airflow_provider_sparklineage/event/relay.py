"""Relays Spark's own events, without secrets and stack traces, by the transport that Airflow uses.

They are read from the capture bundle once Spark has ended, and sent before the task's own terminal
event, in the order in which the listener wrote them, by a process of its own (:mod:`.emitter`).
This module does not use Airflow; ``operators/attempt/publish.py`` asks Airflow for the transport
and the rest.

The merged event is made of single known facts, but these events are passed on as the listener wrote
them. So the parts that the merged event never has are removed: stack traces and messages of
exceptions, properties that Spark itself would redact, and literals if the user wants that.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event.sending import Sent, send
from airflow_provider_sparklineage.event.steps.texts import (
    HIDDEN,
    hidden,
    masked,
    without_credentials,
)
from airflow_provider_sparklineage.model.credentials import HIDDEN as HIDDEN_VALUE
from airflow_provider_sparklineage.model.credentials import is_secret
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture.events import whole_event
from airflow_provider_sparklineage.spark.capture.lines import opened
from airflow_provider_sparklineage.spark.submit.injection import REDACTED_BY_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


# --- secrets, exceptions and literals -------------------------------------------------------------


_REDACTED_BY_SPARK = re.compile(REDACTED_BY_DEFAULT)

_PROPERTIES = ("spark_properties", "environment-properties")
_PLANS = ("spark.logicalPlan", "spark_unknown")
"""Run facets that contain whole plans; no text in them is an expression by itself."""
_EXPRESSIONS = frozenset({"description", "transformationDescription", "query", "jobDescription"})
_VALUES = frozenset({"inputCondition", "outputCondition"})


def fit_to_pass_on(
    event: dict[str, Any], mask: Callable[[str], str], *, literals: bool
) -> dict[str, Any]:
    """Remove the secrets from a Spark event; identities (names, run ids, times) stay as they are.

    :param mask: hides the secrets in a text
    :param literals: whether literals of expressions are hidden as well
    """
    run, job = event["run"], event["job"]
    facets = _clean_run_facets(run.get("facets") or {})
    if literals:
        facets = {name: facet for name, facet in facets.items() if name not in _PLANS}
    parts = {
        "run": facets,
        "job": job.get("facets") or {},
        "inputs": event.get("inputs") or [],
        "outputs": event.get("outputs") or [],
    }
    if literals:
        parts = {name: _without_literals(part) for name, part in parts.items()}
    parts = {name: masked(without_credentials(part), mask) for name, part in parts.items()}
    return {
        **event,
        "run": {**run, "facets": parts["run"]},
        "job": {**job, "facets": parts["job"]},
        "inputs": parts["inputs"],
        "outputs": parts["outputs"],
    }


def _clean_run_facets(facets: dict[str, Any]) -> dict[str, Any]:
    clean = dict(facets)
    exception = clean.get("spark.exception")
    if isinstance(exception, dict):
        message = str(exception.get("message") or "")
        clean["spark.exception"] = {
            **{name: value for name, value in exception.items() if name.startswith("_")},
            "message": message.partition(":")[0].partition("\n")[0],  # the class, as Java prints it
        }
    # In plans only texts are hidden: a key with such a name may have a node with much below it.
    for names, kind in ((_PROPERTIES, object), (_PLANS, str)):
        for name in names:
            if name in clean:
                clean[name] = _without_secret_keys(clean[name], kind)
    return clean


def _without_secret_keys(value: Any, kind: type) -> Any:
    """Hide the values under keys that name secrets, such as ``password``, at any depth of a value.

    :param kind: type of the values that are hidden; values of other types are searched for keys
    """
    if isinstance(value, list):
        return [_without_secret_keys(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: HIDDEN_VALUE
        if isinstance(entry, kind) and (is_secret(key) or _REDACTED_BY_SPARK.search(key))
        else _without_secret_keys(entry, kind)
        for key, entry in value.items()
    }


def _without_literals(value: Any, *, condition: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_literals(item, condition=condition) for item in value]
    if not isinstance(value, dict):
        return value
    clean = {}
    for key, entry in value.items():
        if isinstance(entry, str) and key in _EXPRESSIONS:
            clean[key] = hidden(entry)
        elif condition and key == "value":
            clean[key] = HIDDEN
        else:
            clean[key] = _without_literals(entry, condition=condition or key in _VALUES)
    return clean


# --- events in a file -----------------------------------------------------------------------------


MAX_BYTES = 32 * 1024 * 1024
"""Bytes of the listener's file that are read; the events are in memory together."""


class Prepared(NamedTuple):
    """Events that are ready to be sent, as JSON.

    :param why: reason why only a part of the file was read; empty if all of it was read
    """

    lines: Sequence[bytes] = ()
    why: str = ""


def prepare(
    path: Path,
    mask: Callable[[str], str],
    *,
    literals: bool = False,
    past_deadline: Callable[[], bool] = lambda: False,
    max_bytes: int = MAX_BYTES,
) -> Prepared:
    """Read the listener's events and make them ready to be sent: whole, in order, without secrets.

    Lines that are not events are left out; merging has reported them. A file that does not exist
    has no events.

    :param path: file of the listener's events
    :param mask: hides the secrets in a text
    :param literals: whether literals of expressions are hidden
    :param past_deadline: asked at each line; once it gives True, the other lines are not read
    :param max_bytes: the most bytes of the file that are read
    :raise CaptureError: if the file exists but cannot be read
    """
    if not os.path.lexists(path):
        return Prepared()
    lines: list[bytes] = []
    read = 0
    with opened(path, CaptureError) as stream:
        while line := stream.readline(max_bytes - read + 1):
            read += len(line)
            if read > max_bytes:
                return Prepared(lines, f"they have more than {max_bytes} bytes")
            if past_deadline():
                return Prepared(lines, "time was up")
            event = whole_event(line)
            if event is not None:
                fit = fit_to_pass_on(event, mask, literals=literals)
                lines.append(msgspec.json.encode(fit) + b"\n")
    return Prepared(lines)


def relay(
    path: Path,
    configuration: dict[str, Any] | None,
    mask: Callable[[str], str],
    *,
    seconds: float,
    literals: bool = False,
    past_deadline: Callable[[], bool] = lambda: False,
) -> tuple[str, Sent]:
    """Send the events of a file.

    :param path: file of the listener's events
    :param configuration: configuration of OpenLineage's client; None if the client takes it from
        its environment
    :param mask: hides the secrets in a text
    :param seconds: time limit for reading and sending
    :param literals: whether literals of expressions are hidden
    :param past_deadline: gives True once the worker has to end
    :return: a sentence on the events that were not sent ("" if all were), and the result of sending
    :raise CaptureError: if the file exists but cannot be read
    :raise OSError: if no process can be started
    """
    until = time.monotonic() + seconds

    def late() -> bool:
        return past_deadline() or time.monotonic() >= until

    prepared = prepare(path, mask, literals=literals, past_deadline=late)
    if not prepared.lines:
        return prepared.why and f"None of Spark's events was sent on: {prepared.why}.", Sent()
    sent = send(prepared.lines, configuration, max(0.0, until - time.monotonic()), past_deadline)
    return mask(_missing(prepared, sent)), sent


def _missing(prepared: Prepared, sent: Sent) -> str:
    total = len(prepared.lines)
    arrived = sent.events - sent.lost
    losses = []
    if sent.stopped and sent.events == total and not (sent.lost or prepared.why):
        return (
            f"All {total} Spark events were given to Airflow's OpenLineage transport, which had "
            f"not ended yet ({sent.stopped.rstrip('.')}): it may not have sent all of them."
        )
    if sent.stopped:
        losses.append(sent.stopped.rstrip("."))
    if sent.refused:
        some = "one was" if len(sent.refused) == 1 else f"{len(sent.refused)} were"
        losses.append(f"{some} refused ({sent.refused[0].rstrip('.')})")
    if sent.lost:
        losses.append(f"{sent.lost} did not arrive (Airflow's transport sends later and logs why)")
    if prepared.why:
        losses.append(f"further ones were not read, because {prepared.why}")
    if not losses:
        return ""
    return f"Of {total} Spark events {arrived} were sent on: {'; '.join(losses)}."
