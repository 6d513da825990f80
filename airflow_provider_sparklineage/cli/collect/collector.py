"""Keeps the events of collected tries, sends them, and shows them in Airflow."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.cli.collect import database, merging
from airflow_provider_sparklineage.cli.output import note
from airflow_provider_sparklineage.cli.resend import choice
from airflow_provider_sparklineage.cli.resend.command import planned, summary
from airflow_provider_sparklineage.cli.resend.sender import Sender
from airflow_provider_sparklineage.event import resending
from airflow_provider_sparklineage.event.archive import name_of
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.exceptions import (
    ArchiveError,
    CaptureError,
    DocumentError,
    SparkLineageError,
)
from airflow_provider_sparklineage.operators import afterwards
from airflow_provider_sparklineage.operators.masking import masked_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from airflow_provider_sparklineage.cli.collect.finding import Found
    from airflow_provider_sparklineage.cli.collect.merging import Merged
    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.resending import Candidate
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.settings.resolution import Settings


class Event(NamedTuple):
    """The event of a try.

    :param candidate: under its name in the archive
    :param sending: what Airflow adds; None if it is not for sending
    """

    merged: Merged
    candidate: Candidate
    sending: dict[str, Any] | None


class Collector:
    """Collects bundles, and notes for people what cannot be.

    :param archive: a temporary one where none is configured
    :param budget: for getting the bundles
    """

    def __init__(self, settings: Settings, archive: Archive, budget: Budget) -> None:
        self._settings = settings
        self._archive = archive
        self._budget = budget
        self.is_done = True
        """Whether nothing went wrong, and nothing is left to collect."""
        self.lines: list[str] = []
        """What a person is to read."""

    def events(self, found: Iterable[Found], work: Path, *, now: bool, again: bool) -> list[Event]:
        """Merge the bundles of which there is something to send.

        :param now: also those of jobs that are not known to have ended
        :param again: also those that were collected
        """
        events = []
        for number, one in enumerate(found):
            folder = work / str(number)
            folder.mkdir(mode=0o700)
            try:
                merged = merging.merged(one, folder, self._budget)
                if merged.unfinished and not now:
                    self._note(
                        f"The job of {one} is still running as far as is known. "
                        f"{merged.unfinished} If it was killed, --now collects what there is."
                    )
                elif not merged.is_news and not again:
                    self.lines.append(f"{one} was collected already; --again sends it once more.")
                else:
                    events.append(self._event(merged))
            except SparkLineageError as error:
                self._note(f"{one} is skipped: {error}")
        return events

    def _event(self, merged: Merged) -> Event:
        name = name_of(merged.task)
        candidate = resending.candidate(name, merged.written.event)
        return Event(merged, candidate, self._sending(merged.found, name))

    def _sending(self, found: Found, name: str) -> dict[str, Any] | None:
        """Give what Airflow adds to an event: by its bundle, else by the archive."""
        try:
            return afterwards.additions(found.url)
        except CaptureError:
            with suppress(ArchiveError, DocumentError):
                if (sending := self._archive.kept(name).sending) is not None:
                    return sending
            raise

    def plan(self, events: Sequence[Event]) -> None:
        """List what would be sent."""
        self.lines += planned(self._chosen(events))

    def collect(self, events: Sequence[Event]) -> None:
        """Send events, show them in Airflow, and be done with their bundles.

        :raise SettingsError: if Airflow has no transport, and there is no archive for them either
        """
        reason = sources.why_not_sent()
        if reason is not None and sources.is_kept_unsent(self._settings):
            kept = self._kept(events)
            self.lines.append(f"{len(kept)} kept in the archive and not sent: {reason}")
        else:
            kept = self._sent(events)
        for one in kept:
            try:
                self._show(one.merged)
                merging.end(one.merged, self._settings, self._budget)
            except SparkLineageError as error:
                self._note(str(error))

    def _sent(self, events: Sequence[Event]) -> list[Event]:
        """Keep and send events; give those of which nothing is left to send."""
        sender = Sender(self._archive, self._settings.leaving)
        kept = self._kept(events)
        chosen = self._chosen(kept)
        result = sender.send(chosen)
        self.is_done = self.is_done and result.is_done
        if chosen.events or not kept:
            self.lines.append(summary(len(result.sent), len(chosen.events)))
        return [e for e in kept if e.sending is None or e.candidate.name in result.sent]

    def _kept(self, events: Iterable[Event]) -> list[Event]:
        """Put events into the archive, in the place of those that the tasks had left."""
        kept = []
        for one in events:
            is_unsent = one.sending is not None and self._archive.has_marks
            task, written = one.merged.task, one.merged.written
            try:
                self._archive.write(task, written, one.sending, is_unsent=is_unsent)
            except ArchiveError as error:
                self._note(f"{one.merged.found} is skipped: {error}")
            else:
                kept.append(one)
        return kept

    def _chosen(self, events: Sequence[Event]) -> choice.Choice:
        wanted = resending.in_order(e.candidate for e in events if e.sending is not None)
        if held_back := len(events) - len(wanted):
            self.lines.append(f"{held_back} not for sending: Airflow's emission policy holds back.")
        return choice.followed(self._archive, wanted)

    def _show(self, merged: Merged) -> None:
        is_first = merged.manifest.of_command
        shown = database.replace_xcom(
            merged.task, merged.written, self._settings, is_first=is_first
        )
        if not shown:
            note(
                f"sparklineage: The XCom of {merged.found} could not be replaced, so its page in "
                "Airflow shows what the task knew."
            )

    def _note(self, problem: str) -> None:
        self.is_done = False
        note(f"sparklineage: {masked_message(problem)}")
