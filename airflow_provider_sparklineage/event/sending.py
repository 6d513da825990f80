"""Prepares archived events to be sent again; starts and ends the sending process.

A backend such as Marquez takes the event that it gets last for the latest, whatever the event's
time is: after an old event, the columns of a dataset and the datasets of a job are those of the old
run. So if an event is sent again, the latest event of its job and of each dataset that it wrote
must be sent after it (:func:`followers`).

For each try two events are sent: the START and the event of the end, with the original run id and
times (:func:`lines_of`). Without the START the run would have no beginning in a backend that was
already away when the try began; a START that the backend gets twice changes nothing, because the
event of the end follows. Both events have the facets of Airflow's OpenLineage provider that a
backend shows first, or needs to place the run: parent, nominal time, Airflow's own facet of the
try, type and text of the job. The archive does not have the provider's other facets (owners, tags).

A process of its own sends the lines (:mod:`.emitter`); :func:`send` starts it, gives it the events,
and ends it when time is up.
"""

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
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import emitter
from airflow_provider_sparklineage.event.document import replaced, with_facets
from airflow_provider_sparklineage.event.model import DOCUMENTATION_KEY, name_of
from airflow_provider_sparklineage.event.pipeline import sendable, sent_of
from airflow_provider_sparklineage.model.last_run import KEPT
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.event.archive import ArchivedEvent
    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.model.representation import Adaptation


# --- for a transport that converts events ---------------------------------------------------------
#
# The archived event has facets of other producers as they came. Airflow redacts such facets by the
# names of their keys when it sends an event, but does not see the neutral event that the sent one
# carries; so they are redacted here. The neutral event's text of the job is the user's own. The
# sent one's may begin with a description of the run, for a backend that shows no other text
# (:func:`.descriptions.described`).


def neutral(event: Event, redact: Callable[[Facets], Facets], own_text: Facets | None) -> Event:
    """Make the event for a transport that converts events, such as that to DataHub.

    :param event: the event as the archive has it
    :param redact: hides the secrets in other producers' facets, as Airflow does
    :param own_text: the job facet with the user's own text; None if there is none
    """
    safe = redacted(event, redact)
    if own_text is None:
        return safe
    job_facets = {**safe["job"]["facets"], DOCUMENTATION_KEY: own_text}
    return replaced(safe, job_facets=job_facets)


def redacted(event: Event, redact: Callable[[Facets], Facets]) -> Event:
    """Hide the secrets in those facets of an event that other producers than this package made.

    :param redact: gives facets without their secrets
    """

    def safe(facets: Facets) -> Facets:
        others = {
            key: facet
            for key, facet in facets.items()
            if not (isinstance(facet, dict) and facet.get("_producer") == producer())
        }
        return {**facets, **redact(others)} if others else facets

    return with_facets(event, safe)


# --- events of the archive ------------------------------------------------------------------------


STARTED, RUN_FACETS, JOB_FACETS = "started", "runFacets", "jobFacets"
"""Keys of the part that Airflow adds: the time of the START, and facets of both events."""
OWN_TEXT = "documentation"
"""Key of the job facet with the user's own text; in the facet that Airflow sends, a description of
the run may precede this text."""


class Candidate(NamedTuple):
    """An event of the archive that can be sent.

    :param name: name in the archive
    :param time: time of the event
    :param state: the event's type, which tells how the try ended
    :param job: name of its job
    :param keys: its job, and the datasets that it wrote if it succeeded: a backend shows the latest
        event of each. A key is ``("job", NAMESPACE, NAME)`` or ``("dataset", NAMESPACE, NAME)``
    """

    name: str
    time: datetime
    state: str
    job: str
    run_id: str
    keys: frozenset[tuple[str, ...]]


def candidate(name: str, event: Event) -> Candidate:
    """Make the :class:`Candidate` of an archived event.

    :param name: name in the archive
    :raise ValueError: if it cannot be sent because it has no run or no time
    """
    run_id, job = event["run"].get("runId"), event["job"]
    if not isinstance(run_id, str) or not isinstance(job.get("namespace"), str):
        msg = "it is of no run"
        raise ValueError(msg)  # noqa: TRY004  (the event is wrong, not the caller)
    time = datetime.fromisoformat(str(event.get("eventTime")))
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    state = str(event.get("eventType"))
    keys: set[tuple[str, ...]] = {("job", job["namespace"], job["name"])}
    if state == "COMPLETE":
        keys |= {("dataset", *name_of(dataset)) for dataset in event.get("outputs") or ()}
    return Candidate(name, time, state, job["name"], run_id, frozenset(keys))


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort events by their times, and those of the same time by their names."""
    return sorted(candidates, key=lambda one: (one.time, one.name))


def followers(chosen: Iterable[Candidate], known: Iterable[Candidate]) -> list[Candidate]:
    """Find the events that must be sent after the chosen ones: the latest of each job and dataset.

    Without these followers, a backend would show the chosen events as the latest. All are sent
    together, in the order of their times: a follower may be older than some chosen events.

    :param chosen: the events that are to be sent again
    :param known: all events since the first chosen one
    :return: the followers, without chosen events
    """
    latest = {key: one for one in in_order(known) for key in one.keys}
    sent = {one.name for one in chosen}
    following: dict[str, Candidate] = {}
    to_look_at = list(chosen)
    while to_look_at:
        one = to_look_at.pop()
        for key in one.keys:
            last = latest.get(key, one)
            # A follower writes datasets as well, and the latest event of each must follow it.
            if last.name not in sent and last.name not in following:
                following[last.name] = last
                to_look_at.append(last)
    return in_order(following.values())


def lines_of(
    archived: ArchivedEvent,
    how: Adaptation,
    redact: Callable[[Facets], Facets],
    last: Event | None = None,
    *,
    with_start: bool,
    with_neutral: bool = False,
) -> list[bytes]:
    """Make the lines of JSON to send for a try: that of the START, if it is sent, and of the end.

    Each line is one event. But if ``with_neutral`` is set, the line of the end is a list of two
    events: the one for the backend, and the same one before its adaptation to the backend. The
    START is always a single event. :mod:`.emitter` sends both forms.

    :param archived: the try's event, with the part that Airflow adds
    :param how: the settings by which the event is adapted to the backend
    :param redact: hides the secrets in other producers' facets, as Airflow does
    :param last: event of the task's last successful run before this try, for descriptions and the
        choice of columns (see :func:`.ready_to_send`); None if there is none
    :param with_start: whether to send the START as well, if the archive has its time
    :param with_neutral: whether there is a transport that converts events, such as that to DataHub
    """
    sending = archived.sending or {}
    run_facets, job_facets = sending.get(RUN_FACETS) or {}, sending.get(JOB_FACETS) or {}
    end = redacted(sent_of(archived.event, how, last), redact)
    complete = replaced(
        end,
        run_facets={**end["run"]["facets"], **run_facets},
        job_facets={**end["job"]["facets"], **job_facets},
    )
    sent: list[Event | list[Event]] = [complete]
    if with_neutral:
        kept = sendable(archived.event, how)
        sent = [[complete, neutral(kept, redact, sending.get(OWN_TEXT))]]
    if with_start and sending.get(STARTED):
        if with_neutral:  # a START carries no neutral event, so it must have the user's own text
            job_facets = _with_own_text(job_facets, sending.get(OWN_TEXT))
        start = replaced(
            end,
            inputs=[_as_known(d, "inputFacets") for d in end["inputs"]],
            outputs=[_as_known(d, "outputFacets") for d in end["outputs"]],
            run_facets=run_facets,
            job_facets=job_facets,
        )
        sent.insert(0, {**start, "eventType": "START", "eventTime": sending[STARTED]})
    # Not by msgspec, which refuses half of a surrogate pair; an archived event may have one.
    return [json.dumps(event).encode() + b"\n" for event in sent]


def _with_own_text(job_facets: Facets, own: Facets | None) -> Facets:
    others = {key: facet for key, facet in job_facets.items() if key != DOCUMENTATION_KEY}
    return others if own is None else {**others, DOCUMENTATION_KEY: own}


def _as_known(dataset: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Give a dataset as a START has it: only with the facets that identify it.

    :param own: key of the facets as an input or output, which are left out: ``inputFacets`` or
        ``outputFacets``
    """
    facets = {key: facet for key, facet in dataset["facets"].items() if key in KEPT}
    return {**dataset, "facets": facets, own: {}}


# --- the process that sends -----------------------------------------------------------------------


_LOOK_S = 0.25
"""Seconds between two checks whether time is up: a worker that is killed has only seconds left."""


class Sent(Frozen, frozen=True):
    """The result of sending events.

    :param outcomes: one text for each event that the process handled, in order: empty if the
        transport took the event, else the reason for which it refused it
    :param stopped: reason why the further events were not sent; empty if there was none
    :param lost: number of events that the transport took and, by its own count, did not deliver
    :param printed: output and logs of the transport
    """

    outcomes: tuple[str, ...] = ()
    stopped: str = ""
    lost: int = 0
    printed: str = ""

    @property
    def events(self) -> int:
        """The number of events that the transport took."""
        return self.outcomes.count("")

    @property
    def refused(self) -> tuple[str, ...]:
        """The reasons of the refused events."""
        return tuple(filter(None, self.outcomes))


def send(
    lines: Sequence[bytes],
    configuration: dict[str, Any] | None,
    seconds: float,
    past_deadline: Callable[[], bool] = lambda: False,
    notice: Callable[[int], None] = lambda _: None,
) -> Sent:
    """Send events through a transport, in their order, in a process that ends when this returns.

    :param lines: lines of JSON, as :func:`lines_of` makes them, each with its line end
    :param configuration: configuration of OpenLineage's client; None if the client takes it from
        its environment. It goes through a pipe, so no list of processes shows its secrets
    :param seconds: time limit
    :param past_deadline: called now and then; once it gives True, the process is ended
    :param notice: called now and then with the number of events that were handled
    :raise OSError: if the process cannot be started
    """
    header = {
        "configuration": configuration,
        "path": sys.path,
        "parent": os.getpid(),
        "seconds": seconds,
    }
    to_write = [json.dumps(header, default=str).encode() + b"\n", *lines]
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
        writer = threading.Thread(target=_write_all, args=(process.stdin, to_write), daemon=True)
        writer.start()
        late = False
        try:
            while not late and not _has_ended(process):
                notice(_lines_so_far(out))
                late = time.monotonic() >= until or past_deadline()
        finally:  # Airflow's task timeout can fire in here
            # The group, because a process that a transport started could keep the pipe open, and
            # the writer would wait there.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            writer.join()
        answers, printed = _content(out), _content(err)
    return _outcome_of(answers, printed, "time was up" if late else "", process.returncode)


def _write_all(stdin: IO[bytes], lines: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError), stdin:  # the pipe breaks if the process was ended
        stdin.writelines(lines)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _lines_so_far(file: IO[bytes]) -> int:
    # Not by seeking: the process shares the position, and would go on writing there.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).count(b"\n")


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _outcome_of(out: bytes, err: bytes, stopped: str, code: int) -> Sent:
    lost = 0
    outcomes: list[str] = []
    for line in out.splitlines():
        try:
            result = json.loads(line)
        except ValueError:  # the incomplete last line of a process that was ended
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
