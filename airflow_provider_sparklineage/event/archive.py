"""The archive: every try's merged event in full, one JSON file each.

::

    <archive_url>/<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>.json
    <archive_url>/=unsent/<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>
    <archive_url>/=answered/<dag_id>/<task_id>/<map_index>

Each name is percent-encoded, so that each path leads to one try, and no name leads out of the
archive. A file appears complete or not at all: it is written next to its place and moved there. The
files below ``=unsent`` are empty; each of them is a mark, which says that the event of the try was
not sent. A file with a large event is compressed by gzip, which its first bytes tell. A file below
``=answered`` has the time in which the backend answered the last event of a task, for the limit of
the next event (:class:`~airflow_provider_sparklineage.model.representation.Answered`).

A file holds the event with one more key, ``sending``: the facets and the time that Airflow adds to
an event when it sends it (:mod:`~airflow_provider_sparklineage.event.sending`).
:meth:`Archive.read` gives the event without that key.

The store can be slow or unreachable. Each call ends within :attr:`Archive.timeout_s`, with an
:exc:`ArchiveError` if the store did not answer.

If no archive is configured, the archive is a folder below ``AIRFLOW_HOME`` (:class:`OwnFolder`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import stat
import time
import zlib
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.event.stored import stored
from airflow_provider_sparklineage.model.exceptions import ArchiveError, DocumentError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_MAX_EVENT_BYTES,
    MAX_KEPT_BYTES,
    Answered,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.ownership import is_own, is_sweep_due, modified
from airflow_provider_sparklineage.storage.bounded import reason, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.document import Event, Written
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity


# --- the folder if no archive is configured -------------------------------------------------------
#
# Only its user can read it, whatever the umask: folders are 0700, files 0600. A folder of another
# user is refused.


# No folder of a DAG begins with "=": all characters but letters, digits and "_.-~" are encoded.
_SWEPT = "=swept"
RETENTION = timedelta(days=90)
"""The events of this folder are deleted at this age; a configured archive keeps its events."""
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


class OwnFolder(Objects, frozen=True):
    """A folder of this machine that only this user can enter."""

    @property
    def root(self) -> Path:
        """The path of the folder."""
        return Path(self.url.removeprefix("file://"))

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all.

        :param name: path of the file below the folder; missing folders are made
        :param content: the full content of the file
        """
        self.make_private()
        file = self.root / name
        _make(file.parent)
        try:
            super().write(name, content)
        except FileNotFoundError:  # another process swept the folder, which was still empty
            _make(file.parent)
            super().write(name, content)
        file.chmod(_PRIVATE_FILE)

    def _place(self, name: str) -> tuple[Any, str]:
        with suppress(FileNotFoundError):
            self._check()
        return super()._place(name)

    def sweep(self, *, older_than: timedelta, now: datetime, seconds: float) -> int:
        """Delete the files older than ``older_than``, and the folders that are empty after that.

        Files directly in the folder stay.

        :param now: the current time, with a time zone
        :param seconds: time limit; files that are left after it are deleted by the next sweep
        :return: number of deleted files
        """
        until = time.monotonic() + seconds
        removed = 0
        for file, written in _files(self.root):
            if time.monotonic() > until:
                break
            if now - written > older_than and file.parent != self.root:
                with suppress(OSError):  # another process sweeps as well
                    file.unlink()
                    removed += 1
                    for folder in file.relative_to(self.root).parents[:-1]:
                        (self.root / folder).rmdir()  # the first that is not empty ends the loop
        return removed

    def make_private(self) -> None:
        """Make the folder if it does not exist, and let only its user enter it."""
        _make(self.root)
        if stat.S_IMODE(self._check().st_mode) != _PRIVATE_FOLDER:
            self.root.chmod(_PRIVATE_FOLDER)

    def _check(self) -> os.stat_result:
        status = self.root.stat()  # not lstat: the user may have linked it to a larger disk
        if not is_own(status, stat.S_IFDIR):
            msg = f"{self.root} is no folder of this user (its owner has the id {status.st_uid})"
            raise PermissionError(msg)
        return status


def _make(folder: Path) -> None:
    try:
        folder.mkdir(_PRIVATE_FOLDER)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make(folder.parent)
        _make(folder)
        return
    folder.chmod(_PRIVATE_FOLDER)


def _files(folder: Path) -> Iterator[tuple[Path, datetime]]:
    """Yield the files below a folder, with the times of their last writes; follow no links.

    The order is random, so that a sweep that runs out of time begins with other files the next
    time.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as scan:
        entries = list(scan)
        random.shuffle(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry))
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    yield Path(entry), modified(entry.stat(follow_symlinks=False))


# --- the archive ----------------------------------------------------------------------------------


T = TypeVar("T")

SENDING_KEY = "sending"
UNSENT = "=unsent"  # differs from each DAG's folder, where "=" is encoded
"""Folder of the marks, one for each event that was not sent."""
_ANSWERED = "=answered"
"""Folder of the times of answers, one for each task and map index."""
NO_EVENTS = (UNSENT, _ANSWERED, _SWEPT)
"""How the names of files and folders of the archive begin that have no events."""

_SUFFIX = ".json"
_PARTS = 5
# File systems end at 255 bytes, and a run id may have 250 characters of up to 12 bytes each.
_MAX_NAME = 200
_KEPT = 160
_SHORTENED = re.compile(rf".{{{_KEPT}}}~[0-9a-f]{{32}}")
_MAX_DIGITS = 9
_MAP_INDEX = re.compile(rf"-1|\d{{1,{_MAX_DIGITS}}}", re.ASCII)
_SWEEP_S = 1.0  # once an hour


class Entry(NamedTuple):
    """An event of the archive.

    :param name: path of its file below the archive, without the suffix
    :param written: time of the last write; None if the store does not know it
    """

    name: str
    written: datetime | None = None


class ArchivedEvent(NamedTuple):
    """The event of a try, and the part that Airflow adds when it sends the event.

    :param sending: Airflow's part; None if the event is not for sending
    """

    event: Event
    sending: dict[str, Any] | None


class Archive(Frozen, frozen=True):
    """An archive below a URL that Airflow's ``ObjectStoragePath`` takes.

    :param url: e.g. ``s3://aws_default@lineage/tasks``, ``file:///mnt/lineage``
    :param timeout_s: time limit of the store for each call, in seconds
    :param is_default: whether it is the folder that is used if no archive is configured
    """

    url: str
    timeout_s: float = 10.0
    is_default: bool = False

    def write(
        self,
        task: TaskIdentity,
        written: Written,
        sending: dict[str, Any] | None = None,
        *,
        is_unsent: bool = False,
    ) -> None:
        """Write the event of a try; it replaces an earlier event of the same try.

        :param task: the try
        :param written: the event, with its JSON
        :param sending: the part that Airflow adds when it sends the event; None if the event is
            not for sending
        :param is_unsent: whether to mark the event as not sent, until :meth:`unmark` is called
        :raise ArchiveError: if the store did not take it in time
        """
        name, content = name_of(task), content_of(written, sending)

        def write() -> None:
            store, mark = self._store(), f"{UNSENT}/{name}"
            if is_unsent:
                store.write(mark, b"")
            try:
                store.write(f"{name}{_SUFFIX}", content)
            except OSError:  # a full disk may have taken the mark, which has no event to send now
                if is_unsent:
                    with suppress(OSError):
                        store.remove(mark)
                raise

        self._bounded(write, "written to")

    def read(self, task: TaskIdentity) -> dict[str, Any]:
        """Give the event of the try ``task``, without the key ``sending``.

        :raise ArchiveError: if there is no event, or the store did not give it in time
        :raise DocumentError: if the file cannot be read as an event
        """
        return self.archived(name_of(task)).event

    def archived(self, name: str) -> ArchivedEvent:
        """Give an event and Airflow's part of it; raise the errors of :meth:`read`.

        :param name: the event's name, as :attr:`Entry.name` has it
        """
        file = f"{name}{_SUFFIX}"
        content = self._bounded(lambda: self._store().read(file, MAX_BYTES + 1), "read from")
        event = stored(unpacked(content))
        sending = event.pop(SENDING_KEY, None)
        return ArchivedEvent(event, sending if isinstance(sending, dict) else None)

    def tries(self, task: TaskIdentity) -> list[int]:
        """List the numbers of a task instance's tries that have an event, in ascending order.

        :param task: any try of the task instance
        :raise ArchiveError: if the store did not list them in time
        """
        folder = name_of(task).rpartition("/")[0]
        ends = self._bounded(lambda: self._store().names(folder), "read from")
        stems = (end.removesuffix(_SUFFIX) for end in ends if end.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def entries(self, dag_id: str = "", task_id: str = "", run_id: str = "") -> list[Entry]:
        """List the events of the archive, or only those of the DAG, task and run with these ids.

        An empty id stands for all; a run's id needs its DAG's.

        :raise ArchiveError: if the store did not list them in time
        """
        ids = [encoded(part) if part else "" for part in (dag_id, run_id, task_id)]
        folder = "/".join(ids[:2]) if run_id else ids[0]

        def entries() -> list[Entry]:
            listed = []
            for path, written in self._store().walk(folder):
                name = path.removesuffix(_SUFFIX)
                parts = name.split("/")
                fits = all(not id_ or part == id_ for part, id_ in zip(parts, ids, strict=False))
                if name != path and _is_try(parts) and fits:
                    listed.append(Entry(name, written))
            return listed

        return self._bounded(entries, "read from")

    # --- marks ------------------------------------------------------------------------------------

    @property
    def has_marks(self) -> bool:
        """Whether this archive marks the events that were not sent; only a local folder does.

        A mark is removed in the process that Airflow forks to send the event. The client of an
        object store does not survive the fork, and that process has no connection of Airflow's to
        make a new client with.
        """
        return self.url.startswith(("file://", "local://"))

    @property
    def folder(self) -> Path | None:
        """The archive's folder on this machine; None if it is in an object store."""
        return Path(self.url.partition("://")[2]) if self.has_marks else None

    def unsent(self) -> list[Entry]:
        """List the events that are known not to have been sent; [] in an archive without marks.

        The time in an entry is that of the event's mark.

        :raise ArchiveError: if the store did not list them in time
        """
        if not self.has_marks:
            return []

        def entries() -> list[Entry]:
            walked = self._store().walk(UNSENT)
            marks = ((path.removeprefix(f"{UNSENT}/"), written) for path, written in walked)
            return [Entry(name, at) for name, at in marks if _is_try(name.split("/"))]

        return self._bounded(entries, "read from")

    def mark(self, name: str) -> None:
        """Mark an event as not sent, if :attr:`has_marks`; raise the errors of :meth:`unmark`.

        :param name: the event's name, as :attr:`Entry.name` has it
        """
        if self.has_marks:
            self._bounded(lambda: self._store().write(f"{UNSENT}/{name}", b""), "written to")

    def unmark(self, name: str) -> None:
        """Remove the mark of an event, because it was sent.

        :param name: the event's name, as :attr:`Entry.name` has it
        :raise ArchiveError: if the store did not do so in time
        """
        if self.has_marks:
            self._bounded(lambda: self._store().remove(f"{UNSENT}/{name}"), "written to")

    # --- times of answers -------------------------------------------------------------------------

    def answered(self, name: str) -> Answered | None:
        """Give the time in which the backend answered the last event of a task; never raises.

        :param name: name of an event of the task, as :attr:`Entry.name` has it
        :return: None if it is not known; always in an archive without marks
        """
        folder = self.folder
        if folder is None:
            return None

        def read() -> bytes:  # not by Airflow's paths, whose import would delay the job
            with open_regular(folder / _answered_name(name)) as file:
                return file.read(_MAX_ANSWERED_BYTES)

        try:
            return _ANSWERED_DECODER.decode(within(self.timeout_s, read, "sparklineage-archive"))
        except Exception:  # there is none, or it is of another version
            return None

    def note_answered(self, name: str, answered: Answered | None) -> None:
        """Keep the time of an answer for the next event of its task, if :attr:`has_marks`.

        :param name: name of the event, as :attr:`Entry.name` has it
        :param answered: None to forget the time
        :raise ArchiveError: if the store did not do so in time
        """
        if not self.has_marks:
            return
        place = _answered_name(name)

        def write() -> None:
            if answered is None:
                self._store().remove(place)
            else:
                self._store().write(place, msgspec.json.encode(answered))

        self._bounded(write, "written to")

    # --- time -------------------------------------------------------------------------------------

    def sweep_at_times(self, *, older_than: timedelta, now: datetime) -> int:
        """Delete events older than ``older_than`` from the default archive, at most once an hour.

        :param now: the current time, with a time zone
        :return: number of deleted files; 0 in a configured archive
        :raise ArchiveError: if the store did not do so in time
        """
        store = self._store()
        if not isinstance(store, OwnFolder):
            return 0

        def sweep() -> int:
            store.make_private()
            if not is_sweep_due(store.root / _SWEPT, older_than, now):
                return 0
            return store.sweep(older_than=older_than, now=now, seconds=_SWEEP_S)

        return self._bounded(sweep, "swept")

    def place(self, task: TaskIdentity) -> str:
        """Give the URL of the file of a try's event."""
        return f"{self.url.rstrip('/')}/{name_of(task)}{_SUFFIX}"

    def within(self, timeout_s: float) -> Archive:
        """Give the same archive with a time limit of at most ``timeout_s`` seconds."""
        return replace(self, timeout_s=min(self.timeout_s, timeout_s))

    def _store(self) -> Objects:
        return OwnFolder(self.url) if self.is_default else Objects(self.url)

    def _bounded(self, action: Callable[[], T], verb: str) -> T:
        try:
            return within(self.timeout_s, action, "sparklineage-archive")
        except Exception as error:
            cause, why = error, reason(error, self.timeout_s)
        problem = f"The archive {self.url} could not be {verb} ({why})."
        fix = "See [sparklineage] archive_url."
        if self.is_default:
            fix = "Set [sparklineage] archive_url to another one, or to none."
        raise ArchiveError(problem, fix) from cause


def archive_of(settings: Settings, timeout_s: float = 10.0) -> Archive | None:
    """Give the archive of the settings; None if they switch it off.

    :param timeout_s: time limit of the store for each call, in seconds
    """
    if not settings.archive_url:
        return None
    return Archive(settings.archive_url, timeout_s, settings.archive_is_default)


MAX_BYTES = MAX_KEPT_BYTES + 8 * 1024 * 1024
"""The most bytes of JSON in a file: those of a kept event, and of the part that Airflow adds. No
more are read, because a small compressed file could fill the reader's memory."""
GZIP = b"\x1f\x8b"
"""The first bytes of a compressed file, with which no JSON begins."""


def content_of(written: Written, sending: dict[str, Any] | None) -> bytes:
    """Give the content of an event's file; the parameters are those of :meth:`Archive.write`.

    It is compressed if the event has more bytes than are usually sent.
    """
    text = written.text
    if sending is not None:
        # A prefix, because to encode a large event again takes long.
        prefix = json.dumps({SENDING_KEY: sending})[:-1].encode()
        text = b"%b, %b" % (prefix, text[1:])
    if len(written.text) <= DEFAULT_MAX_EVENT_BYTES:
        return text
    # Not the slowest level, for a few per cent; without a time, so that an event has one content.
    return gzip.compress(text, compresslevel=6, mtime=0)


def unpacked(content: bytes) -> bytes:
    """Give the JSON of an event's file, whether or not it is compressed.

    :raise DocumentError: if it is damaged, or has more than :data:`MAX_BYTES` of JSON
    """
    text, is_whole = content, True
    if content.startswith(GZIP):
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            text = unpacking.decompress(content, MAX_BYTES + 1)
        except zlib.error as error:
            msg = f"The stored lineage is damaged and cannot be read ({error})."
            raise DocumentError(msg) from error
        is_whole = unpacking.eof
    if len(text) > MAX_BYTES:
        msg = f"The stored lineage has more than {MAX_BYTES:,} bytes, so it is not read."
        raise DocumentError(msg)
    if not is_whole:
        msg = "The stored lineage is damaged and cannot be read (it ends too early)."
        raise DocumentError(msg)
    return text


def name_of(task: TaskIdentity) -> str:
    """Give the name of a try's event in the archive.

    The name is ``<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>``, with encoded ids.

    :param task: the try
    """
    parts = (task.dag_id, task.run_id, task.task_id, str(task.map_index))
    return "/".join((*map(encoded, parts), str(task.try_number)))


def task_of(name: str) -> TaskIdentity | None:
    """Give the try whose event has this name; the inverse of :func:`name_of`.

    :return: None if it is not the name of a try's event, or if an id in it was shortened, because
        the full id is not known then
    """
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

    parts = name.split("/")
    if not _is_try(parts) or not _MAP_INDEX.fullmatch(parts[3]) or len(parts[4]) > _MAX_DIGITS:
        return None
    if any(_SHORTENED.fullmatch(part) for part in parts):
        return None
    dag_id, run_id, task_id = (unquote(part, errors="surrogatepass") for part in parts[:3])
    return TaskIdentity(dag_id, task_id, run_id, int(parts[4]), int(parts[3]))


_MAX_ANSWERED_BYTES = 1024
_ANSWERED_DECODER = msgspec.json.Decoder(Answered)


def _answered_name(name: str) -> str:
    dag_id, _, task_id, map_index, _ = name.split("/")
    return f"{_ANSWERED}/{dag_id}/{task_id}/{map_index}"


def _is_try(parts: list[str]) -> bool:
    return len(parts) == _PARTS and parts[0] != UNSENT and parts[-1].isdecimal()


def encoded(name: str) -> str:
    """Encode a text as one name of a path; shorten a long one to its start and a checksum."""
    text = quote(name.encode("utf-8", "surrogatepass"), safe="")
    if not text.strip("."):  # "." would be the folder itself, ".." the one above it
        text = text.replace(".", "%2E") or "%"
    if len(text) > _MAX_NAME:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        text = f"{text[:_KEPT]}~{digest}"
    return text
