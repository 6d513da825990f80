"""Events that are sent again from the archive, and the process by which any are sent.

A backend such as Marquez takes the event that comes last for the latest, whatever its time is: the
columns of a dataset and the datasets of a job become those of an old run. So whoever sends an event
again sends after it the latest one of its job, and of each dataset that it wrote
(:func:`followers`).

What is sent of a try is START and its end, with run id and times as they were (:func:`lines_of`).
Without a START the run would have no beginning, if the backend was away then as well; one that
comes twice changes nothing, because the end follows. Both have what Airflow's OpenLineage provider
adds that a backend needs to find the run's place and shows first: parent, nominal time, Airflow's
own facet of the try, type and text of the job. Its other facets (owners, tags) are not kept.

The lines are sent by a process of its own (:mod:`.emitter`), which :func:`send` starts, feeds, and
ends when time is up.
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
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.model import DOCUMENTATION_KEY, name_of
from airflow_provider_sparklineage.event.pipeline import sent_of
from airflow_provider_sparklineage.model.last_run import KEPT
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.event.archive import Kept
    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.model.representation import Leaving


# --- for a transport that converts events ---------------------------------------------------------
#
# The kept event holds facets of other producers as they came. Airflow redacts those by the names of
# their keys when it sends an event, and sees nothing of what travels next to that; so it is done
# here. A job's text for people is the user's own: the one that is sent may begin with what the run
# did, for a backend that shows no more than that text (:func:`.descriptions.described`).


def neutral(kept: Event, redact: Callable[[Facets], Facets], documentation: Facets | None) -> Event:
    """Give a kept event as a transport may convert it.

    :param redact: hides secrets in facets that are not of this package, as Airflow does
    :param documentation: the job facet of the user's own text, if there is one
    """
    safe = redacted(kept, redact)
    if documentation is None:
        return safe
    job_facets = {**safe["job"]["facets"], DOCUMENTATION_KEY: documentation}
    return replaced(safe, job_facets=job_facets)


def redacted(event: Event, redact: Callable[[Facets], Facets]) -> Event:
    """Hide secrets in facets that are not of this package.

    :param redact: gives facets without them
    """

    def safe(facets: Facets) -> Facets:
        others = {
            key: facet
            for key, facet in facets.items()
            if not (isinstance(facet, dict) and facet.get("_producer") == producer())
        }
        return {**facets, **redact(others)} if others else facets

    def datasets(side: str, own: str) -> list[Any]:
        return [
            {**d, "facets": safe(d.get("facets") or {}), own: safe(d.get(own) or {})}
            for d in event.get(side) or ()
        ]

    run, job = event["run"], event["job"]
    return {
        **event,
        "run": {**run, "facets": safe(run.get("facets") or {})},
        "job": {**job, "facets": safe(job.get("facets") or {})},
        "inputs": datasets("inputs", "inputFacets"),
        "outputs": datasets("outputs", "outputFacets"),
    }


# --- what is sent of the archive ------------------------------------------------------------------


STARTED, RUN_FACETS, JOB_FACETS = "started", "runFacets", "jobFacets"
"""Keys of what Airflow adds: the time of START, and facets of every event."""
OWN_TEXT = "documentation"
"""Key of the job facet of the user's own text, which one of Airflow's may begin with another."""


class Candidate(NamedTuple):
    """An event of the archive that can be sent.

    :param name: in the archive
    :param time: of the event
    :param state: how the try ended
    :param keys: its job, and the datasets that it wrote if the job succeeded
    """

    name: str
    time: datetime
    state: str
    job: str
    run_id: str
    keys: frozenset[tuple[str, ...]]


def candidate(name: str, event: Event) -> Candidate:
    """Describe a kept event.

    :raise ValueError: if it is none that can be sent: without a run, or a time
    """
    run_id, job = event["run"].get("runId"), event["job"]
    if not isinstance(run_id, str) or not isinstance(job.get("namespace"), str):
        msg = "it is of no run"
        raise ValueError(msg)  # noqa: TRY004  (what is kept is wrong, not what calls)
    time = datetime.fromisoformat(str(event.get("eventTime")))
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    state = str(event.get("eventType"))
    keys: set[tuple[str, ...]] = {("job", job["namespace"], job["name"])}
    if state == "COMPLETE":
        keys |= {("dataset", *name_of(dataset)) for dataset in event.get("outputs") or ()}
    return Candidate(name, time, state, job["name"], run_id, frozenset(keys))


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort events as they happened; of the same time, by their names."""
    return sorted(candidates, key=lambda one: (one.time, one.name))


def followers(chosen: Iterable[Candidate], known: Iterable[Candidate]) -> list[Candidate]:
    """Find the later events that have to be sent with some, so that they stay the latest.

    All of them are sent in their order: one that follows may be older than one that is chosen.

    :param chosen: what is sent
    :param known: all that there is since the first of them
    :return: none of those that are chosen
    """
    latest = {key: one for one in in_order(known) for key in one.keys}
    sent = {one.name for one in chosen}
    found: dict[str, Candidate] = {}
    to_look_at = list(chosen)
    while to_look_at:
        one = to_look_at.pop()
        for key in one.keys:
            last = latest.get(key, one)
            # One that follows writes datasets as well, and of each of them the latest follows.
            if last.name not in sent and last.name not in found:
                found[last.name] = last
                to_look_at.append(last)
    return in_order(found.values())


def lines_of(
    kept: Kept,
    how: Leaving,
    redact: Callable[[Facets], Facets],
    last: Event | None = None,
    *,
    with_start: bool,
    with_neutral: bool = False,
) -> list[bytes]:
    """Give what is sent of a try, each event as a line of JSON.

    A line is an event, or a list of that and of the one that it carries for a transport which
    converts events; :mod:`.emitter` sends either.

    :param kept: with what Airflow adds
    :param last: of the task's last successful run before it
    :param redact: hides secrets in facets that are not of this package, as Airflow does
    :param with_start: whether its START is sent as well
    :param with_neutral: whether there is a transport that converts events
    """
    sending = kept.sending or {}
    run_facets, job_facets = sending.get(RUN_FACETS) or {}, sending.get(JOB_FACETS) or {}
    end = redacted(sent_of(kept.event, how, last), redact)
    last_of_try = _with_additions(end, run_facets, job_facets)
    found: list[Event | list[Event]] = [last_of_try]
    if with_neutral:
        found = [[last_of_try, neutral(kept.event, redact, sending.get(OWN_TEXT))]]
    if with_start and sending.get(STARTED):
        start = {
            **end,
            "eventType": "START",
            "eventTime": sending[STARTED],
            "run": {**end["run"], "facets": {}},
            "job": {**end["job"], "facets": {}},
            "inputs": [_as_known(d, "inputFacets") for d in end["inputs"]],
            "outputs": [_as_known(d, "outputFacets") for d in end["outputs"]],
        }
        if with_neutral:  # a START carries nothing
            job_facets = _with_own_text(job_facets, sending.get(OWN_TEXT))
        found.insert(0, _with_additions(start, run_facets, job_facets))
    # Not by msgspec, which refuses halves of surrogate pairs; what is kept may have some.
    return [json.dumps(event).encode() + b"\n" for event in found]


def _with_additions(event: Event, run_facets: Facets, job_facets: Facets) -> Event:
    run, job = event["run"], event["job"]
    return {
        **event,
        "run": {**run, "facets": {**run["facets"], **run_facets}},
        "job": {**job, "facets": {**job["facets"], **job_facets}},
    }


def _with_own_text(job_facets: Facets, own: Facets | None) -> Facets:
    others = {key: facet for key, facet in job_facets.items() if key != DOCUMENTATION_KEY}
    return others if own is None else {**others, DOCUMENTATION_KEY: own}


def _as_known(dataset: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Give a dataset as START has it: what identifies it, and nothing of the run."""
    facets = {key: facet for key, facet in dataset["facets"].items() if key in KEPT}
    return {**dataset, "facets": facets, own: {}}


# --- the process that sends -----------------------------------------------------------------------


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
        writer = threading.Thread(target=_write_all, args=(process.stdin, given), daemon=True)
        writer.start()
        late = False
        try:
            while not late and not _has_ended(process):
                notice(_lines_so_far(out))
                late = time.monotonic() >= until or past_deadline()
        finally:  # Airflow's task timeout can fire in here
            # And what a transport has started, which would keep the writer waiting at the pipe.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            writer.join()
        answers, printed = _content(out), _content(err)
    return _outcome_of(answers, printed, "time was up" if late else "", process.returncode)


def _write_all(stdin: IO[bytes], given: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError), stdin:  # a process that was ended reads no more
        stdin.writelines(given)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _lines_so_far(file: IO[bytes]) -> int:
    # Not by seeking: the process that writes to it would go on from there.
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
