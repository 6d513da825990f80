"""The remote folder of a try: the layout, the files that drivers delivered, and the missing files.

::

    <capture_location>/<name of the bundle>/
        manifest.json                    by the worker: the bundle's manifest
        sending.json                     by the worker: Airflow's part of the try's event
        <attempt>/start.json             by the driver, first: a Start
        <attempt>/events-00001.ndjson    whole lines of the listener's file, in order
        <attempt>/events-00001-00064.ndjson    by the driver, later: the same as these segments
        <attempt>/observations-00001.ndjson    the same of the observer's file
        <attempt>/end.json               by the driver, last: an End

Each driver has one folder ``<attempt>``, because YARN and Kubernetes may start a driver again. Its
name is ``<number of the attempt>-<start in ms>-<8 hex digits>``, so that the names sort by time.
Every file appears as a whole or not at all. Files of other names (``.part``, ``.crc``) are ignored.
The driver of a long job joins small segments to one file, and then deletes them.
:mod:`sparklineage_observer.delivery` writes the driver's files.

Everybody that may write to the location can put any file there. So names are checked before they
are used, and the size that is read has a limit. The worker's clock is never compared with the
driver's clock.

:class:`Folder` reads the folder, :func:`received` downloads the delivered files into a bundle, and
:func:`undelivered` reports missing files as degradations.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS, Frozen
from airflow_provider_sparklineage.spark.capture.bundle import (
    DriverAttempt,
    collect_command,
    in_spark,
)
from airflow_provider_sparklineage.spark.capture.download import Download, Follower
from airflow_provider_sparklineage.spark.capture.lines import UnreadableError, decoded
from airflow_provider_sparklineage.storage.bounded import StoreError, reason, within_budget
from airflow_provider_sparklineage.storage.objects import PACKAGES, Objects

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest


START, END, SENDING = "start.json", "end.json", "sending.json"
ATTEMPT = re.compile(r"[0-9]{5}-[0-9]{13}-[0-9a-f]{8}")
# A number has only one form: with leading zeros up to five digits, without them from six digits on.
_NUMBER = "[0-9]{5}|[1-9][0-9]{5,8}"
SEGMENT = re.compile(
    rf"(?P<kind>events|observations)-(?P<first>{_NUMBER})(?:-(?P<last>{_NUMBER}))?\.ndjson"
)

_MAX_DOCUMENT_BYTES = 64 * 1024  # of a JSON file that a driver wrote
_MAX_ATTEMPTS = 20
_FOR_BEGINNING = 0.3
_TRIES = 3  # a look at the folder may fail twice, if the store fails
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_T = TypeVar("_T", bound=msgspec.Struct)


class Start(msgspec.Struct, frozen=True):
    """``start.json``: the first file of a driver, written when the driver begins to deliver."""

    application_run_id: str
    """The OpenLineage run id of the driver's application. If the manifest of the try has another
    run id, the attempt belongs to another application."""
    application_id: str
    started_ms: int


class End(msgspec.Struct, frozen=True):
    """``end.json``: the last file of a driver, written when its Python has ended.

    The driver has then delivered all its lines.
    """

    application_run_id: str
    segments: dict[str, int]
    """The number of segments of each kind (``events``, ``observations``)."""
    delivery_ms: int = 0
    """The time that all deliveries took together, in ms."""
    errors: tuple[str, ...] = ()
    failed: str = ""
    """The name of the class of the exception that ended Python; empty if Python ended without an
    exception, or by ``sys.exit()``."""


class Segment(NamedTuple):
    """A file with whole lines of a driver's file.

    :param kind: ``events`` or ``observations``
    :param first: the number of the segment; of a joined one, that of the first segment in it
    :param last: the number of the last segment in it
    """

    name: str
    kind: str
    first: int
    last: int

    @classmethod
    def read(cls, name: str) -> Segment | None:
        """Read the name of a file; None if it is not that of a segment."""
        match = SEGMENT.fullmatch(name)
        if match is None:
            return None
        first, joined = int(match["first"]), match["last"]
        last = int(joined or first)
        return cls(name, match["kind"], first, last) if last > first or not joined else None

    def is_joined_from(self, names: Container[str]) -> bool:
        """Whether this is a joined segment, and all segments in it are among these names."""
        if self.first == self.last or self.name in names:
            return False
        numbers = range(self.first, self.last + 1)
        return all(f"{self.kind}-{number:05d}.ndjson" in names for number in numbers)

    @property
    def file(self) -> str:
        """The name of the bundle's file to which these lines belong."""
        return EVENTS if self.kind == "events" else OBSERVATIONS


class Attempt(Frozen, frozen=True):
    """An attempt: the files that one driver delivered.

    :param name: the name of the attempt's folder
    :param start: the content of ``start.json``; None if it is missing or cannot be read
    :param end: the content of ``end.json``; None if it is missing, cannot be read, or is of another
        application
    :param sizes: the sizes of the attempt's files in bytes, by name
    :param problems: the reasons why the attempt's folder, ``start.json`` or ``end.json`` cannot be
        read
    """

    name: str
    start: Start | None = None
    end: End | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def segments(self, here: Container[str] = ()) -> list[Segment]:
        """List the attempt's segments, without doubles, in the order in which they were delivered.

        Of joined segments and the segments that they were joined from, the joined ones are listed.

        :param here: the names of segments that are already downloaded; if these are all from which
            others were joined, they are listed
        """
        kinds: dict[str, list[Segment]] = {"events": [], "observations": []}
        for name in self.sizes:
            if segment := Segment.read(name):
                kinds[segment.kind].append(segment)
        chosen = []
        for segments in kinds.values():
            before = 0
            for segment in sorted(segments, key=lambda s: (s.first, -s.last)):
                if segment.first > before and not segment.is_joined_from(here):
                    chosen.append(segment)
                    before = segment.last
        return sorted(chosen, key=lambda s: (s.first, s.kind))

    def as_driver(self, before: int) -> DriverAttempt:
        """Describe the driver of this attempt, by the name of the folder.

        :param before: the number of the attempt before; a cluster that starts a driver again may
            give it the number of the earlier one
        """
        number, started_ms, _ = self.name.split("-")
        started = datetime.fromtimestamp(int(started_ms) / 1000, UTC)
        return DriverAttempt(max(int(number), before + 1), started)

    def missing(self) -> Iterator[tuple[str, int, int]]:
        """Yield the ranges of missing segments, as (kind, first number, last number).

        ``("events", 2, 4)`` stands for three segments. A segment is missing if a later segment of
        its kind exists, or if ``end.json`` counts it.
        """
        end = self.end.segments if self.end else {}
        for kind in ("events", "observations"):
            before = 0
            for segment in [s for s in self.segments() if s.kind == kind]:
                if segment.first > before + 1:
                    yield kind, before + 1, segment.first - 1
                before = segment.last
            if end.get(kind, 0) > before:
                yield kind, before + 1, end[kind]

    @property
    def is_whole(self) -> bool:
        """Whether the attempt has its ``end.json`` and all its segments."""
        return self.end is not None and not any(self.missing())


class Folder:
    """A reader of the folder to which the drivers of a try deliver.

    :param url: the folder's URL, in Airflow's form
    :param run_id: the OpenLineage run id of the try's application; the ``end.json`` of an attempt
        with another run id is not read
    """

    def __init__(self, url: str, run_id: str) -> None:
        self.objects = Objects(url)
        self.left_out = 0
        """The number of earlier attempts at which :meth:`attempts` did not look."""
        self._run_id = run_id
        self._read: dict[str, msgspec.Struct] = {}

    def is_own(self, attempt: Attempt) -> bool:
        """Whether an attempt belongs to this try's application.

        False if the attempt has no ``start.json``, or if this file cannot be read.
        """
        return attempt.start is not None and attempt.start.application_run_id == self._run_id

    def attempts(self) -> list[Attempt]:
        """List the attempts in the folder, the earliest first, but no more than the last 20."""
        names = sorted(name for name in self.objects.names("") if ATTEMPT.fullmatch(name))
        self.left_out = max(0, len(names) - _MAX_ATTEMPTS)
        return [self._attempt(name) for name in names[-_MAX_ATTEMPTS:]]

    def own(self, attempts: Sequence[Attempt], download: Download) -> list[Attempt]:
        """Give the attempts of the try's application, each with its segments that are here already.

        The driver may have joined these since, and deleted them.
        """
        return [
            replace(attempt, sizes={**download.within(attempt.name), **attempt.sizes})
            for attempt in filter(self.is_own, attempts)
        ]

    def awaited(self, budget: Budget, gone: Event) -> list[Attempt]:
        """Wait until the last driver has delivered all, or the budget is spent; list the attempts.

        A store may list a file some time after it was written, and may fail once or twice. As long
        as there is no attempt, this method waits for a part of the budget only: a submission that
        failed had no driver, and so will never have an attempt.

        :param budget: the longest time to wait
        :param gone: is set when nobody needs the answer any more: then the store is not asked again
        :return: all attempts, as :meth:`attempts` lists them
        :raise Exception: any error of the store's library, when the store has failed three times
        """
        pause, failed, beginning = _SHORTEST_PAUSE_S, 0, budget.part(_FOR_BEGINNING)
        while True:
            try:
                attempts = self.attempts()
                waiting = budget if attempts else beginning
                if self._is_whole(attempts) or waiting.is_spent() or gone.is_set():
                    return attempts
            except Exception:
                failed += 1
                if failed == _TRIES or gone.is_set():
                    raise
                self.objects.forget()
            gone.wait(min(pause, max(0.0, budget.left)))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _is_whole(self, attempts: list[Attempt]) -> bool:
        candidates = [a for a in attempts if a.start is None or self.is_own(a)]
        return bool(candidates) and candidates[-1].is_whole

    def _attempt(self, name: str) -> Attempt:
        try:
            sizes = self.objects.files(name)
        except Exception as error:  # any error of the store's library
            return Attempt(name, problems=(f"it cannot be listed: {reason(error)}",))
        problems: list[str] = []
        start, end = self._document(name, START, Start, sizes, problems), None
        if start is not None and start.application_run_id == self._run_id:
            end = self._document(name, END, End, sizes, problems)
        if end is not None and end.application_run_id != self._run_id:
            problems.append(f"{END} is of another application")
            end = None
        return Attempt(name, start, end, sizes, tuple(problems))

    def _document(
        self,
        attempt: str,
        name: str,
        kind: type[_T],
        sizes: Mapping[str, int],
        problems: list[str],
    ) -> _T | None:
        if name not in sizes:
            return None
        place = f"{attempt}/{name}"
        document = self._read.get(place)
        try:
            if document is None:
                content = self.objects.read(place, _MAX_DOCUMENT_BYTES)
                document = self._read[place] = decoded(content, msgspec.json.Decoder(kind))
        except Exception as error:  # any error of the store's library
            why = error if isinstance(error, UnreadableError) else reason(error)
            problems.append(f"{name} cannot be read: {why}")
        return document  # type: ignore[return-value]


_NAMED = 3  # of many things in a sentence, these are named, and the others only counted


def unknown_delivery(manifest: Manifest, error: StoreError) -> Degradation:
    """Make the degradation for deliveries that the worker could not list.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :param error: the error of the store
    """
    url = manifest.remote
    return _incomplete(
        f"The driver's deliveries to {url} could not be collected ({error}). {location_fix(url)}"
        f"{_later(manifest)}"
    )


def _later(manifest: Manifest) -> str:
    task = manifest.task
    return f" This command collects it later: {collect_command(task)}" if task else ""


def location_fix(url: str) -> str:
    """Give the advice for a capture location that cannot be read or written, as a sentence.

    :param url: the URL of the location or of a folder in it; its scheme decides which package the
        advice names
    """
    package = PACKAGES.get(url.partition(":")[0])
    needed = f"{package} on the worker, and " if package else ""
    return (
        f"[sparklineage] capture_location needs {needed}a connection with which the worker may "
        "read and write there; `airflow sparklineage doctor` tries it."
    )


def undelivered(
    manifest: Manifest,
    others: Sequence[Attempt],
    own: Sequence[Attempt],
    lost: Sequence[str],
    left_out: int,
) -> Iterator[Degradation]:
    """Yield degradations for deliveries that are missing or belong to another application.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :param others: the attempts that are not of the try's application, the earliest first
    :param own: the attempts of the try's application
    :param lost: sentences about delivered files that could not be downloaded
    :param left_out: the number of earlier attempts at which nobody looked
    """
    url = manifest.remote
    foreign = [attempt for attempt in others if attempt.start is not None]
    if foreign:
        yield Degradation(
            DegradationCode.FOREIGN_EVENTS,
            scrub(
                f"{len(foreign)} folder(s) in {url} are of another application than "
                f"{manifest.application_run_id} and were left out: {_attempt_names(foreign)}."
            ),
        )
    if not own:
        yield _nothing_delivered(manifest)
    for attempt in [*(a for a in others if a.start is None), *own]:
        yield from _losses(attempt, f"{url}/{attempt.name}")
    if left_out:
        yield _incomplete(
            f"{left_out} earlier folder(s) of drivers in {url} were left out: only the last "
            f"{_MAX_ATTEMPTS} are looked at."
        )
    if lost:
        yield _incomplete(
            f"Not all that was delivered to {url} could be collected. {' '.join(lost)}"
            f"{_later(manifest)}"
        )


def _nothing_delivered(manifest: Manifest) -> Degradation:
    location, _, name = manifest.remote.rpartition("/")
    try:
        configured = manifest.settings.get("capture_location_in_spark", "")
        driver_url = in_spark(location, configured, name)
    except SettingsError:
        driver_url = manifest.remote
    message = (
        f"No driver delivered anything to {manifest.remote}. Either it made no SparkSession, or it "
        f"could not write there: it calls that folder {driver_url}, which may be on another "
        "file system, or closed to it. Its log has a line that begins with `sparklineage:`, and "
        "`airflow sparklineage doctor --spark-submit` tries whether driver and worker reach the "
        "same folder."
    )
    return Degradation(DegradationCode.DRIVER_ELSEWHERE, scrub(message))


def _losses(attempt: Attempt, url: str) -> Iterator[Degradation]:
    if attempt.problems:
        yield _incomplete(
            f"A driver's delivery to {url} cannot be read: {'; '.join(attempt.problems)}."
        )
    if attempt.start is None:
        if attempt.segments():
            yield _incomplete(f"{url} was left out: by its {START} nobody knows whose it is.")
        return
    if attempt.end is None:
        yield _incomplete(
            f"The driver reported no end ({END}) of its deliveries to {url}: it was killed, or "
            "could not write there any more, so all that it captured after its last delivery is "
            "missing. It delivers after each query that writes, and every 30 s."
        )
    elif attempt.end.errors:
        reasons = "; ".join(attempt.end.errors[:_NAMED])
        yield _incomplete(f"The driver had trouble while it delivered to {url}: {reasons}.")
    if gaps := [_gap(*gap) for gap in attempt.missing()]:
        if len(gaps) > _NAMED:
            gaps[_NAMED:] = [f"{len(gaps) - _NAMED} more gaps"]
        yield _incomplete(
            f"Files that the driver had delivered are not in {url}: {', '.join(gaps)}."
        )


def _gap(kind: str, first: int, last: int) -> str:
    return f"{kind} {first}" if first == last else f"{kind} {first} to {last}"


def _attempt_names(attempts: Sequence[Attempt]) -> str:
    names = [attempt.name for attempt in attempts]
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _incomplete(sentence: str) -> Degradation:
    return Degradation(DegradationCode.DELIVERY_INCOMPLETE, scrub(sentence))


# --- from the folder into a bundle ----------------------------------------------------------------


_FOR_LOOKING, _FOR_WAITING = 0.75, 0.5
_FOR_DOWNLOADING = 0.7  # the rest of the time is for joining the files
MAX_DELIVERED_BYTES = 2 * 1024 * 1024 * 1024
"""The limit on all deliveries of a try: more than merging can read in its time, and too little to
fill a disk."""
_OF_DELIVERY = frozenset(
    {
        DegradationCode.DELIVERY_INCOMPLETE,
        DegradationCode.DRIVER_ELSEWHERE,
        DegradationCode.FOREIGN_EVENTS,
    }
)


class Delivered(Frozen, frozen=True):
    """The state of a try's deliveries.

    :param earlier: the degradations of the try's manifest that are still true after these
        deliveries
    :param degradations: the degradations for files that are missing, could not be downloaded, or
        belong to another application
    :param has_begun: whether a driver of the try's application delivered anything
    :param has_ended: whether the last driver reported that it had delivered all its lines
    :param failed: the name of the class of the exception that ended the last driver's Python; empty
        if there was none, or if it is not known
    :param attempts: the drivers that delivered; empty if the first driver was the only one
    """

    earlier: tuple[Degradation, ...]
    degradations: tuple[Degradation, ...]
    has_begun: bool = False
    has_ended: bool = False
    failed: str = ""
    attempts: tuple[DriverAttempt, ...] = ()

    def without_driver(self, reason: str) -> Delivered:
        """Say of a try to which nothing was delivered that it had no driver.

        :param reason: a sentence on the submission that failed
        """
        other = (d for d in self.degradations if d.code is not DegradationCode.DRIVER_ELSEWHERE)
        return replace(self, degradations=(Degradation(DegradationCode.NO_EVENTS, reason), *other))

    @property
    def is_complete(self) -> bool:
        """Whether the last driver delivered all its files, and all of them were downloaded."""
        codes = {degradation.code for degradation in self.degradations}
        return self.has_ended and DegradationCode.DELIVERY_INCOMPLETE not in codes


def followed(bundle: CaptureBundle) -> Follower | None:
    """Begin to download what the drivers of a try deliver, while its job runs.

    :param bundle: the try's bundle, whose manifest has the URL of the try's folder
    :return: the follower, which :func:`received` has to get; None if nothing is going to be
        delivered, or the worker cannot follow it
    """
    manifest = bundle.manifest
    if not manifest.remote or bundle.path is None:
        return None
    folder = Folder(manifest.remote, manifest.application_run_id)

    download = Download(folder.objects, bundle.path)

    def look() -> Mapping[str, int]:
        return _fitting(_places(folder.own(folder.attempts(), download), download))[0]

    with suppress(RuntimeError):  # there is no thread
        return Follower(download, look)
    return None


def received(
    manifest: Manifest,
    into: Path,
    budget: Budget,
    *,
    waits: bool,
    follower: Follower | None = None,
) -> Delivered:
    """Replace the files of a bundle by the files that the drivers of a try delivered.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :param into: the folder of the bundle
    :param waits: whether to wait, for up to half of the budget, until the last driver reports its
        end
    :param follower: has downloaded some of the files already; it is stopped
    """
    folder = Folder(manifest.remote, manifest.application_run_id)
    waiting = budget.part(_FOR_WAITING) if waits else Budget(lambda: 0)
    gone = Event()
    try:
        attempts = within_budget(
            budget.part(_FOR_LOOKING),
            lambda: folder.awaited(waiting, gone),
            "sparklineage-delivered",
        )
    except StoreError as error:
        return Delivered(_still_true(manifest), (unknown_delivery(manifest, error),))
    finally:
        gone.set()
    own, lost = _download(folder, attempts, into, budget, follower)
    others = [attempt for attempt in attempts if not folder.is_own(attempt)]
    end = own[-1].end if own else None
    return Delivered(
        _still_true(manifest, has_ended=end is not None),
        tuple(undelivered(manifest, others, own, lost, folder.left_out)),
        bool(own),
        end is not None,
        end.failed if end else "",
        _drivers(own),
    )


def _drivers(own: Sequence[Attempt]) -> tuple[DriverAttempt, ...]:
    drivers: list[DriverAttempt] = []
    for attempt in own:
        drivers.append(attempt.as_driver(drivers[-1].number if drivers else 0))
    return tuple(drivers) if drivers and drivers[-1].number > 1 else ()


def _still_true(manifest: Manifest, *, has_ended: bool = False) -> tuple[Degradation, ...]:
    """Give a manifest's degradations without those about deliveries.

    The caller reports the degradations about deliveries anew, from the files that are in the remote
    folder now.

    :param has_ended: whether the driver delivered ``end.json``; then ``application_unfinished`` is
        also left out
    """
    outdated = _OF_DELIVERY
    if has_ended:
        outdated |= {DegradationCode.APPLICATION_UNFINISHED}
    return tuple(d for d in manifest.degradations if d.code not in outdated)


def _download(
    folder: Folder,
    attempts: Sequence[Attempt],
    into: Path,
    budget: Budget,
    follower: Follower | None,
) -> tuple[list[Attempt], list[str]]:
    """Download the segments of the try's application; join them to one file for each kind.

    :param folder: the reader of the try's remote folder
    :param attempts: all attempts in the folder
    :param into: the folder of the bundle, in which these files replace ``events.ndjson`` and
        ``observations.ndjson``
    :param follower: has downloaded some of the segments already
    :return: the attempts of the try's application, and sentences about the segments that could not
        be downloaded
    """
    download = follower.stop() if follower else Download(folder.objects, into)
    own = folder.own(attempts, download)
    try:
        downloading = budget.part(_FOR_DOWNLOADING)
        places, beyond = _fitting(_places(own, download))
        failed = download.fetch(places, downloading)
        if failed:  # the driver may have joined these files meanwhile
            with suppress(StoreError):
                again = within_budget(downloading, folder.attempts, "sparklineage-delivered")
                if again != attempts:
                    own = folder.own(again, download)
                    places, beyond = _fitting(_places(own, download))
                    failed = download.fetch(places, downloading)
        lost = [f"{beyond} file(s) are beyond {MAX_DELIVERED_BYTES} bytes."] if beyond else []
        unread = [f"{name} could not be read ({error})." for name, error in failed.items()]
        if len(unread) > _NAMED:
            unread[_NAMED:] = [f"{len(unread) - _NAMED} more file(s) could not be read either."]
        late = len(places.keys() - download.files.keys() - failed.keys())
        if late:
            unread.append(
                f"{late} of {len(places)} files could not be downloaded in time, of which the "
                "latest were taken first; raise [sparklineage] collect_timeout."
            )
        return own, [*lost, *unread, *download.join(_files(own, download), budget)]
    except OSError as error:
        return own, [f"The worker could not keep it ({error})."]
    finally:
        download.remove()


def _files(own: Sequence[Attempt], download: Download) -> dict[str, str]:
    """Give the segments of some attempts in the order of their lines, each with its whole file."""
    return {
        f"{attempt.name}/{segment.name}": segment.file
        for attempt in own
        for segment in attempt.segments(download.within(attempt.name))
    }


def _places(own: Sequence[Attempt], download: Download) -> dict[str, int]:
    """Give the sizes of the segments of some attempts, by name, the most important first.

    These are the first of each kind, which describe the application as a whole; then the
    latest, because the earlier segments of a job are often of the same tables as the later ones.
    """
    firsts: list[tuple[str, int]] = []
    others: list[tuple[str, int]] = []
    for attempt in own:
        kinds = set()
        for segment in attempt.segments(download.within(attempt.name)):
            place = f"{attempt.name}/{segment.name}", attempt.sizes[segment.name]
            (others if segment.kind in kinds else firsts).append(place)
            kinds.add(segment.kind)
    return dict([*firsts, *reversed(others)])


def _fitting(places: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Give the places whose files are together not too large, and the number of the others."""
    left, fitting = MAX_DELIVERED_BYTES, {}
    for name, size in places.items():
        if size <= left:
            fitting[name] = size
            left -= size
    return fitting, len(places) - len(fitting)
