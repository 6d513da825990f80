"""The store: facts and tables in Parquet files, and a manifest that says which of them count.

::

    <store>/manifest.json                 the generation that is in force
    <store>/lock.json                     who builds
    <store>/facts/<build>/*.parquet       facts that came with a build; they are only added to
    <store>/generations/<build>/*.parquet the tables that were made of all facts
    <store>/marks/*.json                  what of the sources was read
    <store>/tmp/                          what a build has on disk while it runs

A build writes new files and then, in one step, the manifest that names them: readers see the
generation before it or the one after it. Whatever the manifest does not name is not there. Folders
that no manifest names any more are removed an hour later, as somebody may still read them; those of
an interrupted build, by the next one.

A store is a folder of this machine, or below a URL of Airflow's. It has one writer at a time, by a
lock file that says who, renewed for as long as it writes.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta  # msgspec resolves datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from airflow_provider_sparklineage.history.tables import VERSION
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.storage.bounded import reason
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


MANIFEST, FACTS, GENERATIONS, MARKS = "manifest.json", "facts", "generations", "marks"
"""The file in a store, and its folders of facts, tables and marks."""


class Retired(Struct, frozen=True):
    """A folder that is in no generation any more, and since when; readers may still be in it."""

    folder: str
    at: datetime


class Manifest(Struct, frozen=True):
    """A generation of the history.

    :param version: of the tables, :data:`.tables.VERSION`
    :param generation: its number, one more with each build
    :param facts: the files of each part of the facts, by the part's name
    :param tables: the files of each table, relative to the store
    :param rows: how many rows each table has, and ``events`` how many there are of facts
    :param marks: the file that says what of the sources was read; empty if there is none
    :param skipped: how often something was skipped in all builds, by reason
    :param since: what is older was forgotten, and does not count if it comes again
    """

    version: int
    generation: int
    built_at: datetime
    facts: dict[str, list[str]]
    tables: dict[str, list[str]]
    rows: dict[str, int]
    skipped: dict[str, int] = {}
    marks: str = ""
    retired: tuple[Retired, ...] = ()
    since: datetime | None = None

    def folders(self) -> set[str]:
        """List the folders of all of its files."""
        named = (*self.facts.values(), *self.tables.values())
        return {"/".join(name.split("/")[:2]) for files in named for name in files}

    def text(self) -> bytes:
        """Give it as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1)


def empty_manifest(at: datetime) -> Manifest:
    """Give the manifest of a store in which nothing is yet."""
    return Manifest(VERSION, 0, at, {}, {}, {})


def parsed_manifest(text: bytes) -> Manifest:
    """Read a manifest; raises :exc:`msgspec.MsgspecError` if it is none."""
    return msgspec.json.decode(text, type=Manifest)


GRACE = timedelta(hours=1)
"""How long the files of a generation outlive it."""


class Building:
    """A generation that is being written, by whom the store's lock belongs to.

    :param scratch: an empty folder of this machine, which is removed afterwards
    """

    def __init__(
        self, store: Store, lock: Lock, scratch: Path, now: Callable[[], datetime]
    ) -> None:
        self.store = store
        self.scratch = scratch
        self.before = store.manifest
        self.now = now
        self._lock = lock
        name = f"{self.before.generation + 1:06}-{scratch.name[:12]}"
        self.facts_part = name
        self.facts_folder = f"{FACTS}/{name}"
        self.tables_folder = f"{GENERATIONS}/{name}"
        self._marks_file = f"{MARKS}/{name}.json"

    def put(self, folder: str, files: Sequence[Path]) -> list[str]:
        """Bring files of this machine to a folder of the store; give their names there."""
        names = [f"{folder}/{file.name}" for file in files]
        for name, file in zip(names, files, strict=True):
            self.store.files.put(name, file)
        return names

    def publish(
        self,
        facts: Mapping[str, Sequence[str]],
        tables: Mapping[str, Sequence[str]],
        rows: Mapping[str, int],
        skipped: Mapping[str, int],
        marks: Mapping[str, str] | None = None,
        since: datetime | None = None,
    ) -> Manifest:
        """Put a generation in force, and remove what nobody can read any more.

        :param facts: files of all parts that count from now on, by part
        :param tables: files of each table
        :param skipped: in this build, by reason
        :param marks: what of the sources was read; None: as before
        :param since: what is older is forgotten; None: as before
        :raise HistoryError: if somebody else took over; nothing is changed then
        """
        before, at = self.before, self.now()
        manifest = Manifest(
            version=VERSION,
            generation=before.generation + 1,
            built_at=at,
            facts={part: list(files) for part, files in facts.items()},
            tables={name: list(files) for name, files in tables.items()},
            rows=dict(rows),
            skipped=self._total(skipped),
            marks=before.marks if marks is None else self._marked(marks),
            since=since or before.since,
        )
        gone = sorted(before.folders() - manifest.folders())
        fresh = (one for one in before.retired if at - one.at <= GRACE)
        retired = (*fresh, *(Retired(folder, at) for folder in gone))
        manifest = msgspec.structs.replace(manifest, retired=retired)
        self._put_in_force(manifest)
        return manifest

    def note(self, marks: Mapping[str, str], skipped: Mapping[str, int]) -> None:
        """Keep what of the sources was read, where that had nothing new; the generation stays."""
        if marks != self.marks:
            changed = {"marks": self._marked(marks), "skipped": self._total(skipped)}
            self._put_in_force(msgspec.structs.replace(self.before, **changed))

    def since(self, keep: timedelta | None) -> datetime | None:
        """Give from when on events count, if all are to be forgotten that are older than this."""
        known = self.before.since
        if keep is None:
            return known
        return max(self.now() - keep, known) if known else self.now() - keep

    @property
    def marks(self) -> dict[str, str]:
        """What of the sources the builds before have read."""
        if not self.before.marks:
            return {}
        return msgspec.json.decode(self.store.files.read(self.before.marks), type=dict[str, str])

    def _marked(self, marks: Mapping[str, str]) -> str:
        if not marks:
            return ""
        self.store.files.write(self._marks_file, msgspec.json.encode(marks))
        return self._marks_file

    def _total(self, skipped: Mapping[str, int]) -> dict[str, int]:
        before = self.before.skipped
        names = sorted({*before, *skipped})
        return {name: before.get(name, 0) + skipped.get(name, 0) for name in names}

    def _put_in_force(self, manifest: Manifest) -> None:
        self._lock.check()
        self.store.files.write(MANIFEST, manifest.text())
        self._sweep(manifest)

    def _sweep(self, manifest: Manifest) -> None:
        """Remove the folders of old generations, and of builds that were interrupted."""
        files = self.store.files
        kept = manifest.folders() | {one.folder for one in manifest.retired} | {manifest.marks}
        for top in (FACTS, GENERATIONS, MARKS):
            for name in files.names(top):
                if f"{top}/{name}" not in kept:
                    files.remove(f"{top}/{name}")


_LOCAL = ("file", "local")

SCRATCH = "tmp"
"""The folder of what builds have on disk while they run."""


class Files(Protocol):
    """What a store asks of a place; names are relative to it, with ``/`` between."""

    def read(self, name: str) -> bytes:
        """Give what a file holds; raises :exc:`FileNotFoundError`."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all, in place of one that is there."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; whether it was written."""

    def put(self, name: str, file: Path) -> None:
        """Bring a file there; it may be moved away from where it is."""

    def local(self, name: str) -> Path:
        """Give a file as one of this machine."""

    def names(self, folder: str) -> list[str]:
        """List what is in a folder, nothing if it is not there."""

    def remove(self, name: str) -> None:
        """Delete a file or a folder with all in it, if it is there."""

    def scratch(self) -> Path:
        """Make an empty folder of this machine, for files that are put there later."""


class Folder:
    """A folder of this machine, or mounted there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        return (self.root / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file next to its place, and move it there."""
        partial = self._partial(name, content)
        partial.replace(self.root / name)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file next to its place, and link it there, which fails where there is one."""
        partial = self._partial(name, content)
        try:
            (self.root / name).hardlink_to(partial)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def put(self, name: str, file: Path) -> None:
        """Move a file there."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)

    def local(self, name: str) -> Path:
        """Give the file itself."""
        return self.root / name

    def names(self, folder: str) -> list[str]:
        """List what is in a folder."""
        try:
            return [path.name for path in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Delete a file or a folder."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def scratch(self) -> Path:
        """Make a folder on the same disk, so that files are moved and not copied."""
        folder = self.root / SCRATCH / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def _partial(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
        partial.write_bytes(content)
        return partial


class Remote:
    """Files that Airflow keeps elsewhere; what is read of them is kept here, as none ever changes.

    Not every such store can write a file only where there is none: two who start in the same
    instant notice it by what is there afterwards.
    """

    def __init__(self, url: str) -> None:
        self._objects = Objects(url)
        self._here = Path(tempfile.mkdtemp(prefix="sparklineage-history-"))

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        return self._objects.read(name)

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        self._objects.write(name, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none, and look whether it is still this one."""
        folder, _, last = name.rpartition("/")
        if last in self._objects.names(folder) or not self._objects.create(name, content):
            return False
        return self._objects.read(name) == content

    def put(self, name: str, file: Path) -> None:
        """Upload a file."""
        self._objects.upload(name, file)

    def local(self, name: str) -> Path:
        """Give a copy."""
        copy = self._here / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            partial = copy.with_name(f"{copy.name}.{uuid.uuid4().hex}.part")
            self._objects.download(name, partial)
            partial.replace(copy)
        return copy

    def names(self, folder: str) -> list[str]:
        """List what is in a folder."""
        return self._objects.names(folder)

    def remove(self, name: str) -> None:
        """Delete a file or a folder."""
        self._objects.remove_folder(name)

    def scratch(self) -> Path:
        """Make a folder where this machine keeps what is temporary."""
        return Path(tempfile.mkdtemp(dir=self._here))

    def __del__(self) -> None:
        shutil.rmtree(self._here, ignore_errors=True)


def files_of(url: str) -> Files:
    """Give the files of a path, or below a URL that Airflow's ``ObjectStoragePath`` takes."""
    parts = urlsplit(url)
    if "://" not in url:
        return Folder(Path(url).absolute())
    if parts.scheme in _LOCAL:
        return Folder(Path(unquote(parts.path)))
    return Remote(url)


LOCK = "lock.json"
STALE = timedelta(minutes=5)
"""Whose lock was not renewed for so long does not write any more."""
_RENEWED_S = 30.0
_WAIT = "Wait for it; if it does not move for five minutes, the next build takes its place."


class Owner(Struct, frozen=True):
    """Who writes, since when, and when that was last known."""

    host: str
    pid: int
    token: str
    at: datetime
    since: datetime | None = None

    def is_gone(self, now: datetime) -> bool:
        """Whether this one does not write any more."""
        return now - self.at > STALE or (
            self.host == socket.gethostname() and not _is_running(self.pid)
        )

    def __str__(self) -> str:
        known = f"process {self.pid} on {self.host}"
        since = f" since {_time_text(self.since)}" if self.since else ""
        return f"{known}{since}, last seen {_time_text(self.at)} UTC"


class Lock:
    """The right to write to a store, of one writer at a time; a context.

    On a disk a file is created by a link, which fails where there is one; S3 has a condition for
    that. On another object store two who start in the same instant may both have the lock: the one
    whose file is there in the end goes on, as both look before they publish.

    Who lost it, because it slept for longer than :data:`STALE`, must not publish what it made:
    :meth:`check` says so.
    """

    def __init__(self, files: Files, now: Callable[[], datetime]) -> None:
        self._files = files
        self._now = now
        self._token = uuid.uuid4().hex
        self._since = now()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._take(LOCK)
        threading.Thread(target=self._renew, daemon=True, name="sparklineage-history").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with suppress(OSError, HistoryError):
            self.check()
            self._files.remove(LOCK)

    def check(self) -> None:
        """Raise a :exc:`HistoryError` if somebody else has the lock now."""
        if self._found(self._token) is None:
            problem = "Another build has taken over this store, as this one did not move for long."
            raise HistoryError(problem, "What the other one builds is whole. Build again after it.")

    def _take(self, name: str) -> None:
        """Create a lock, or take it over from who is gone.

        Of several who find it so, one takes it over: each needs a lock whose name has the token of
        who is gone, and only with that in hand looks again whether the lock is still that one's.
        """
        if self._files.create(name, self._text()):
            return
        owner = self._owner(name)
        if owner is None or not owner.is_gone(self._now()):
            raise _held(owner)
        above = f"{name}.{owner.token}"
        self._take(above)
        try:
            if self._owner(name) != owner:
                raise _held(self._owner(name))
            self._files.write(name, self._text())
        finally:
            self._files.remove(above)

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            with suppress(OSError):
                if self._found(self._token) is None:
                    return
                self._files.write(LOCK, self._text())

    def _found(self, token: str) -> Owner | None:
        owner = self._owner(LOCK)
        return owner if owner is not None and owner.token == token else None

    def _owner(self, name: str) -> Owner | None:
        """Give who has a lock; None if it is free, or nobody can tell."""
        try:
            text = self._files.read(name)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(text, type=Owner)
        except msgspec.MsgspecError:
            return _NOBODY

    def _text(self) -> bytes:
        return msgspec.json.encode(
            Owner(socket.gethostname(), os.getpid(), self._token, self._now(), self._since)
        )


_NOBODY = Owner("", 0, "unreadable", datetime.min.replace(tzinfo=UTC))
"""Who has a lock whose text is none."""


def _held(owner: Owner | None) -> HistoryError:
    who = f", by {owner}" if owner else ""
    return HistoryError(f"The history is being built already{who}.", _WAIT)


def _time_text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


def utc_now() -> datetime:
    """Give the time of this machine."""
    return datetime.now(UTC)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


_OWN = (MANIFEST, LOCK, FACTS, GENERATIONS, MARKS, SCRATCH, ".")
_FIX_BUILD = "Build it: sparklineage history build SOURCE… --store URL."


class Store:
    """A history that is kept.

    :param url: a path, or a URL that Airflow's ``ObjectStoragePath`` takes
    """

    def __init__(self, url: str, now: Callable[[], datetime] = utc_now) -> None:
        self.url = url
        self.files: Files = files_of(url)
        self._now = now

    @classmethod
    def open(cls, url: str) -> Store:
        """Give a store that is there.

        :raise HistoryError: if there is none, or this version cannot read it
        """
        store = cls(url)
        if (manifest := store.manifest).generation == 0:
            problem = f"There is no history at {scrub(url)}."
            raise HistoryError(problem, _FIX_BUILD)
        if manifest.version < VERSION:
            problem = f"The history at {scrub(url)} is of an older version, {manifest.version}."
            raise HistoryError(problem, f"{_FIX_BUILD} That makes its tables anew of its facts.")
        return store

    @classmethod
    def create(cls, url: str) -> Store:
        """Give a store to build in, whether there is one yet or not."""
        return cls(url)

    @property
    def manifest(self) -> Manifest:
        """The generation that is in force now; number 0, if nothing was built yet.

        :raise HistoryError: if it cannot be read, or a newer version of this package wrote it
        """
        try:
            found = parsed_manifest(self.files.read(MANIFEST))
        except FileNotFoundError:
            return empty_manifest(self._now())
        except (OSError, msgspec.MsgspecError) as error:
            problem = f"The history at {scrub(self.url)} cannot be read ({reason(error)})."
            fix = "Remove its manifest.json and build it from the archive."
            raise HistoryError(problem, fix) from error
        if found.version > VERSION:
            problem = f"The history at {scrub(self.url)} is of version {found.version}, newer than "
            problem += f"what this airflow-provider-sparklineage reads ({VERSION})."
            raise HistoryError(problem, "Install the newer one here, too.")
        return found

    def local(self, names: Iterable[str]) -> list[str]:
        """Give files of the store as files of this machine."""
        return [str(self.files.local(name)) for name in names]

    @contextmanager
    def building(self) -> Iterator[Building]:
        """Keep other writers out, while what is given is used to write a generation.

        :raise HistoryError: if somebody else builds, or other things are in the folder
        """
        self._refuse_others()
        with Lock(self.files, self._now) as lock:
            self._tidy()
            scratch = self.files.scratch()
            try:
                yield Building(self, lock, scratch, self._now)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _refuse_others(self) -> None:
        """Refuse to make a folder of events a store: its events would not be looked for again."""
        others = [name for name in self.files.names("") if not name.startswith(_OWN)]
        if others and self.manifest.generation == 0:
            problem = f"There are other files at {scrub(self.url)}: {some(sorted(others), 3)}."
            raise HistoryError(problem, "Give the history a folder of its own: --store URL.")

    def _tidy(self) -> None:
        """Remove what those left who were killed; of locks, those by which one was taken over."""
        for name in self.files.names(SCRATCH):
            self.files.remove(f"{SCRATCH}/{name}")
        for name in self.files.names(""):
            # What somebody writes now who wants the lock, too, ends with .part.
            if name.startswith(f"{MANIFEST}.") or (
                name.startswith(f"{LOCK}.") and not name.endswith(".part")
            ):
                self.files.remove(name)


def is_store(*names: Collection[str]) -> bool:
    """Whether a folder is a store, or becomes one just now, by the names of what is in it."""
    found = {name for some in names for name in some}
    return {MANIFEST, GENERATIONS} <= found or {LOCK, SCRATCH} <= found
