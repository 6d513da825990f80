"""The script of the sending process: sends events one by one, and reports errors and refusals.

The process is not Airflow's, so that a transport that hangs, crashes or leaves threads behind costs
the task no more than the time limit. From its standard input it reads one line of JSON, the header,
and then one event in each line. A line can also be a list of two events: the one adapted to the
backend, and the same event before that, for a transport that converts events, such as that to
DataHub. On its standard output it writes each result as a line of JSON.

========  ==========================================================================================
header    ``configuration`` of the client (if null, the client takes it from the environment),
          ``path`` (``sys.path``), ``parent`` (id of the process after whose end it sends no more),
          ``seconds`` (time limit)
result    ``{"sent": 3}``: the transport has taken 3 events by now;
          ``{"refused": "why"}``: at least one of the transports refused an event;
          ``{"stopped": "why"}``: this event and all further ones are not sent;
          ``{"lost": 2}``: by its own count, the transport took 2 events and did not deliver them
========  ==========================================================================================

A composite transport raises an error only if none of its children took an event; if only some
failed, it just logs that. An event is sent again later only if such a failure is known, so
:func:`failures` records it: here, and in the task, whose event Airflow sends by the same transport.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent


# --- failures of a composite transport's children -------------------------------------------------
#
# If one child is enough (``continue_on_success: false``), the failure of an earlier one is no loss.


class Failure(NamedTuple):
    """An error that a child of a composite transport raised."""

    child: Any
    error: Exception

    def repeat(self) -> None:
        """Let the child raise this error at once for each further event, so that none waits."""

        def failing(_: Any) -> NoReturn:
            raise self.error

        vars(self.child)["emit"] = failing


@contextmanager
def failures(transport: Any) -> Iterator[list[Failure]]:
    """Record the errors of a composite transport's children, which the transport only logs.

    :param transport: a transport of OpenLineage's client
    :return: a context manager with the list to which each error is added as it occurs; the list
        stays empty if the transport is not composite
    """
    found: list[Failure] = []
    with ExitStack() as restored:
        for child in _silent_children(transport):
            _put(restored, child, _noting(child, found))
        yield found


def _put(restored: ExitStack, child: Any, emit: Callable[[Any], Any]) -> None:
    """Let a transport send events by another function until ``restored`` is closed."""
    own = vars(child)
    if "emit" in own:
        restored.callback(own.__setitem__, "emit", own["emit"])
    else:
        restored.callback(own.pop, "emit")
    own["emit"] = emit


def _silent_children(transport: Any) -> Iterator[Any]:
    config = getattr(transport, "config", None)
    if getattr(config, "continue_on_success", False):
        for child in transport.transports:
            yield child
            yield from _silent_children(child)


def _noting(child: Any, found: list[Failure]) -> Callable[[Any], Any]:
    emit = child.emit

    def noting(event: Any) -> Any:
        try:
            return emit(event)
        except Exception as error:
            found.append(Failure(child, error))
            raise

    return noting


# --- the time of an answer ------------------------------------------------------------------------


@contextmanager
def timed(transport: Any, clock: Callable[[], float] = time.monotonic) -> Iterator[list[float]]:
    """Measure in how many seconds a backend answers an event.

    Only a transport of the type ``http``, also within a composite one, sends the event at once and
    to a server.

    :param transport: a transport of OpenLineage's client
    :return: a context manager with the list to which the seconds of each answer are added. An error
        counts if the client has waited in vain for an answer: the seconds are those of the wait
    """
    found: list[float] = []
    with ExitStack() as restored:
        for child in _by_http(transport):
            _put(restored, child, _timing(child.emit, found, clock))
        yield found


def _by_http(transport: Any) -> Iterator[Any]:
    if getattr(transport, "kind", "") == "http":
        yield transport
    for child in getattr(transport, "transports", ()):
        yield from _by_http(child)


def _timing(
    emit: Callable[[Any], Any], found: list[float], clock: Callable[[], float]
) -> Callable[[Any], Any]:
    def timing(event: Any) -> Any:
        begun = clock()
        try:
            answer = emit(event)
        except Exception as error:
            if _is_wait_in_vain(error):
                found.append(clock() - begun)
            raise
        found.append(clock() - begun)
        return answer

    return timing


_IN_VAIN = frozenset({"ReadTimeout", "ReadTimeoutError"})
"""Names of the errors of ``requests`` and ``urllib3`` if a server takes an event and does not
answer in time."""


def _is_wait_in_vain(error: BaseException) -> bool:
    """Whether an error is a server that did not answer, or was raised because of that."""
    below = (error.__cause__, getattr(error, "reason", None), *error.args)
    return type(error).__name__ in _IN_VAIN or any(
        _is_wait_in_vain(one) for one in below if isinstance(one, BaseException)
    )


# --- the process ----------------------------------------------------------------------------------


# HTTP statuses that are about the event itself; after another error the next event would fail, too.
_REFUSALS = frozenset({400, 409, 413, 422})


def run_event(event: dict[str, Any], neutral: dict[str, Any] | None = None) -> RunEvent:
    """Make an event of OpenLineage's client from JSON; facets stay as they are.

    :param neutral: the event before its adaptation to the backend, which the made event carries for
        a transport that converts events, such as that to DataHub
    :raise Exception: if the client does not allow such an event (its run id is not a UUID, …)
    """
    from openlineage.client import event_v2
    from openlineage.client.facet_v2 import parent_run, tags_job, tags_run

    def datasets(key: str, kind: type[Any], own: str) -> list[Any]:
        return [
            kind(d["namespace"], d["name"], facets=d.get("facets") or {}, **{own: d.get(own) or {}})
            for d in event.get(key) or ()
        ]

    # The client reads two facets as its own classes: it takes Kafka's keys from the topmost run in
    # ``parent``, and may add tags to those of run and job.
    facets, job_facets = (dict(event[of].get("facets") or {}) for of in ("run", "job"))
    if neutral is not None:
        from airflow_provider_sparklineage.event.openlineage import with_neutral

        facets = with_neutral(facets, neutral)
    if parent := facets.get("parent"):
        facets["parent"] = _parent(parent, parent_run)
    if tags := facets.get("tags"):
        facets["tags"] = _tags(tags, tags_run.TagsRunFacet, tags_run.TagsRunFacetFields)
    if tags := job_facets.get("tags"):
        job_facets["tags"] = _tags(tags, tags_job.TagsJobFacet, tags_job.TagsJobFacetFields)
    made = event_v2.RunEvent(
        eventTime=event["eventTime"],
        producer=event.get("producer") or "",
        run=event_v2.Run(event["run"]["runId"], facets),
        job=event_v2.Job(event["job"]["namespace"], event["job"]["name"], job_facets),
        eventType=event_v2.RunState(event.get("eventType") or "OTHER"),
        inputs=datasets("inputs", event_v2.InputDataset, "inputFacets"),
        outputs=datasets("outputs", event_v2.OutputDataset, "outputFacets"),
    )
    if schema := event.get("schemaURL"):
        made.schemaURL = schema
    return made


def _parent(facet: dict[str, Any], parent_run: Any) -> Any:
    def of(event: dict[str, Any], run: Any, job: Any) -> dict[str, Any]:
        namespace, name = event["job"]["namespace"], event["job"]["name"]
        return {
            "run": run(event["run"]["runId"], facets=None),
            "job": job(namespace, name, facets=None),
        }

    root = facet.get("root")
    made = parent_run.ParentRunFacet(
        **of(facet, parent_run.Run, parent_run.Job),
        root=root and parent_run.Root(**of(root, parent_run.RootRun, parent_run.RootJob)),
        producer=facet.get("_producer") or "",
    )
    return _of_schema(made, facet)


def _tags(facet: dict[str, Any], kind: Any, of: Any) -> Any:
    tags = [of(t["key"], t["value"], t.get("source")) for t in facet.get("tags") or ()]
    return _of_schema(kind(tags, producer=facet.get("_producer") or ""), facet)


def _of_schema(made: Any, facet: dict[str, Any]) -> Any:
    if schema := facet.get("_schemaURL"):
        made._schemaURL = schema
    return made


def send_all(
    client: OpenLineageClient,
    lines: Iterable[bytes],
    say: Callable[[str, Any], None],
    going_on: Callable[[], bool] = lambda: True,
) -> None:
    """Send events in order, up to the first failure that is not about the event itself.

    :param client: the client that sends them
    :param lines: the events in JSON, each as a line of the process's standard input has it
    :param say: writes a result, by its key (``sent``, ``refused`` or ``stopped``) and its value
    :param going_on: called before each event; if it returns False, no more events are sent
    """
    sent = 0
    for line in lines:
        if not going_on():
            return
        try:
            given = json.loads(line)
            event = run_event(*given) if isinstance(given, list) else run_event(given)
        except Exception as error:
            say("refused", _reason(error))
            continue
        try:
            with failures(client.transport) as missed:
                client.emit(event)
        except Exception as error:
            if _is_refusal(error):
                say("refused", _reason(error))
                continue
            say("stopped", _reason(error))
            return
        if missed:  # the others go on
            say("refused", _reason(missed[0].error))
            for failure in missed:
                if not _is_refusal(failure.error):
                    failure.repeat()
            continue
        sent += 1
        say("sent", sent)


def _is_refusal(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, is about the event itself; False for None.

    A composite transport raises an error of its own, with its child's error as the cause.
    """
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status is not None:
            return int(status) in _REFUSALS
        if getattr(error, "is_refusal", False):  # an error of the transport to DataHub
            return True
        error = error.__cause__
    return False


def _reason(error: BaseException) -> str:
    cause = error.__cause__
    under = f" ({type(cause).__name__}: {cause})" if cause is not None else ""
    return f"{type(error).__name__}: {error}{under}"[:1000]


def heed_redirects(client: OpenLineageClient) -> None:
    """Let a client raise an error for each redirect after which the event would not arrive.

    The HTTP transport takes a redirect for success, but follows most of them by a GET, without the
    event.
    """
    for child in _children(client.transport):
        if hooks := getattr(getattr(child, "session", None), "hooks", None):
            hooks["response"].append(_no_detour)


def _no_detour(response: Any, **_: Any) -> None:
    from requests import HTTPError

    status = response.status_code
    if 300 <= status < 400 and not (status in (307, 308) and response.is_redirect):
        where = response.headers.get("Location") or "nowhere"
        msg = f"{status} {response.reason}: the backend is elsewhere ({where})"
        raise HTTPError(msg, response=response)


def close(client: OpenLineageClient, seconds: float, say: Callable[[str, Any], None]) -> None:
    """Wait until a client's transport has delivered its events; report the undelivered ones.

    :param seconds: time limit
    :param say: writes a result, by its key (``lost`` or ``stopped``) and its value
    """
    try:
        done = client.close(seconds)
    except Exception as error:
        say("stopped", _reason(error))
        return
    counting = (child for child in _children(client.transport) if hasattr(child, "get_stats"))
    lost = sum(
        stats.get("failed", 0) + (0 if done else stats.get("pending", 0))
        for stats in (child.get_stats() for child in counting)
    )
    if lost:
        say("lost", lost)
    elif not done:
        say("stopped", "the transport was not done in time")


def _children(transport: Any) -> Iterable[Any]:
    return getattr(transport, "transports", None) or [transport]


def main() -> None:
    """Send the events of standard input."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that a transport prints to standard error, not among the results

    def say(kind: str, value: Any) -> None:
        results.write(json.dumps({kind: value}) + "\n")
        results.flush()

    header = json.loads(sys.stdin.buffer.readline())
    begun = time.monotonic()
    signal.alarm(int(header["seconds"]) + 2)  # ends this process even if a transport hangs
    sys.path[:] = header["path"]
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(message)s")
    # The console transport logs its events.
    logging.getLogger("openlineage.client.transport.console").setLevel(logging.INFO)
    try:
        from openlineage.client import OpenLineageClient

        configuration = header["configuration"]
        client = OpenLineageClient(config=configuration) if configuration else OpenLineageClient()
    except Exception as error:
        say("stopped", _reason(error))
        return
    heed_redirects(client)
    send_all(client, sys.stdin.buffer, say, lambda: os.getppid() == header["parent"])
    close(client, max(0.1, header["seconds"] - (time.monotonic() - begun)), say)


if __name__ == "__main__":
    main()
