"""The archive: every try's merged event in full, one JSON file each.

::

    <archive_url>/<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>.json
    <archive_url>/=unsent/<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>

Each name is percent-encoded, so that a path leads to one try and no name out of the archive. A file
appears complete or not at all: it is written next to its place and moved there. Below ``=unsent``
are marks, empty files: an event that has one is known not to have been sent.

A file is the event, and one key more: ``sending``, which has what Airflow adds to an event that it
sends (:mod:`~airflow_provider_sparklineage.event.sending`). Who reads an event does not get it.

The store can be slow or away. Whatever is asked of it ends within :attr:`Archive.timeout_s`, as an
:exc:`ArchiveError`; what is still under way then is left to itself.

Where no archive is configured, it is a folder below ``AIRFLOW_HOME`` (:class:`OwnFolder`).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import stat
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from msgspec.structs import replace

from airflow_provider_sparklineage.event.stored import stored
from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.ownership import is_own, is_sweep_due
from airflow_provider_sparklineage.storage.bounded import reason, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.document import Event, Written
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity


# --- the folder if no archive is configured -------------------------------------------------------
#
# What it holds is its user's alone, whatever the umask: folders are 0700, files 0600. A folder that
# is another user's is refused. Nothing is imported to write to it, and a file takes a millisecond.


# No name of a DAG begins like this: in theirs all but letters, digits and "_.-~" is encoded.
_SWEPT = "=swept"
RETENTION = timedelta(days=90)
"""Age at which tries delete an event; who wants another one configures an archive."""
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


class OwnFolder(Frozen, frozen=True):
    """A folder of this user."""

    root: Path

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all."""
        self._own()
        file = self.root / name
        try:
            self._write(file, content)
        except FileNotFoundError:  # swept, as it was empty still
            self._write(file, content)

    def _write(self, file: Path, content: bytes) -> None:
        _make(file.parent)
        partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(partial, flags, _PRIVATE_FILE)
        try:
            with os.fdopen(handle, "wb") as stream:
                os.fchmod(handle, _PRIVATE_FILE)
                stream.write(content)
            partial.replace(file)
        except BaseException:  # no space is left, or the task's time is up
            partial.unlink(missing_ok=True)
            raise

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        self._check()
        with open_regular(self.root / name) as stream:
            return stream.read()

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._check()
        (self.root / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """List the files of a folder, none if it is not there."""
        try:
            self._check()
            return [file.name for file in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []

    def walk(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files below a folder, with the time of their last write."""
        with suppress(FileNotFoundError):
            self._check()
            for file, written in _files(self.root / folder):
                yield str(file.relative_to(self.root)), written

    def sweep_at_times(self, *, older_than: timedelta, now: datetime, seconds: float) -> int:
        """Delete what was written longer ago than that, unless it was done within the hour.

        :param seconds: that it may take; what is left then is for another hour
        :return: how many files were deleted
        """
        self._own()
        if not is_sweep_due(self.root / _SWEPT, older_than, now):
            return 0
        return self.sweep(older_than=older_than, now=now, seconds=seconds)

    def sweep(self, *, older_than: timedelta, now: datetime, seconds: float) -> int:
        """Delete what was written longer ago than that, and folders that are empty then."""
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
                        (self.root / folder).rmdir()  # which ends at the first that is not empty
        return removed

    def _own(self) -> None:
        """Make the folder if it is not there, and keep others out of it."""
        _make(self.root)
        if stat.S_IMODE(self._check().st_mode) != _PRIVATE_FOLDER:
            self.root.chmod(_PRIVATE_FOLDER)

    def _check(self) -> os.stat_result:
        status = self.root.stat()  # it may be a link of its user's to a larger disk
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
    """Yield the files below a folder; links are not followed.

    In no order, so that who has no time for all begins with others the next time.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        entries = list(found)
        random.shuffle(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry))
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    modified = entry.stat(follow_symlinks=False).st_mtime
                    yield Path(entry), datetime.fromtimestamp(modified, UTC)


# --- the archive ----------------------------------------------------------------------------------


T = TypeVar("T")

SENDING_KEY = "sending"
UNSENT = "=unsent"  # no name of a DAG has an "=" here: it is encoded
"""Folder of the marks."""

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
    """An event that is kept.

    :param name: of its file, without the suffix
    :param written: when; None if the store does not know
    """

    name: str
    written: datetime | None = None


class Kept(NamedTuple):
    """What is kept of a try.

    :param sending: what Airflow adds; None if the event is not for sending
    """

    event: Event
    sending: dict[str, Any] | None


class Archive(Frozen, frozen=True):
    """An archive below a URL that Airflow's ``ObjectStoragePath`` takes.

    :param url: e.g. ``s3://aws_default@lineage/tasks``, ``file:///mnt/lineage``
    :param timeout_s: how long the store may take over each call
    :param is_default: whether it is the folder that is used if none is configured
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
        """Keep the event of a try, in place of what was kept of it before.

        :param sending: what Airflow adds when it sends the event; None if it is not for sending
        :param is_unsent: whether to mark it as not sent, until :meth:`sent` is called
        :raise ArchiveError: if the store did not take it in time
        """
        name, content = name_of(task), written.text
        if sending is not None:  # the JSON of the event is not made anew
            prefix = json.dumps({SENDING_KEY: sending})[:-1].encode()
            content = b"%b, %b" % (prefix, content[1:])

        def write() -> None:
            store, mark = self._store(), f"{UNSENT}/{name}"
            if is_unsent:
                store.write(mark, b"")
            try:
                store.write(f"{name}{_SUFFIX}", content)
            except OSError:  # a full disk has room for the mark, of which nothing could be sent
                if is_unsent:
                    with suppress(OSError):
                        store.remove(mark)
                raise

        self._bounded(write, "written to")

    def read(self, task: TaskIdentity) -> dict[str, Any]:
        """Give the event of a try.

        :raise ArchiveError: if there is none, or the store did not give it in time
        :raise DocumentError: if what is there cannot be read
        """
        return self.kept(name_of(task)).event

    def kept(self, name: str) -> Kept:
        """Give what is kept under a name; raises as :meth:`read` does."""
        content = self._bounded(lambda: self._store().read(f"{name}{_SUFFIX}"), "read from")
        event = stored(content)
        sending = event.pop(SENDING_KEY, None)
        return Kept(event, sending if isinstance(sending, dict) else None)

    def tries(self, task: TaskIdentity) -> list[int]:
        """List the tries of a task instance that have an event, the earliest first.

        :raise ArchiveError: if the store did not say so in time
        """
        folder = name_of(task).rpartition("/")[0]
        ends = self._bounded(lambda: self._store().names(folder), "read from")
        stems = (end.removesuffix(_SUFFIX) for end in ends if end.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def entries(self, dag_id: str = "", task_id: str = "", run_id: str = "") -> list[Entry]:
        """List what is kept, of one DAG, task or run of it if they are given.

        :raise ArchiveError: if the store did not say so in time
        """
        wanted = [encoded(part) if part else "" for part in (dag_id, run_id, task_id)]
        folder = "/".join(wanted[:2]) if run_id else wanted[0]

        def entries() -> list[Entry]:
            found = []
            for path, written in self._store().walk(folder):
                name = path.removesuffix(_SUFFIX)
                parts = name.split("/")
                if name != path and _is_try(parts) and _fits(parts, wanted):
                    found.append(Entry(name, written))
            return found

        return self._bounded(entries, "read from")

    # --- marks ------------------------------------------------------------------------------------

    @property
    def has_marks(self) -> bool:
        """Whether it is noted here what was not sent.

        Marks are removed in the process that Airflow forks to send an event. The clients of object
        stores do not survive the fork, and would need a connection there that nobody gives them.
        """
        return self.url.startswith(("file://", "local://"))

    def unsent(self) -> list[Entry]:
        """List the events that are known not to have been sent.

        :raise ArchiveError: if the store did not say so in time
        """
        if not self.has_marks:
            return []

        def entries() -> list[Entry]:
            found = self._store().walk(UNSENT)
            marks = ((path.removeprefix(f"{UNSENT}/"), written) for path, written in found)
            return [Entry(name, at) for name, at in marks if _is_try(name.split("/"))]

        return self._bounded(entries, "read from")

    def sent(self, task: TaskIdentity) -> None:
        """Note that the event of a try was sent.

        :raise ArchiveError: if the store did not take it in time
        """
        self.unmark(name_of(task))

    def mark(self, name: str) -> None:
        """Mark an event as not sent; raises as :meth:`sent` does."""
        if self.has_marks:
            self._bounded(lambda: self._store().write(f"{UNSENT}/{name}", b""), "written to")

    def unmark(self, name: str) -> None:
        """Remove the mark of an event; raises as :meth:`sent` does."""
        if self.has_marks:
            self._bounded(lambda: self._store().remove(f"{UNSENT}/{name}"), "written to")

    # --- time -------------------------------------------------------------------------------------

    def sweep_at_times(self, *, older_than: timedelta, now: datetime) -> int:
        """Delete old events, now and then and only in the default archive; return how many files.

        :raise ArchiveError: if that took longer than the store may take
        """
        store = self._store()
        if not isinstance(store, OwnFolder):
            return 0

        def sweep() -> int:
            return store.sweep_at_times(older_than=older_than, now=now, seconds=_SWEEP_S)

        return self._bounded(sweep, "swept")

    def within(self, timeout_s: float) -> Archive:
        """Give the same archive, asked for at most so long."""
        return replace(self, timeout_s=min(self.timeout_s, timeout_s))

    def _store(self) -> OwnFolder | Objects:
        if self.is_default:
            return OwnFolder(Path(self.url.removeprefix("file://")))
        return Objects(self.url)

    def _bounded(self, action: Callable[[], T], what: str) -> T:
        try:
            return within(self.timeout_s, action, "sparklineage-archive")
        except Exception as error:
            cause, why = error, reason(error, self.timeout_s)
        problem = f"The archive {self.url} could not be {what} ({why})."
        fix = "See [sparklineage] archive_url."
        if self.is_default:
            fix = "Set [sparklineage] archive_url to another one, or to none."
        raise ArchiveError(problem, fix) from cause


def archive_of(settings: Settings, timeout_s: float = 10.0) -> Archive | None:
    """Give the archive that is in force, if there is one."""
    if not settings.archive_url:
        return None
    return Archive(settings.archive_url, timeout_s, settings.archive_is_default)


def name_of(task: TaskIdentity) -> str:
    """Give the name under which the event of a try is kept."""
    parts = (task.dag_id, task.run_id, task.task_id, str(task.map_index))
    return "/".join((*map(encoded, parts), str(task.try_number)))


def task_of(name: str) -> TaskIdentity | None:
    """Give the try of which an event is kept under a name; the inverse of :func:`name_of`.

    :return: None if it is none's, or has a name that was too long to be in it
    """
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

    parts = name.split("/")
    if not _is_try(parts) or not _MAP_INDEX.fullmatch(parts[3]) or len(parts[4]) > _MAX_DIGITS:
        return None
    if any(_SHORTENED.fullmatch(part) for part in parts):
        return None
    dag_id, run_id, task_id = (unquote(part, errors="surrogatepass") for part in parts[:3])
    return TaskIdentity(dag_id, task_id, run_id, int(parts[4]), int(parts[3]))


def _is_try(parts: list[str]) -> bool:
    return len(parts) == _PARTS and parts[0] != UNSENT and parts[-1].isdecimal()


def _fits(parts: list[str], wanted: list[str]) -> bool:
    return all(not one or part == one for part, one in zip(parts, wanted, strict=False))


def encoded(name: str) -> str:
    """Make a name of a path out of any text; of a very long one, its start and a checksum."""
    text = quote(name.encode("utf-8", "surrogatepass"), safe="")
    if not text.strip("."):  # which would be the folder itself, or the one above
        text = text.replace(".", "%2E") or "%"
    if len(text) > _MAX_NAME:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        text = f"{text[:_KEPT]}~{digest}"
    return text
