"""The remote folder of a try: the layout, the files that drivers delivered, and the missing files.

::

    <capture_location>/<name of the bundle>/
        manifest.json                    by the worker: the bundle's manifest
        sending.json                     by the worker: Airflow's part of the try's event
        <attempt>/start.json             by the driver, first: a Start
        <attempt>/events-00001.ndjson    whole lines of the listener's file, in order
        <attempt>/observations-00001.ndjson    the same of the observer's file
        <attempt>/end.json               by the driver, last: an End

Each driver has one folder ``<attempt>``, because YARN and Kubernetes may start a driver again. Its
name is ``<number of the attempt>-<start in ms>-<8 hex digits>``, so that the names sort by time.
Every file appears as a whole or not at all. Files of other names (``.part``, ``.crc``) are ignored.
:mod:`sparklineage_observer.delivery` writes the driver's files.

Everybody that may write to the location can put any file there. So names are checked before they
are used, and the size that is read has a limit. The worker's clock is never compared with the
driver's clock.

:class:`Folder` reads the folder, :func:`received` downloads the delivered files into a bundle, and
:func:`undelivered` reports missing files as degradations.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import field

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS, Frozen
from airflow_provider_sparklineage.spark.capture.bundle import collect_command, in_spark
from airflow_provider_sparklineage.spark.capture.lines import UnreadableError, decoded
from airflow_provider_sparklineage.storage.bounded import StoreError, reason, within_budget
from airflow_provider_sparklineage.storage.objects import Objects, downloaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


START, END, SENDING = "start.json", "end.json", "sending.json"
ATTEMPT = re.compile(r"[0-9]{5}-[0-9]{13}-[0-9a-f]{8}")
# A number has only one form: with leading zeros up to five digits, without them from six digits on.
SEGMENT = re.compile(r"(?P<kind>events|observations)-(?P<number>[0-9]{5}|[1-9][0-9]{5,8})\.ndjson")

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

    def segments(self) -> list[str]:
        """List the names of the attempt's segments in the order in which they were delivered."""
        names = (name for name in self.sizes if SEGMENT.fullmatch(name))
        return sorted(names, key=lambda name: _kind_and_number(name)[::-1])

    def missing(self) -> Iterator[tuple[str, int, int]]:
        """Yield the ranges of missing segments, as (kind, first number, last number).

        ``("events", 2, 4)`` stands for three segments. A segment is missing if a later segment of
        its kind exists, or if ``end.json`` counts it.
        """
        end = self.end.segments if self.end else {}
        for kind in ("events", "observations"):
            before = 0
            for number in [n for k, n in map(_kind_and_number, self.segments()) if k == kind]:
                if number > before + 1:
                    yield kind, before + 1, number - 1
                before = number
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
        return [self._attempt(name) for name in names[-_MAX_ATTEMPTS:]]

    def awaited(self, budget: Budget) -> list[Attempt]:
        """Wait until the last driver has delivered all, or the budget is spent; list the attempts.

        A store may list a file some time after it was written, and may fail once or twice. As long
        as there is no attempt, this method waits for a part of the budget only: a submission that
        failed had no driver, and so will never have an attempt.

        :param budget: the longest time to wait
        :return: all attempts, as :meth:`attempts` lists them
        :raise Exception: any error of the store's library, when the store has failed three times
        """
        pause, failed, beginning = _SHORTEST_PAUSE_S, 0, budget.part(_FOR_BEGINNING)
        while True:
            try:
                attempts = self.attempts()
                waiting = budget if attempts else beginning
                if self._is_whole(attempts) or waiting.is_spent():
                    return attempts
            except Exception:
                failed += 1
                if failed == _TRIES:
                    raise
                self.objects.forget()
            time.sleep(min(pause, max(0.0, budget.left)))
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


def _kind_and_number(name: str) -> tuple[str, int]:
    match = SEGMENT.fullmatch(name)
    assert match is not None  # noqa: S101
    return match["kind"], int(match["number"])


_NAMED = 3  # of many things in a sentence, these are named, and the others only counted
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "apache-airflow-providers-amazon[s3fs]"),
    **dict.fromkeys(("gs", "gcs"), "apache-airflow-providers-google"),
    **dict.fromkeys(("abfs", "abfss", "adl"), "apache-airflow-providers-microsoft-azure"),
}


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
    return f" To collect it later: {collect_command(task)}" if task else ""


def location_fix(url: str) -> str:
    """Give the advice for a capture location that cannot be read or written, as a sentence.

    :param url: the URL of the location or of a folder in it; its scheme decides which package the
        advice names
    """
    package = _PACKAGES.get(url.partition(":")[0])
    needed = f" needs {package} on the worker, and" if package else ""
    return (
        f"[sparklineage] capture_location{needed} a connection with which the worker may read and "
        "write there; `airflow sparklineage doctor` tries it."
    )


def undelivered(
    manifest: Manifest, attempts: Sequence[Attempt], own: Sequence[Attempt], lost: Sequence[str]
) -> Iterator[Degradation]:
    """Yield degradations for deliveries that are missing or belong to another application.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :param attempts: all attempts in the try's folder, the earliest first
    :param own: the attempts of the try's application
    :param lost: sentences about delivered files that could not be downloaded
    """
    url = manifest.remote
    others = [a for a in attempts if a.start is not None and a not in own]
    if others:
        yield Degradation(
            DegradationCode.FOREIGN_EVENTS,
            scrub(
                f"{len(others)} folder(s) in {url} are of another application than "
                f"{manifest.application_run_id} and were left out: {_attempt_names(others)}."
            ),
        )
    if not own:
        yield _nothing_delivered(manifest)
    for attempt in attempts:
        if attempt not in others:
            yield from _losses(attempt, f"{url}/{attempt.name}")
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
_CHUNK = 1024 * 1024
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
    """

    earlier: tuple[Degradation, ...]
    degradations: tuple[Degradation, ...]
    has_begun: bool = False
    has_ended: bool = False
    failed: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the last driver delivered all its files, and all of them were downloaded."""
        codes = {degradation.code for degradation in self.degradations}
        return self.has_ended and DegradationCode.DELIVERY_INCOMPLETE not in codes


def received(manifest: Manifest, into: Path, budget: Budget, *, waits: bool) -> Delivered:
    """Replace the files of a bundle by the files that the drivers of a try delivered.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :param into: the folder of the bundle
    :param waits: whether to wait, for up to half of the budget, until the last driver reports its
        end
    """
    folder = Folder(manifest.remote, manifest.application_run_id)
    waiting = budget.part(_FOR_WAITING) if waits else Budget(lambda: 0)
    try:
        attempts = within_budget(
            budget.part(_FOR_LOOKING), lambda: folder.awaited(waiting), "sparklineage-delivered"
        )
    except StoreError as error:
        return Delivered(_still_true(manifest), (unknown_delivery(manifest, error),))
    own = [attempt for attempt in attempts if folder.is_own(attempt)]
    lost = _download(folder, own, into, budget)
    end = own[-1].end if own else None
    return Delivered(
        _still_true(manifest, has_ended=end is not None),
        tuple(undelivered(manifest, attempts, own, lost)),
        bool(own),
        end is not None,
        end.failed if end else "",
    )


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


def _download(folder: Folder, own: Sequence[Attempt], into: Path, budget: Budget) -> list[str]:
    """Download the segments of some attempts; concatenate them to one file for each kind.

    :param folder: the reader of the try's remote folder
    :param own: the attempts, which belong to the try's application
    :param into: the folder of the bundle, in which these files replace ``events.ndjson`` and
        ``observations.ndjson``
    :return: sentences about the segments that could not be downloaded
    """
    sizes = {f"{a.name}/{name}": a.sizes[name] for a in own for name in a.segments()}
    sums = accumulate(sizes.values())
    fitting = [
        name for name, total in zip(sizes, sums, strict=True) if total <= MAX_DELIVERED_BYTES
    ]
    lost: list[str] = []
    if len(fitting) < len(sizes):
        lost.append(f"{len(sizes) - len(fitting)} file(s) are beyond {MAX_DELIVERED_BYTES} bytes.")
        sizes = {name: sizes[name] for name in fitting}
    left = len(sizes)
    try:
        with _work_folder(into) as work, _work_folder(into) as segments:
            for name, segment in downloaded(folder.objects, sizes, Path(segments), budget):
                left -= 1
                if isinstance(segment, StoreError):
                    lost.append(f"{name} could not be read ({segment}).")
                    continue
                try:
                    _append(segment, Path(work, _file_of(name)))
                except OSError as error:  # no space is left
                    lost.append(f"The worker could not keep {left + 1} file(s) of it ({error}).")
                    left = 0
                    break
            for file in (EVENTS, OBSERVATIONS):
                if (whole := Path(work, file)).exists():
                    whole.replace(into / file)
    except OSError as error:
        return [f"The worker could not keep it ({error})."]
    if len(lost) > _NAMED:
        lost[_NAMED:] = [f"{len(lost) - _NAMED} more file(s) could not be read either."]
    if left:
        lost.append(
            f"{left} of {len(sizes)} files could not be downloaded in time; raise [sparklineage] "
            "collect_timeout."
        )
    return lost


def _work_folder(into: Path) -> tempfile.TemporaryDirectory[str]:
    # Errors of the cleanup are ignored, because a download that hangs may still write to the
    # folder.
    return tempfile.TemporaryDirectory(prefix=".delivered-", dir=into, ignore_cleanup_errors=True)


def _file_of(segment: str) -> str:
    match = SEGMENT.fullmatch(segment.rpartition("/")[2])
    return EVENTS if match and match["kind"] == "events" else OBSERVATIONS


def _append(segment: Path, whole: Path) -> None:
    """Append all the lines of a segment to a file, or none of them; then remove the segment.

    :param segment: the path of the downloaded segment
    :param whole: the path of the file; it is made if it is missing
    :raise OSError: if the disk is full
    """
    with (
        open_regular(segment) as source,
        os.fdopen(os.open(whole, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as target,
    ):
        before = target.seek(0, os.SEEK_END)
        try:
            shutil.copyfileobj(source, target, _CHUNK)
            target.flush()
            end = target.tell()
            if end > before and os.pread(target.fileno(), 1, end - 1) != b"\n":
                target.write(b"\n")  # or two lines would become one
                target.flush()
        except OSError:
            os.ftruncate(target.fileno(), before)
            raise
    segment.unlink()
