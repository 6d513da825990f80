"""Which events of the archive are sent, and which later ones follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.cli.output import note
from airflow_provider_sparklineage.cli.progress import progress
from airflow_provider_sparklineage.event import resending
from airflow_provider_sparklineage.model.exceptions import (
    ArchiveError,
    DocumentError,
    UnusableInputError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.event.archive import Archive, Entry
    from airflow_provider_sparklineage.event.resending import Candidate


class Asked(NamedTuple):
    """What a person asks for; without anything, what is known not to have been sent."""

    dag_id: str = ""
    task_id: str = ""
    run_id: str = ""
    since: datetime | None = None


class Choice(NamedTuple):
    """What is sent.

    :param events: that were asked for
    :param following: later ones of the same jobs and datasets, which have to stay the latest
    :param skipped: how many were asked for and cannot be read
    """

    events: list[Candidate]
    following: list[Candidate]
    skipped: int

    @property
    def in_order(self) -> list[Candidate]:
        """All of them as they are sent."""
        return resending.in_order([*self.events, *self.following])


class _Read(NamedTuple):
    candidates: list[Candidate]
    problems: list[str]
    held_back: int


def of(archive: Archive, asked: Asked) -> Choice:
    """Choose, and note for people what cannot be sent.

    :raise ArchiveError: if the archive does not say what it has
    :raise UnusableInputError: if the archive does not know what was not sent
    """
    entries = _entries(archive, asked)
    read = _read(archive, entries, "Reading events")
    for problem in read.problems:
        note(f"sparklineage: {problem}")
    if read.held_back:
        note(
            f"sparklineage: {read.held_back} of {len(entries)} are not for sending: Airflow's "
            "emission policy held them back, a person ended the task, or an older version of this "
            "package kept them."
        )
    since = asked.since
    chosen = resending.in_order(c for c in read.candidates if since is None or c.time >= since)
    return followed(archive, chosen, len(read.problems))


def followed(archive: Archive, chosen: list[Candidate], skipped: int = 0) -> Choice:
    """Choose some events, and those that have to follow them.

    :param chosen: in their order
    :raise ArchiveError: if the archive does not say what it has
    """
    if not chosen:
        return Choice([], [], skipped)
    later = [e for e in archive.entries() if not _is_before(e, chosen[0].time)]
    known = _read(archive, later, "Looking for later runs").candidates
    return Choice(chosen, resending.followers(chosen, known), skipped)


def _entries(archive: Archive, asked: Asked) -> list[Entry]:
    if any(asked):
        entries = archive.entries(asked.dag_id, asked.task_id, asked.run_id)
        return [e for e in entries if asked.since is None or not _is_before(e, asked.since)]
    if not archive.has_marks:
        problem = f"In {archive.url} it is not noted which events were not sent."
        raise UnusableInputError(problem, "Choose some: --since 2h, or DAG [TASK [RUN]].")
    return archive.unsent()


def _is_before(entry: Entry, time: datetime) -> bool:
    """Whether an event is older for sure: it is written when it was made, or later."""
    return entry.written is not None and entry.written < time


def _read(archive: Archive, entries: Sequence[Entry], what: str) -> _Read:
    found: list[Candidate] = []
    problems: list[str] = []
    held_back = 0
    with progress(what, len(entries)) as reached:
        for number, entry in enumerate(entries):
            reached(number)
            try:
                kept = archive.kept(entry.name)
                candidate = resending.candidate(entry.name, kept.event)
            except (ArchiveError, DocumentError, ValueError) as error:
                problems.append(f"{entry.name} is skipped: {error}")
                continue
            if kept.sending is None:
                held_back += 1
            else:
                found.append(candidate)
    return _Read(found, problems, held_back)
