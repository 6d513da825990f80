"""Chooses events of the archive, sends them, and notes in the archive which events have arrived.

Later events of the same jobs and datasets are sent once more after the chosen events, so that the
later events stay the latest in the backend. Events are sent in batches, so that only one batch is
held in memory.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from msgspec.structs import replace

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.event import sending
from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.history.store import Folder, Lock, Remote
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.operators.masking import masked_message, redacted
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import is_converted
from airflow_provider_sparklineage.storage.bounded import within

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_sparklineage.event.archive import Archive, Entry
    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.history.store import Files, Owner
    from airflow_provider_sparklineage.model.representation import Adaptation


# --- the events to send, and the later events of their jobs ---------------------------------------


class Choice(NamedTuple):
    """The events to send.

    :param events: the events that the command line chose
    :param following: later events of the same jobs and datasets, which have to stay the latest
    :param skipped: number of chosen events that cannot be read
    """

    events: list[sending.Candidate]
    following: list[sending.Candidate]
    skipped: int

    @property
    def in_order(self) -> list[sending.Candidate]:
        """Both the chosen and the following events, in the order in which they are sent."""
        return sending.in_order([*self.events, *self.following])


def choose(archive: Archive, ids: tuple[str, str, str], since: datetime | None) -> Choice:
    """Choose the events to send, and print notes on events that cannot be sent.

    :param ids: the DAG, the task and the DAG run on the command line; empty for any
    :param since: the time of the earliest event; None for any. Without ids and time, the events
        marked as unsent are chosen
    :raise ArchiveError: if the archive cannot list its events
    :raise UnusableInputError: if unsent events are to be sent, and the archive does not mark unsent
        events
    """
    entries = _chosen_entries(archive, ids, since)
    candidates, problems, held_back = _read_entries(archive, entries, "Reading events")
    for problem in problems:
        commands.note(f"sparklineage: {problem}")
    if held_back:
        commands.note(
            f"sparklineage: {held_back} of {len(entries)} are not for sending: Airflow's "
            "emission policy held them back, a person ended the task, or an older version of this "
            "package kept them."
        )
    chosen = sending.in_order(c for c in candidates if since is None or c.time >= since)
    return followed(archive, chosen, len(problems))


def followed(archive: Archive, chosen: list[sending.Candidate], skipped: int = 0) -> Choice:
    """Add to chosen events the later events that have to be sent after them.

    :param chosen: the events, in the order in which they are sent
    :param skipped: number of chosen events that cannot be read
    :raise ArchiveError: if the archive cannot list its events
    """
    if not chosen:
        return Choice([], [], skipped)
    later = [e for e in archive.entries() if not _is_before(e, chosen[0].time)]
    known, _, _ = _read_entries(archive, later, "Looking for later runs")
    return Choice(chosen, sending.followers(chosen, known), skipped)


def _chosen_entries(
    archive: Archive, ids: tuple[str, str, str], since: datetime | None
) -> list[Entry]:
    if any(ids) or since is not None:
        return [e for e in archive.entries(*ids) if since is None or not _is_before(e, since)]
    if not archive.has_marks:
        commands.refuse(
            f"In {archive.url} it is not noted which events were not sent.",
            "Choose some: --since 2h, or DAG [TASK [RUN]].",
        )
    return archive.unsent()


def _is_before(entry: Entry, time: datetime) -> bool:
    """Whether an event is older than ``time``, because its file was written before that time.

    An event is never later than its file. If the time of writing is not known, the result is False.
    """
    return entry.written is not None and entry.written < time


def _read_entries(
    archive: Archive, entries: Sequence[Entry], what: str
) -> tuple[list[sending.Candidate], list[str], int]:
    """Read events of the archive.

    :param what: the text next to the progress bar
    :return: the events to send, a sentence for each event that cannot be read, and the number of
        events that must not be sent
    """
    found: list[sending.Candidate] = []
    problems: list[str] = []
    held_back = 0
    with commands.progress(what, len(entries)) as reached:
        for number, entry in enumerate(entries):
            reached(number)
            try:
                kept = archive.archived(entry.name)
                candidate = sending.candidate(entry.name, kept.event)
            except (exceptions.ArchiveError, exceptions.DocumentError, ValueError) as error:
                problems.append(f"{entry.name} is skipped: {error}")
                continue
            if kept.sending is None:
                held_back += 1
            else:
                found.append(candidate)
    return found, problems, held_back


def planned(chosen: Choice) -> list[str]:
    """Give a line for each event that would be sent, and at the end the number of chosen events."""
    if not chosen.events:
        return ["There is nothing to send."]
    lines = [_described(one, is_asked=one in chosen.events) for one in chosen.in_order]
    return [*lines, f"{len(chosen.events)} to be sent."]


def _described(one: sending.Candidate, *, is_asked: bool) -> str:
    time = one.time.astimezone(UTC).isoformat(" ", "seconds")
    more = "" if is_asked else "  (once more, to stay the latest)"
    return f"{time}  {one.job}  {one.state}  {one.run_id}{more}"


def summary(events: int, total: int) -> str:
    """Say how many of the chosen events were sent.

    :param events: number of events that were sent
    :param total: number of chosen events
    """
    if events == total:
        return "1 event was sent." if events == 1 else f"{events} events were sent."
    return f"{events} of {total} events were sent."


# --- sending --------------------------------------------------------------------------------------


_START_S, _EVENT_S = 30.0, 60.0
"""Seconds that a batch may take to start, and seconds more for each event.

Backends need long for large events, and clients retry.
"""
_BATCH, _BATCH_BYTES = 50, 16 * 1024 * 1024
"""Limits of a batch, which is held in memory: number of candidates, and bytes of their events."""


_Batch = list[tuple[sending.Candidate, list[bytes]]]
"""The candidates of a batch, each with the lines of JSON to send (:func:`.sending.lines_of`)."""


class Sender:
    """Sends chosen events through the transport of Airflow's OpenLineage provider.

    :param how: the changes that the backend needs in events
    :raise SettingsError: if Airflow has no transport
    """

    def __init__(self, archive: Archive, how: Adaptation) -> None:
        if reason := sources.why_not_sent():
            raise reason
        transport, _ = sources.transport()  # raises an error that names a missing connection
        self._is_converted = is_converted(transport)
        self._configuration = OpenLineageAdapter().get_openlineage_config()
        self._archive = archive
        self._how = how
        self._chosen: frozenset[str] = frozenset()
        self.sent: set[str] = set()
        """The names of the chosen events that were sent."""
        self.is_done = True
        """Whether nothing went wrong."""

    def send(self, chosen: Choice) -> None:
        """Send events in their order, and print a note on each problem."""
        self._chosen = frozenset(one.name for one in chosen.events)
        everything = chosen.in_order
        begin, stopped = 0, ""
        with commands.progress("Sending events", len(everything)) as reached:
            while begin < len(everything) and not stopped:
                batch = self._batch(everything[begin : begin + _BATCH])
                stopped = self._send(batch, begin, reached)
                begin += len(batch)
        if stopped:
            self._note(f"Sending stopped: {stopped}")

    def _batch(self, candidates: Sequence[sending.Candidate]) -> _Batch:
        """Take as many candidates, from the first on, as fit in a batch, but at least one.

        :return: the candidates, each with the lines of JSON to send
        """
        batch: _Batch = []
        size = 0
        for one in candidates:
            lines = self._lines(one)
            batch.append((one, lines))
            size += sum(map(len, lines))
            if size > _BATCH_BYTES:
                break
        return batch

    def _lines(self, one: sending.Candidate) -> list[bytes]:
        is_chosen = one.name in self._chosen
        try:
            kept = self._archive.archived(one.name)
            last = None if one.state == "COMPLETE" else self._last_before(one)
            lines = sending.lines_of(
                kept,
                replace(self._how, answered=self._archive.answered(one.name)),
                redacted,
                last,
                with_start=is_chosen,
                with_neutral=self._is_converted,
            )
            if is_chosen:  # between START and its end the backend takes the run for running
                self._archive.mark(one.name)
        except (exceptions.ArchiveError, exceptions.DocumentError) as error:
            self._note(f"{one.name} is skipped: {error}")
        except Exception as error:  # another version may have kept the event in another shape
            self._note(f"{one.name} is skipped: {type(error).__name__}: {error}")
        else:
            return lines
        return []

    def _last_before(self, one: sending.Candidate) -> Event | None:
        """Find the event of the task's last successful run before ``one``; None without such a run.

        The successful run's event has lineage that the event of a failed run does not have.
        """
        dag_id, _, *of_task, _ = one.name.split("/")
        for entry in self._entries:
            other_dag, _, *of_other, _ = entry.name.split("/")
            if (other_dag, of_other) != (dag_id, of_task) or entry.name == one.name:
                continue
            with suppress(exceptions.ArchiveError, exceptions.DocumentError, ValueError):
                event = self._archive.archived(entry.name).event
                other = sending.candidate(entry.name, event)
                if other.state == "COMPLETE" and other.time < one.time:
                    return event
        return None

    @cached_property
    def _entries(self) -> list[Entry]:
        """The entries of the archive, the latest first; [] if the archive cannot list them."""
        with suppress(exceptions.ArchiveError):
            never = datetime.min.replace(tzinfo=UTC)
            entries = self._archive.entries()
            return sorted(entries, key=lambda one: one.written or never, reverse=True)
        return []

    def _send(self, batch: _Batch, before: int, reached: Callable[[int], None]) -> str:
        """Send a batch; return the reason why no more can be sent, or an empty text.

        :param before: number of candidates in the batches before this one
        :param reached: a function that moves the progress bar to a number of candidates
        """
        lines = [line for _, of_one in batch for line in of_one]
        if not lines:
            return ""
        ends = [0, *accumulate(len(of_one) for _, of_one in batch)]

        def notice(number: int) -> None:
            reached(before + sum(end <= number for end in ends[1:]))

        seconds = _START_S + _EVENT_S * len(lines)
        sent = sending.send(lines, self._configuration, seconds, notice=notice)
        reached(before + len(batch))
        if sent.lost:
            return f"{sent.lost} events were taken and did not arrive; Airflow's transport says why"
        for (one, _), (begin, end) in zip(batch, pairwise(ends), strict=True):
            if begin < end <= len(sent.outcomes):
                self._arrived(one, sent, end - 1)
        return sent.stopped

    def _arrived(self, one: sending.Candidate, sent: sending.Sent, end: int) -> None:
        if why := sent.outcomes[end]:
            self._note(f"The event of {one.job} ({one.run_id}) was refused: {why}")
            return
        if one.name in self._chosen:
            self.sent.add(one.name)
        try:
            self._archive.unmark(one.name)
        except exceptions.ArchiveError as error:
            self._note(str(error))

    def _note(self, problem: str) -> None:
        self.is_done = False
        commands.note(f"sparklineage: {masked_message(problem)}")


# --- one process at a time ------------------------------------------------------------------------


_LOCK = "=sending"  # differs from each DAG's folder, where "=" is encoded
_LOOK_S = 1.0


@contextmanager
def alone(archive: Archive, wait_s: float | None = None) -> Iterator[None]:
    """Hold the archive's lock, so that no other process sends the same events at the same time.

    The lock of a process that has ended, or has not moved for five minutes, is taken over. If the
    archive cannot be written, the events are sent without a lock, and a note says so.

    :param wait_s: seconds to wait for another process, after which the events are sent all the
        same; None refuses them at once
    :raise ArchiveError: if another process holds the lock, and ``wait_s`` is None
    """
    folder = archive.folder
    if folder is not None and not folder.is_dir():
        yield  # it has no events to send
        return
    files: Files = Remote(archive.url) if folder is None else Folder(folder)
    lock = Lock(files, partial(datetime.now, UTC), _LOCK, _is_sending)
    problem = _taken(lock, archive, time.monotonic() + (wait_s or 0.0))
    if problem is not None:
        if wait_s is None and isinstance(problem, exceptions.ArchiveError):
            raise problem
        commands.note(
            f"note: The events are sent without a lock ({masked_message(str(problem))}), so "
            "another process may send the same events now."
        )
    try:
        yield
    finally:
        if problem is None:
            with suppress(Exception):
                within(archive.timeout_s, lambda: lock.__exit__(None), "sparklineage-archive")


def _taken(lock: Lock, archive: Archive, until: float) -> Exception | None:
    """Take a lock; give the error if that is not possible until a time of the monotonic clock."""
    while True:
        try:
            within(archive.timeout_s, lock.__enter__, "sparklineage-archive")
        except exceptions.ArchiveError as error:
            if time.monotonic() >= until:
                return error
            time.sleep(_LOOK_S)
        except Exception as error:  # each store's library raises errors of its own
            return error
        else:
            return None


def _is_sending(owner: Owner | None) -> exceptions.ArchiveError:
    by = f", by {owner}" if owner else ""
    problem = f"Events of this archive are being sent already{by}."
    return exceptions.ArchiveError(
        problem, "Wait for it; if it does not move for five minutes, the next one takes its place."
    )


# --- the command ----------------------------------------------------------------------------------


_RESEND_S = 120.0  # the user waits, and an archive may be large
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def resend(args: argparse.Namespace) -> int:
    """Send events of the archive again; return 1 if one of them was not sent, else 0."""
    since = _since(args.since, datetime.now(UTC))
    with commands.logging_to_stderr():
        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        archive = archive_of(resolved, _RESEND_S)
        if archive is None:
            commands.refuse(
                "There is no archive, so nothing can be sent again.",
                "See [sparklineage] archive_url.",
            )
        ids = args.dag_id or "", args.task_id or "", args.run_id or ""
        # Chosen under the lock: another process may have sent the events until it is released.
        with nullcontext() if args.dry_run else alone(archive):
            chosen = choose(archive, ids, since)
            if args.dry_run or not chosen.events:
                lines, is_done = planned(chosen), True
            else:
                sender = Sender(archive, resolved.adaptation)
                sender.send(chosen)
                lines, is_done = [summary(len(sender.sent), len(chosen.events))], sender.is_done
    for line in lines:
        commands.say(line)
    return 0 if is_done and not chosen.skipped else 1


def _since(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    parts = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if not parts:
        commands.refuse(f"--since {text} is no time.", "Write it as 30m, 2h or 7d.")
    span = timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    never = datetime.min.replace(tzinfo=UTC)
    return max(now - min(span, now - never), never)
