"""The store: facts and tables in Parquet files, and a manifest that names the files in force.

::

    <store>/manifest.json                 the generation that is in force
    <store>/lock.json                     the owner of the lock: the process that builds
    <store>/facts/<build>/*.parquet       the facts that a build added
    <store>/generations/<build>/*.parquet the files of the tables that a build wrote
    <store>/marks/*.json                  the parts of the sources that were read
    <store>/incoming/*.json               events of tasks that have ended, until a build merges them
    <store>/tmp/                          temporary files of a running build

A build writes new files and then, in one step, the manifest that names them. So a reader sees
either the generation before the build or the one after it. A file that the manifest does not name
is not part of the store. A file never changes: a build writes only files with rows that are new or
changed, and names the other files of the generation before again. If a new manifest no longer names
a file, a build at least an hour later removes the file, because a reader may still use it until
then. The next build removes the folder of an interrupted build.

A store is a folder of this machine, or a folder below a URL that Airflow can open. It has one
writer at a time: a lock file names the writer, and the writer renews the lock for as long as the
build runs.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import uuid
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta  # msgspec resolves datetime
from functools import partial, wraps
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta, Struct

from airflow_provider_sparklineage.history.tables import VERSION
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import HistoryError, SparkLineageError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.storage.bounded import StoreError, reason, remedy
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    Method = TypeVar("Method", bound=Callable[..., Any])


Time = Annotated[datetime, Meta(tz=True)]

MANIFEST, FACTS, GENERATIONS, MARKS = "manifest.json", "facts", "generations", "marks"
"""Names in a store: of the manifest's file, and of the folders of facts, tables and marks."""
INCOMING = "incoming"
"""Name of the folder of the events that tasks deliver; see :mod:`.incoming`."""


class Retired(Struct, frozen=True, rename={"name": "folder"}):
    """A file that the manifest has not named since ``at``; readers may still use the file.

    :param name: name of the file; or of a folder, if the manifest names no file in it
    """

    name: str
    at: Time

    @property
    def folder(self) -> str:
        """The folder of the build that wrote the file."""
        return _folder(self.name)


def _folder(name: str) -> str:
    """Give the folder of the build that wrote a file, e.g. ``facts/000001-3f2a``."""
    return "/".join(name.split("/")[:2])


class Piece(Struct, frozen=True):
    """A file of a table, and which rows of the table are in it.

    :param rows: number of its rows
    :param start: text of the time from which on rows are in the file, up to the start of the next
        piece of the bucket; ``-infinity`` for the first one. A null time counts as ``infinity``
    :param bucket: number of the bucket; see :attr:`Layout.buckets`
    """

    file: str
    rows: int
    start: str
    bucket: int = 0


class Layout(Struct, frozen=True):
    """How the rows of the tables are divided among files, so that a build can rewrite a few files.

    A bucket has the datasets from its start up to the start of the next bucket. Tables that are not
    :attr:`.tables.Table.is_by_dataset` have one bucket. The rows of a bucket are divided by time.

    :param spread: the number of buckets that the number of accesses asked for
    :param buckets: for each bucket, the text (:func:`.pieces.key`) of its first dataset
    :param pieces: the files of each table, by name of the table
    """

    spread: int
    buckets: list[str]
    pieces: dict[str, list[Piece]]

    def files(self) -> set[str]:
        """Give the names of the files of the tables, relative to the store."""
        return {piece.file for pieces in self.pieces.values() for piece in pieces}


class Manifest(Struct, frozen=True):
    """A generation of the history (a version of all its tables): the content of ``manifest.json``.

    :param version: version of the tables, :data:`.tables.VERSION`
    :param generation: number of the generation, one more with each build
    :param facts: names of the files of facts, relative to the store, by the name of their part; a
        part is the files that one build wrote
    :param tables: names of the files of each table, by name of the table
    :param rows: number of rows of each table; the key ``events`` has the number of facts
    :param marks: name of the file with the marks of the sources; empty if there is none
    :param skipped: number of texts and files that all builds have skipped, by reason
    :param retired: files that are no longer named, and will be removed
    :param since: time before which events were forgotten; builds ignore such old events if a source
        has them again. None if no event was forgotten
    :param layout: which rows the files of the tables have; None if nothing is known of it, so that
        the next build has to make the tables anew
    """

    version: int
    generation: int
    built_at: Time
    facts: dict[str, list[str]]
    tables: dict[str, list[str]]
    rows: dict[str, int]
    skipped: dict[str, int] = {}
    marks: str = ""
    retired: tuple[Retired, ...] = ()
    since: Time | None = None
    layout: Layout | None = None

    def files(self) -> set[str]:
        """Give the files of facts and tables."""
        named = (*self.facts.values(), *self.tables.values())
        return {name for names in named for name in names}

    def folders(self) -> set[str]:
        """Give the folders that contain the files of facts and tables."""
        return set(map(_folder, self.files()))


GRACE = timedelta(hours=1)
"""How long a file is kept after the manifest has stopped naming it."""


class Building:
    """The next generation (version of all tables) of a store, which a build is writing.

    The build holds the store's lock.

    :param scratch: an empty folder of this machine, which the store removes after the build
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
        self.numbers = count()
        """Numbers for the names of files, each given once."""

    def put(self, folder: str, files: Sequence[Path]) -> list[str]:
        """Move files of this machine into a folder of the store; give their names in the store."""
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
        layout: Layout | None = None,
    ) -> Manifest:
        """Write the manifest of the new generation, and remove files that no reader can use.

        :param facts: names of the files of all parts of the facts in this generation, by name of
            the part
        :param tables: names of the files of each table, by name of the table
        :param rows: number of rows of each table; the key ``events`` has the number of facts
        :param skipped: number of texts and files that this build has skipped, by reason
        :param marks: the marks of the sources; None takes over those of the generation before
        :param since: forget events that are older; None takes over the time of the generation
            before
        :param layout: which rows the files of the tables have, if that is known
        :return: the new manifest
        :raise HistoryError: if another build took the lock over; no manifest is written then
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
            layout=layout,
        )
        folders = before.folders() - manifest.folders()
        gone = {name if _folder(name) not in folders else _folder(name)
                for name in before.files() - manifest.files()}  # fmt: skip
        fresh = [one for one in before.retired if at - one.at <= GRACE]
        retired = (*fresh, *(Retired(name, at) for name in sorted(gone)))
        manifest = msgspec.structs.replace(manifest, retired=retired)
        self._lock.check()
        # Before the manifest forgets them: if this build is killed here, the next one removes them.
        for one in set(before.retired).difference(fresh):
            self.store.files.remove(one.name)
        self._put_in_force(manifest)
        return manifest

    def note(self, marks: Mapping[str, str], skipped: Mapping[str, int]) -> None:
        """Store how far the sources were read, after a build that found no new events.

        The generation keeps its number. Nothing is written if the marks are the same.

        :param marks: the read position in each file, as text (:class:`.sources.Mark`), by its place
        :param skipped: number of the skipped parts, by reason
        """
        if marks != self.marks:
            changed = {"marks": self._marked(marks), "skipped": self._total(skipped)}
            self._put_in_force(msgspec.structs.replace(self.before, **changed))

    def since(self, keep: timedelta | None) -> datetime | None:
        """Give the time before which events are forgotten; None if no event is forgotten.

        :param keep: the age at which events are forgotten; None takes over the time of the
            generation before. The time never moves back.
        """
        known = self.before.since
        if keep is None:
            return known
        return max(self.now() - keep, known) if known else self.now() - keep

    @property
    def marks(self) -> dict[str, str]:
        """The marks that earlier builds made, by the files' places; see :class:`.sources.Mark`.

        If the file is missing or damaged, there are none: the build reads all sources again, and an
        event that is read twice counts once.
        """
        if not self.before.marks:
            return {}
        try:
            text = self.store.files.read(self.before.marks)
            return msgspec.json.decode(text, type=dict[str, str])
        except (FileNotFoundError, msgspec.MsgspecError):
            return {}

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
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        self.store.files.write(MANIFEST, text)
        self._sweep(manifest)

    def _sweep(self, manifest: Manifest) -> None:
        """Remove folders without any file that is needed, e.g. those of interrupted builds."""
        files = self.store.files
        used = manifest.folders() | {one.folder for one in manifest.retired} | {manifest.marks}
        for top in (FACTS, GENERATIONS, MARKS):
            for name in files.names(top):
                if f"{top}/{name}" not in used:
                    files.remove(f"{top}/{name}")


_LOCAL_SCHEMES = ("file", "local")

SCRATCH = "tmp"
"""The folder for temporary files of running builds."""


class Folder:
    """The files of a store in a folder of this machine, or in one that is mounted there.

    The name of a file is its path below the folder of the store: ``facts/<build>/….parquet``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes:
        """Give the content of a file; raises :exc:`FileNotFoundError` if the file is absent."""
        with open_regular(self.root / name) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it; no reader sees only a part of the new content.

        A temporary file in the same folder is written, and then renamed.
        """
        self._partial(name, content).replace(self.root / name)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it exists; return whether it was written.

        A temporary file is written, and the file is made as a hard link to it; making the link
        fails if the file exists.
        """
        partial = self._partial(name, content)
        try:
            (self.root / name).hardlink_to(partial)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def put(self, name: str, file: Path) -> None:
        """Move a file into the folder of the store; its path below the folder is ``name``."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)

    def local(self, name: str) -> Path:
        """Give the path of a file of the store; raises :exc:`OSError` if it cannot be opened."""
        # An engine would wait for the writer of a pipe, and would say of a file that this user may
        # not read that it is absent.
        with open_regular(self.root / name):
            return self.root / name

    def names(self, folder: str) -> list[str]:
        """List the names in a folder; [] if the folder is absent."""
        try:
            return [path.name for path in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its content, if it exists."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def scratch(self) -> Path:
        """Make a folder on the same disk as the store, so that :meth:`put` need not copy files."""
        folder = self.root / SCRATCH / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def _partial(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
        partial.write_bytes(content)
        return partial


def _with_os_errors(method: Method) -> Method:
    """Turn errors of a store's library, e.g. for missing credentials, into an :exc:`OSError`."""

    @wraps(method)
    def call(*args: Any) -> Any:
        try:
            return method(*args)
        except OSError:
            raise
        except Exception as error:
            raise StoreError(reason(error)) from error

    return call  # type: ignore[return-value]


class Remote:
    """The files of a store below a URL that Airflow's ``ObjectStoragePath`` can open.

    The name of a file is its path below this URL: ``facts/<build>/….parquet``.

    The method :meth:`local` downloads a file once and then uses the copy, because files of facts
    and tables never change. Not every object store can refuse to write a file that exists. So
    :meth:`create` reads the file again: if two builds create it at the same instant, the build
    whose content is not in the file has failed.
    """

    def __init__(self, url: str) -> None:
        self._objects = Objects(url)
        self._here = Path(tempfile.mkdtemp(prefix="sparklineage-history-"))

    @_with_os_errors
    def read(self, name: str) -> bytes:
        """Give the content of a file; raises :exc:`FileNotFoundError` if the file is absent."""
        return self._objects.read(name)

    @_with_os_errors
    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it; no reader sees only a part of the new content."""
        self._objects.write(name, content)

    @_with_os_errors
    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it exists; return whether it has this content after that."""
        folder, _, last = name.rpartition("/")
        if last in self._objects.names(folder) or not self._objects.create(name, content):
            return False
        return self._objects.read(name) == content

    @_with_os_errors
    def put(self, name: str, file: Path) -> None:
        """Upload a file to the store; its path below the store's URL is ``name``."""
        self._objects.upload(name, file)

    @_with_os_errors
    def local(self, name: str) -> Path:
        """Give the path of a copy on this machine; download the file if there is none."""
        copy = self._here / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            partial = copy.with_name(f"{copy.name}.{uuid.uuid4().hex}.part")
            self._objects.download(name, partial)
            partial.replace(copy)
        return copy

    @_with_os_errors
    def names(self, folder: str) -> list[str]:
        """List the names in a folder; [] if the folder is absent."""
        return self._objects.names(folder)

    @_with_os_errors
    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its content, if it exists."""
        self._objects.remove_folder(name)

    def scratch(self) -> Path:
        """Make a folder in the folder for temporary files of this machine."""
        return Path(tempfile.mkdtemp(dir=self._here))

    def __del__(self) -> None:
        shutil.rmtree(self._here, ignore_errors=True)


Files = Folder | Remote
"""The operations on a store's files; names are relative to the store, with ``/`` in them."""


def local_path(url: str) -> Path | None:
    """Give the path on this machine that a path or a ``file:`` URL names; None for other URLs.

    :raise HistoryError: if it is neither a path nor a URL
    """
    if "://" not in url:
        return Path(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _no_url(url) from error
    path = unquote(parts.path)
    if not parts.scheme or "\0" in path:
        raise _no_url(url)
    return Path(path) if parts.scheme in _LOCAL_SCHEMES else None


def _no_url(url: str) -> HistoryError:
    return HistoryError(f"{url} is no URL.", "Give a path, or a URL such as s3://bucket/folder.")


LOCK = "lock.json"
STALE = timedelta(minutes=5)
"""If the owner of a lock has not renewed it for this time, the owner counts as gone."""
_AHEAD = timedelta(days=1)
"""The clock of another machine may be ahead by this; else its lock would hold until that day."""
_RENEWED_S = 30.0
_WAIT = "Wait for it; if it does not move for five minutes, the next build takes its place."


class Owner(Struct, frozen=True):
    """The process that holds a lock.

    :param token: random text that identifies the build
    :param at: when the lock was last renewed
    :param since: when the build began
    """

    host: str
    pid: int
    token: str
    at: datetime
    since: datetime | None = None

    def is_gone(self, now: datetime) -> bool:
        """Whether the lock is stale, or the process ran on this machine and has ended.

        :param now: the present time; the lock is stale if it was not renewed for :data:`STALE`, or
            is from a day in the future
        """
        return not -_AHEAD < now - self.at <= STALE or (
            self.host == socket.gethostname() and not _is_running(self.pid)
        )

    def __str__(self) -> str:
        known = f"process {self.pid} on {self.host}"
        since = f" since {_time_text(self.since)}" if self.since else ""
        return f"{known}{since}, last seen {_time_text(self.at)} UTC"


def _held(owner: Owner | None) -> HistoryError:
    who = f", by {owner}" if owner else ""
    return HistoryError(f"The history is being built already{who}.", _WAIT)


def _time_text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


class Lock:
    """The right to write to a store, for one writer at a time; a context manager.

    :param name: name of the lock's file
    :param held: makes the error for a lock that another process holds, of the owner of the lock if
        that is known

    On a disk, the lock file is created by a link, which fails if the file exists. S3 can write a
    file on the condition that it does not exist. On other object stores, two builds that start at
    the same instant may both get the lock: both check before they publish, and only the build that
    the lock file names goes on.

    A build that slept for longer than :data:`STALE` may have lost the lock, and must not publish:
    :meth:`check` raises then.
    """

    def __init__(
        self,
        files: Files,
        now: Callable[[], datetime],
        name: str = LOCK,
        held: Callable[[Owner | None], SparkLineageError] = _held,
    ) -> None:
        self._files = files
        self._now = now
        self._name = name
        self._held = held
        self._token = uuid.uuid4().hex
        self._since = now()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._take(self._name)
        threading.Thread(target=self._renew, daemon=True, name="sparklineage-history").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with suppress(OSError, HistoryError):
            self.check()
            self._files.remove(self._name)

    def check(self) -> None:
        """Check that this build still has the lock.

        :raise HistoryError: if another build has taken the lock over
        """
        if not self._is_mine():
            problem = "Another build has taken over this store, as this one did not move for long."
            raise HistoryError(
                problem, "The store of the other build is whole. Build again after it."
            )

    def _take(self, name: str) -> None:
        """Create a lock, or take it over from an owner that is gone.

        If several builds find that the owner is gone, only one build takes the lock over. Each of
        them first takes a second lock, whose name has the token of the old owner, and then checks
        that the first lock still has the same owner.

        :param name: name of the lock's file in the store
        :raise HistoryError: if another build has the lock
        """
        if self._files.create(name, self._text()):
            return
        owner = self._owner(name)
        if owner is None or not owner.is_gone(self._now()):
            raise self._held(owner)
        above = f"{name}.{owner.token}"
        self._take(above)
        try:
            if self._owner(name) != owner:
                raise self._held(self._owner(name))
            self._files.write(name, self._text())
        finally:
            self._files.remove(above)

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            with suppress(OSError, HistoryError):
                if not self._is_mine():
                    return
                self._files.write(self._name, self._text())

    def _is_mine(self) -> bool:
        owner = self._owner(self._name)
        return owner is not None and owner.token == self._token

    def _owner(self, name: str) -> Owner | None:
        """Read the owner from the lock file ``name``; None if the file is absent.

        If the file cannot be parsed, the owner is :data:`_NOBODY`, whose time is so old that the
        lock is stale.

        :raise HistoryError: if the file cannot be read, so that its owner is not known
        """
        try:
            text = self._files.read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"The lock {name} cannot be read ({reason(error)})."
            raise HistoryError(problem, "If it is no file, remove it.") from error
        try:
            return msgspec.json.decode(text, type=Owner)
        except msgspec.MsgspecError:
            return _NOBODY

    def _text(self) -> bytes:
        return msgspec.json.encode(
            Owner(socket.gethostname(), os.getpid(), self._token, self._now(), self._since)
        )


_NOBODY = Owner("", 0, "unreadable", datetime.min.replace(tzinfo=UTC))
"""The owner of a lock file that cannot be parsed."""


_utc_now = partial(datetime.now, UTC)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


_OWN = (MANIFEST, LOCK, FACTS, GENERATIONS, MARKS, INCOMING, SCRATCH, ".")
_FIX_BUILD = "Build it: sparklineage history build SOURCE… --store URL."


class Store:
    """A history in files, below one folder or URL.

    :param url: a path, or a URL that Airflow's ``ObjectStoragePath`` can open
    :raise HistoryError: if it is neither, or the path is not in UTF-8
    """

    def __init__(self, url: str, now: Callable[[], datetime] = _utc_now) -> None:
        self.url = url
        path = local_path(url)
        if path is not None:
            path = path.absolute()
            try:
                str(path).encode()
            except UnicodeEncodeError as error:
                problem = f"{path} is no text in UTF-8, and DuckDB opens no such path."
                fix = "Name another folder; if this one is in UTF-8, set PYTHONUTF8=1."
                raise HistoryError(problem, fix) from error
        self.files: Files = Remote(url) if path is None else Folder(path)
        self._now = now

    @classmethod
    def open(cls, url: str) -> Store:
        """Open an existing store.

        :raise HistoryError: if there is no store, or this version of the package cannot read it
        """
        store = cls(url)
        if (manifest := store.manifest).generation == 0:
            problem = f"There is no history at {scrub(url)}."
            raise HistoryError(problem, _FIX_BUILD)
        if manifest.version < VERSION:
            problem = f"The history at {scrub(url)} is of an older version, {manifest.version}."
            raise HistoryError(problem, f"{_FIX_BUILD} That makes its tables anew of its facts.")
        return store

    @property
    def manifest(self) -> Manifest:
        """The manifest that is in force now; its generation is 0 if no build has ended yet.

        :raise HistoryError: if the manifest cannot be read, or a newer version of this package
            wrote it
        """
        try:
            text = self.files.read(MANIFEST)
        except FileNotFoundError:
            return Manifest(VERSION, 0, self._now(), {}, {}, {})
        except OSError as error:
            problem = f"The history at {scrub(self.url)} cannot be read ({reason(error)})."
            raise HistoryError(problem, remedy(error)) from error
        try:
            manifest = msgspec.json.decode(text, type=Manifest)
        except msgspec.MsgspecError as error:
            if _is_of_others(text):
                problem = (
                    f"{scrub(self.url)} is no history: its manifest.json is of something else."
                )
                raise HistoryError(problem, "Name the folder of a history: --store URL.") from error
            problem = f"The history at {scrub(self.url)} cannot be read ({reason(error)})."
            fix = "Remove its manifest.json and build it from the archive."
            raise HistoryError(problem, fix) from error
        if manifest.version > VERSION:
            problem = f"The history at {scrub(self.url)} is of version {manifest.version}, newer "
            problem += f"than this airflow-provider-sparklineage reads ({VERSION})."
            raise HistoryError(problem, "Install the newer one here, too.")
        return manifest

    def local(self, names: Iterable[str]) -> list[str]:
        """Give the paths of files of the store; for a store at a URL, of copies on this machine."""
        return [str(self.files.local(name)) for name in names]

    @contextmanager
    def building(self) -> Iterator[Building]:
        """Lock the store for a build, and give the build the next generation to write.

        A generation is a version of all tables.

        :raise HistoryError: if another build runs, the folder has files that do not belong to a
            store, or nothing can be written there
        """
        with ExitStack() as held:
            try:
                self._refuse_others()
                lock = held.enter_context(Lock(self.files, self._now))
                self._tidy()
                scratch = self.files.scratch()
            except OSError as error:
                problem = f"The history at {scrub(self.url)} cannot be built ({reason(error)})."
                raise HistoryError(problem, remedy(error)) from error
            held.callback(shutil.rmtree, scratch, ignore_errors=True)
            yield Building(self, lock, scratch, self._now)

    def _refuse_others(self) -> None:
        """Refuse to make a store in a folder that has other files.

        The other files may be events. Later builds would mistake the folder for a store, and would
        not read these events.
        """
        others = [name for name in self.files.names("") if not name.startswith(_OWN)]
        if others and self.manifest.generation == 0:
            problem = f"There are other files at {scrub(self.url)}: {some(sorted(others), 3)}."
            raise HistoryError(problem, "Give the history a folder of its own: --store URL.")

    def _tidy(self) -> None:
        """Remove the files that killed builds have left: temporary files, and second locks.

        A build creates a second lock to take the lock over (:meth:`Lock._take`).
        """
        for name in self.files.names(SCRATCH):
            self.files.remove(f"{SCRATCH}/{name}")
        for name in self.files.names(""):
            # Another process that tries to get the lock may be writing a .part file now.
            if name.startswith(f"{MANIFEST}.") or (
                name.startswith(f"{LOCK}.") and not name.endswith(".part")
            ):
                self.files.remove(name)


def _is_of_others(manifest: bytes) -> bool:
    """Whether a text is JSON without a key that each manifest of a history has."""
    try:
        return "generation" not in msgspec.json.decode(manifest, type=dict[str, Any])
    except msgspec.MsgspecError:
        return False


def is_store(*names: Collection[str]) -> bool:
    """Whether a folder is a store, or the first build of a store is running in it.

    :param names: the names in the folder, in one or several lists, e.g. of files and of folders
    """
    there = {name for some in names for name in some}
    return {MANIFEST, GENERATIONS} <= there or {LOCK, SCRATCH} <= there
