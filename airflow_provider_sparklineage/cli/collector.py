"""Collects the lineage of tries whose Spark job ran on without the worker.

Capture bundles are looked for in the location to which drivers deliver, and on this machine. Each
bundle becomes the event of its try, as the task would have made it. :class:`Collector` writes the
events to the archive, sends them, and shows them in Airflow by replacing the XComs that the tries
pushed.
"""

from __future__ import annotations

import tempfile
from contextlib import nullcontext, suppress
from datetime import datetime
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.connection import Connection
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.sdk.log import mask_secret
from airflow.utils.session import create_session
from msgspec.structs import replace
from sqlalchemy import and_, select

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.cli.sender import (
    Choice,
    Sender,
    alone,
    followed,
    planned,
    summary,
)
from airflow_provider_sparklineage.event import document, sending, xcom
from airflow_provider_sparklineage.event.archive import Archive, archive_of, content_of, name_of
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model import credentials, degradations, exceptions
from airflow_provider_sparklineage.operators.attempt import publish
from airflow_provider_sparklineage.operators.attempt.collect import is_kept
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.masking import masked, masked_message
from airflow_provider_sparklineage.plugins.stored import INSTANCE, is_of
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import remote_bundles, tools

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.event.sending import Candidate
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.settings.resolution import Settings


# --- finding bundles ------------------------------------------------------------------------------


class BundleChoice(NamedTuple):
    """The choice of bundles on the command line.

    :param run: id of a DAG run, or the place of one bundle, which is a URL or a folder; empty for
        all bundles of the users' own commands whose lineage is not collected yet
    """

    run: str
    dag_id: str = ""
    task_id: str = ""

    @property
    def is_place(self) -> bool:
        """Whether it is the place of one bundle."""
        return "://" in self.run or ("/" in self.run and Path(self.run).is_dir())

    def may_be(self, name: str) -> bool:
        """Whether a bundle with this name can belong to the chosen DAG and task."""
        return capture.may_be_of(name, self.dag_id, self.task_id)

    def is_wanted(self, manifest: capture.Manifest) -> bool:
        """Whether the bundle with this manifest is chosen."""
        task = manifest.task
        if task is None:
            return False
        if not self.run and (manifest.ended or not manifest.of_command):
            return False
        wanted = (self.run or task.run_id, self.dag_id or task.dag_id, self.task_id or task.task_id)
        return (task.run_id, task.dag_id, task.task_id) == wanted


class LocatedBundle(NamedTuple):
    """A capture bundle and its place.

    :param place: URL of the folder to which a driver delivers, or a folder of this machine
    """

    place: str
    manifest: capture.Manifest

    @property
    def is_remote(self) -> bool:
        """Whether the bundle is in a folder to which a driver delivers."""
        return "://" in self.place

    @property
    def url(self) -> str:
        """The place as a URL."""
        return self.place if self.is_remote else f"file://{Path(self.place).absolute()}"

    def __str__(self) -> str:
        task = self.manifest.task
        if task is None:
            return self.place
        index = f"[{task.map_index}]" if task.map_index >= 0 else ""
        return f"{task.dag_id}.{task.task_id}{index} (try {task.try_number})"


def find_bundles(
    location: capture.CaptureLocation, choice: BundleChoice, budget: Budget
) -> list[LocatedBundle]:
    """Find the chosen bundles, in the order in which their tries began.

    :raise CaptureError: if a location cannot be read, or a run is named and has no bundle
    """
    bundles = [*_find(location, choice, budget)]
    if choice.run and not bundles:
        problem = f"There is no capture bundle of {choice.run} in {location}."
        fix = (
            "The run, DAG or task has another id, or its lineage was collected and the bundle "
            "removed. Where capture_location is set as on the workers, the bundles that drivers "
            "have delivered are found."
        )
        raise exceptions.CaptureError(problem, fix)
    return sorted(bundles, key=lambda one: (str(one.manifest.started), one.place))


def _find(
    location: capture.CaptureLocation, choice: BundleChoice, budget: Budget
) -> Iterator[LocatedBundle]:
    if "://" in choice.run:
        root, _, name = choice.run.rstrip("/").rpartition("/")
        manifests = remote_bundles.manifests(root, budget, lambda one: one == name)
        return starmap(LocatedBundle, manifests)
    if choice.is_place:
        return iter([LocatedBundle(choice.run, capture.load(Path(choice.run)).manifest)])
    remote: Iterable[tuple[str, capture.Manifest]] = ()
    if location.url:
        remote = remote_bundles.manifests(location.url, budget, choice.may_be)
    everywhere = chain(starmap(LocatedBundle, remote), _local_bundles(location, choice))
    return (one for one in everywhere if choice.is_wanted(one.manifest))


def _local_bundles(
    location: capture.CaptureLocation, choice: BundleChoice
) -> Iterator[LocatedBundle]:
    """Yield the bundles on this machine into which drivers write, or whose collecting failed."""
    for folder in capture.own_bundles(location.folder):
        if choice.may_be(folder.name):
            manifest = capture.load(folder).manifest
            if not manifest.remote:
                yield LocatedBundle(str(folder), manifest)


# --- a bundle to the event of its try -------------------------------------------------------------


_NOT_AWAITED = degradations.DegradationCode.APPLICATION_UNFINISHED


class Merged(NamedTuple):
    """A bundle, with the lineage and the event that were made from it.

    :param bundle: the bundle before merging
    :param manifest: the manifest after merging
    :param written: the event that was made from the bundle
    :param unfinished: reason why the job is not known to have ended; empty if it is known to have
        ended
    """

    bundle: LocatedBundle
    task: capture.TaskIdentity
    manifest: capture.Manifest
    lineage: TaskLineage
    written: document.Written
    unfinished: str

    @property
    def is_left(self) -> bool:
        """Whether the worker is done with the bundle, so that the collector may remove it."""
        before = self.bundle.manifest
        codes = {d.code for d in before.degradations}
        return bool(before.ended) or before.of_command or _NOT_AWAITED in codes

    @property
    def is_news(self) -> bool:
        """Whether the bundle was never merged, or its degradations have changed since the merge."""
        before = self.bundle.manifest
        return not before.outcome or {*before.degradations} != {*self.manifest.degradations}


def merge_bundle(located: LocatedBundle, work: Path, budget: Budget) -> Merged:
    """Merge a bundle as if it had not been merged before.

    :param located: the bundle and its place
    :param work: an empty folder, into which a bundle at a URL is downloaded
    :param budget: the time for downloading the bundle
    :raise CaptureError: if the bundle cannot be read, or its manifest names no task
    """
    before = located.manifest
    if before.task is None:
        problem = f"The manifest of {located.place} names no task."
        raise exceptions.CaptureError(problem)
    # If the task could add nothing to a command, the degradation with the reason still holds.
    was_refused = before.of_command and not before.injected
    rest = [d for d in before.degradations if was_refused or not d.code.is_of_collecting]
    outcome: str = before.outcome
    unfinished = "It has not reported its end."
    # The state of the task decides, because Airflow's own event has this state, and because a job
    # can end by an exit that Spark does not see.
    state = state_of(before.task) if before.of_command else ""
    known = "" if state == "RUNNING" else state
    if located.is_remote:
        bundle, came = remote_bundles.fetched(located.place, work, budget)
        if came.has_begun:
            tools.note(bundle.manifest, budget, has_reported=True)
        rest += came.degradations
        if came.has_ended:
            outcome = outcome or known or ("FAIL" if came.failed else "COMPLETE")
        elif not came.has_begun:
            unfinished = " ".join(d.message for d in came.degradations)
    else:
        bundle = capture.load(Path(located.place))
        outcome = outcome or known  # the driver was on the worker, and ended with the task
    manifest = replace(bundle.manifest, degradations=tuple(rest), outcome=outcome)
    bundle = replace(bundle, manifest=manifest)
    lineage = task_lineage(bundle)
    written = document.Written(merged_event(bundle, lineage, masked))
    if state == "RUNNING":
        unfinished = "Its task is running, and may submit once more."
    elif outcome or (lineage.application and lineage.application.finished):
        unfinished = ""
    return Merged(located, before.task, manifest, lineage, written, unfinished)


def end_bundle(merged: Merged, settings: Settings, budget: Budget) -> None:
    """Keep or remove a bundle that was collected, as its task would have done.

    If a driver may still write to the bundle, nothing is changed. If the worker may still have work
    to do with the bundle, the bundle is kept.

    :raise CaptureError: if the bundle cannot be changed or removed
    """
    if merged.unfinished:
        return
    place, is_remote = merged.bundle.place, merged.bundle.is_remote
    if not merged.is_left or is_kept(settings, merged.lineage, merged.written.event):
        manifest = replace(
            merged.manifest,
            outcome=merged.lineage.outcome.value,
            # The time of the event is noted as the end, so that --again sends the same event.
            ended=datetime.fromisoformat(merged.written.event["eventTime"]),
        )
        if is_remote:
            remote_bundles.announce(manifest, budget)
        else:
            capture.CaptureBundle(Path(place), manifest).save()
    elif is_remote:
        remote_bundles.remove(place, budget)
    else:
        capture.CaptureBundle(Path(place), merged.manifest).remove()


# --- keeping, sending, showing --------------------------------------------------------------------


class Event(NamedTuple):
    """The event of a try, with all that is needed to send it.

    :param candidate: the event under its name in the archive
    :param sending: the part that Airflow's provider adds to the event (ownership, run facets);
        None if the event must not be sent
    """

    merged: Merged
    candidate: Candidate
    sending: dict[str, Any] | None


class Collector:
    """Collects bundles, and prints a note on each bundle that cannot be collected.

    :param archive: a temporary archive if none is configured
    :param budget: time for reading, writing and removing bundles
    """

    def __init__(self, settings: Settings, archive: Archive, budget: Budget) -> None:
        self._settings = settings
        self._archive = archive
        self._budget = budget
        self.is_done = True
        """Whether nothing went wrong, and nothing is left to collect."""
        self.lines: list[str] = []
        """The lines that the command prints."""

    def events(
        self, bundles: Iterable[LocatedBundle], work: Path, *, now: bool, again: bool
    ) -> list[Event]:
        """Merge bundles, and give the events to send.

        :param work: a folder into which bundles at URLs are downloaded
        :param now: whether bundles of jobs that are not known to have ended are merged too
        :param again: whether bundles that were collected already are merged again
        """
        events = []
        for number, one in enumerate(bundles):
            folder = work / str(number)
            folder.mkdir(mode=0o700)
            try:
                merged = merge_bundle(one, folder, self._budget)
                if merged.unfinished and not now:
                    self._note(
                        f"The job of {one} is still running as far as is known. "
                        f"{merged.unfinished} If it was killed, --now collects the part "
                        "that is there."
                    )
                elif not merged.is_news and not again:
                    self.lines.append(f"{one} was collected already; --again sends it once more.")
                else:
                    name = name_of(merged.task)
                    candidate = sending.candidate(name, merged.written.event)
                    events.append(Event(merged, candidate, self._sending(one, name)))
            except exceptions.SparkLineageError as error:
                self._note(f"{one} is skipped: {error}")
        return events

    def _sending(self, bundle: LocatedBundle, name: str) -> dict[str, Any] | None:
        """Give the part that Airflow's provider adds to an event, from its bundle or the archive.

        :param name: the name of the event in the archive
        :return: None if the event must not be sent
        :raise CaptureError: if neither the bundle nor the archive has this part
        """
        try:
            return publish.kept_additions(bundle.url)
        except exceptions.CaptureError:
            with suppress(exceptions.ArchiveError, exceptions.DocumentError):
                if (sending := self._archive.archived(name).sending) is not None:
                    return sending
            raise

    def plan(self, events: Sequence[Event]) -> None:
        """Add to :attr:`lines` a line for each event that would be sent, and their number."""
        self.lines += planned(self._chosen(events))

    def collect(self, events: Sequence[Event]) -> None:
        """Send events, show them in Airflow, and keep or remove their bundles.

        :raise SettingsError: if Airflow has no transport, and unsent events are not kept in an
            archive
        """
        reason = sources.why_not_sent()
        if reason is not None and sources.is_kept_unsent(self._settings):
            stored = self._stored(events)
            self.lines.append(f"{len(stored)} kept in the archive and not sent: {reason}")
        else:
            stored = self._sent(events)
        for one in stored:
            try:
                self._show(one.merged)
                end_bundle(one.merged, self._settings, self._budget)
            except exceptions.SparkLineageError as error:
                self._note(str(error))

    def _sent(self, events: Sequence[Event]) -> list[Event]:
        """Write events to the archive, and send those that may be sent.

        :return: the events that are done: each was sent, or was stored and must not be sent
        """
        sender = Sender(self._archive, self._settings.adaptation)
        stored = self._stored(events)
        chosen = self._chosen(stored)
        sender.send(chosen)
        self.is_done = self.is_done and sender.is_done
        if chosen.events or not stored:
            self.lines.append(summary(len(sender.sent), len(chosen.events)))
        return [e for e in stored if e.sending is None or e.candidate.name in sender.sent]

    def _stored(self, events: Iterable[Event]) -> list[Event]:
        """Replace the tasks' events in the archive by these; return the events that were stored."""
        stored = []
        for one in events:
            is_unsent = one.sending is not None and self._archive.has_marks
            task, written = one.merged.task, one.merged.written
            try:
                self._archive.write(task, written, one.sending, is_unsent=is_unsent)
            except exceptions.ArchiveError as error:
                self._note(f"{one.merged.bundle} is skipped: {error}")
            else:
                stored.append(one)
            try:
                content = content_of(written, one.sending)
                publish.deliver(self._settings, task, content, _ARCHIVE_S)
            except exceptions.HistoryError as error:  # `history build` reads it from the archive
                commands.note(f"sparklineage: {masked_message(str(error))}")
        return stored

    def _chosen(self, events: Sequence[Event]) -> Choice:
        wanted = sending.in_order(e.candidate for e in events if e.sending is not None)
        if held_back := len(events) - len(wanted):
            self.lines.append(
                f"{held_back} are not for sending: Airflow's emission policy holds them back."
            )
        return followed(self._archive, wanted)

    def _show(self, merged: Merged) -> None:
        is_first = merged.manifest.of_command
        if not replace_xcom(merged.task, merged.written, is_first=is_first):
            commands.note(
                f"sparklineage: The XCom of {merged.bundle} could not be replaced, so its page in "
                "Airflow shows the lineage that the task had."
            )

    def _note(self, problem: str) -> None:
        self.is_done = False
        commands.note(f"sparklineage: {masked_message(problem)}")


# --- Airflow's database, where this machine has it ------------------------------------------------


log = credentials.logger(__name__)


def mask_connections() -> None:
    """Register the secrets of all connections, so that Airflow hides them in texts; never raises.

    A running task registers the secrets of the connections that it uses.
    """
    try:
        with create_session() as session:
            for connection in session.scalars(select(Connection)):
                with suppress(Exception):  # it was encrypted with another key
                    mask_secret(connection.password)
                    mask_secret(connection.extra_dejson)
    except Exception:
        log.debug("Airflow's connections are not known.", exc_info=True)


_STATES = {
    "success": "COMPLETE",
    "failed": "FAIL",
    "up_for_retry": "FAIL",
    "running": "RUNNING",
}


def state_of(task: capture.TaskIdentity) -> str:
    """Ask Airflow's database whether a try's job runs, or how it ended; never raises.

    :param task: the try
    :return: RUNNING, COMPLETE or FAIL; empty if that is not known
    """
    try:
        with create_session() as session:
            for model in (TaskInstance, TaskInstanceHistory):
                is_of_try = model.try_number == task.try_number
                state = session.scalar(select(model.state).where(is_of(task, model), is_of_try))
                if state is not None:
                    return _STATES.get(str(state), "")
    except Exception:
        log.debug("The state of a try is not known.", exc_info=True)
    return ""


def replace_xcom(
    task: capture.TaskIdentity, written: document.Written, *, is_first: bool = False
) -> bool:
    """Replace the event in the XCom of a try; return whether the XCom has the new event now.

    The lineage tab and the next run read the XCom. The event in it cannot be replaced if the try
    pushed none, if another try has begun since, or if a custom backend stores XComs elsewhere.
    Never raises.

    :param task: the try
    :param written: the new event
    :param is_first: whether to add the XCom if there is none, because the try itself pushes no
        event
    """
    try:
        value = publish.xcom_of(written)
        if value is None:
            return False
        with create_session() as session:
            row: Any = session.scalar(_pushed_xcom(task))
            if row is None and is_first:
                return _push_xcom(task, value, session)
            if row is None or isinstance(row.value, str):
                return False
            row.value = value
    except Exception:
        log.debug("The XCom was not replaced.", exc_info=True)
        return False
    return True


def _push_xcom(task: capture.TaskIdentity, value: dict[str, Any], session: Session) -> bool:
    if not session.scalar(select(TaskInstance.id).where(is_of(task), _is_latest(task))):
        return False
    place = {name: getattr(task, name) for name in INSTANCE}
    XComModel.set(xcom.KEY, value, **place, serialize=False, session=session)
    return True


def _pushed_xcom(task: capture.TaskIdentity) -> Any:
    """Give the statement that selects the XCom of a try.

    It selects nothing if a later try of the task instance has begun.
    """
    same = [getattr(XComModel, name) == getattr(TaskInstance, name) for name in INSTANCE]
    return (
        select(XComModel)
        .join(TaskInstance, and_(*same))
        .where(is_of(task, XComModel), XComModel.key == xcom.KEY, _is_latest(task))
    )


def _is_latest(task: capture.TaskIdentity) -> Any:
    return TaskInstance.try_number == task.try_number


# --- the command ----------------------------------------------------------------------------------


_COLLECT_S = 600.0  # the user waits, and a bundle may be large
_ARCHIVE_S = 120.0
_WAIT_S = 60.0  # a collect may be a task, which must not fail because another one sends events


def collect(args: argparse.Namespace) -> int:
    """Collect bundles and send their events; return 1 if a bundle is left, else 0."""
    with commands.logging_to_stderr():
        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        budget = Deadline().part(_COLLECT_S)
        mask_connections()
        choice = BundleChoice(args.run, args.dag or "", args.task or "")
        if choice.is_place and (choice.dag_id or choice.task_id):
            fix = "Leave out --dag and --task, or give the id of a DAG run."
            commands.refuse(f"{args.run} is one bundle.", fix)
        with tempfile.TemporaryDirectory(prefix="sparklineage-") as work:
            # If no archive is configured, a temporary archive holds the events while they are sent,
            # because the sender reads events from an archive, by their names in it.
            own = Archive(f"file://{work}/archive", is_default=True)
            archive = archive_of(resolved, _ARCHIVE_S) or own
            collecting = Collector(resolved, archive, budget)
            with nullcontext() if args.dry_run else alone(archive, _WAIT_S):
                bundles = find_bundles(resolved.capture_location, choice, budget)
                events = collecting.events(bundles, Path(work), now=args.now, again=args.again)
                if args.dry_run:
                    collecting.plan(events)
                elif events:
                    collecting.collect(events)
    if not bundles:
        commands.say("There is nothing to collect.")
    for line in collecting.lines:
        commands.say(line)
    return 0 if collecting.is_done else 1
