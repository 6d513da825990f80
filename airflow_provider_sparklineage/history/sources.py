"""Where events are: files, folders, archives, bundles, here or at a URL; and all to lines of facts.

A source gives pieces: what is new in one file (:class:`FilePiece`, of :class:`LocalFiles`;
:class:`RemotePiece`, of :class:`RemoteFiles`) or in a capture bundle (:class:`BundlePiece`). A
piece gives documents (:class:`Documents`), and then a mark (:class:`Mark`): the next build goes on
there. :class:`Reading` makes lines of facts of all of them, with counts of what was skipped. To add
a source, give objects with the two methods of :class:`Source` and :class:`Piece`. Only what the
user named is an error where it cannot be had; a file below that which cannot be read is counted,
and tried again by the next build.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from airflow_provider_sparklineage.event.archive import UNSENT, task_of
from airflow_provider_sparklineage.history.facts import Skipped, Try, facts_of
from airflow_provider_sparklineage.history.store import Store, is_store
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import SparkLineageError, UnusableInputError
from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST, OBSERVATIONS
from airflow_provider_sparklineage.storage.bounded import reason
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    from airflow_provider_sparklineage.history.facts import Line


class Skip(StrEnum):
    """Why something of a source gives no event; events are skipped for :class:`.facts.Reason`."""

    TORN_LINE = "torn_line"
    """The last line of a file is not complete: the next build reads it."""
    TORN_FILE = "torn_file"
    """A compressed file ends too early, or is damaged; what was before that is read."""
    TOO_LARGE = "too_large"
    """A line or document is longer than :data:`MAX_BYTES`."""
    OTHER_FILE = "other_file"
    """A file below a folder has no name of one with events: ``.json``, ``.ndjson``, ``.jsonl``."""
    UNREADABLE = "unreadable"
    """A file cannot be opened or fetched; the next build tries again."""
    UNUSABLE_BUNDLE = "unusable_bundle"
    """A capture bundle cannot be merged."""


class Document(NamedTuple):
    """One document of JSON: an event, if all is well.

    :param of: the try that it is of, where its place says so
    """

    text: bytes
    of: Try | None = None


class Piece(Protocol):
    """What is new in one file.

    :param place: what its mark is kept by: an absolute path, or a URL
    :param source: what the tables say it was read from: as the user named it
    :param mark: how far it was read, once all documents were taken; empty if it is to be read again
    """

    place: str
    source: str
    mark: str

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give what is new; add to the counts what is not given."""
        ...


class Source(Protocol):
    """Something with events that a user named."""

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Give what is new in each file, in the order of their names.

        :param known: marks by places, of the build before
        :raise UnusableInputError: if the source is not there, or cannot be listed
        """
        ...


MAX_BYTES = 64 * 1024 * 1024
"""Of one event; they are in memory one at a time."""
SUFFIXES = (".json", ".ndjson", ".jsonl")
"""Of files with events in folders; each may be followed by ``.gz``."""

_OF_LINES = (".ndjson", ".jsonl")
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write


def has_events(name: str) -> bool:
    """Whether a file's name is one of a file with events."""
    return name.removesuffix(".gz").endswith(SUFFIXES)


class Readable(Protocol):
    """A stream: a file, or what unpacks one."""

    def readline(self, size: int = -1, /) -> bytes:
        """Give the rest of the line, or its first bytes."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes."""
        ...


class Documents:
    """The documents of a stream, from where it stands: one a line, one over many lines, or arrays.

    What a file is, its content says: OpenLineage's file transport appends lines to files of any
    name. If its first line is a JSON value, each line is one; else all of the file is. Files that
    are named ``.ndjson`` or ``.jsonl`` have lines in any case.

    :param is_of_lines: whether its name says that each line is a document
    :param skipped: counts are added to it
    """

    def __init__(self, stream: Readable, skipped: Counter[str], *, is_of_lines: bool) -> None:
        self._stream, self._skipped, self._is_of_lines = stream, skipped, is_of_lines
        self.taken = 0
        """Bytes of complete lines that were read; 0 if the file is one document."""

    def __iter__(self) -> Iterator[bytes]:
        line = self._stream.readline(MAX_BYTES + 1)
        if self._is_of_lines or _is_json(line):
            yield from self._lines(line)
        elif line:
            yield from self._whole(line)

    def _lines(self, line: bytes) -> Iterator[bytes]:
        while line:
            if not line.endswith(b"\n"):
                if len(line) > MAX_BYTES:
                    line = self._passed(line)
                    continue
                if not _is_json(line):  # its writer is at it, or was killed
                    self._skipped[Skip.TORN_LINE] += not line.isspace()
                    return
            self.taken += len(line)
            if not line.isspace():
                yield from _split(line)
            line = self._stream.readline(MAX_BYTES + 1)

    def _passed(self, line: bytes) -> bytes:
        """Pass a line that is too long; give the one after it."""
        self._skipped[Skip.TOO_LARGE] += 1
        while line and not line.endswith(b"\n"):
            self.taken += len(line)
            line = self._stream.readline(MAX_BYTES)
        self.taken += len(line)
        return self._stream.readline(MAX_BYTES + 1)

    def _whole(self, start: bytes) -> Iterator[bytes]:
        text = start + self._stream.read(MAX_BYTES + 1 - len(start))
        if len(text) > MAX_BYTES:
            self._skipped[Skip.TOO_LARGE] += 1
        elif not text.isspace():
            yield from _split(text)


def is_of_lines(name: str) -> bool:
    """Whether a file's name says that it has a document in each line."""
    return name.removesuffix(".gz").endswith(_OF_LINES)


def _is_json(text: bytes) -> bool:
    try:
        _RAW.decode(text.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return False
    return True


def _split(text: bytes) -> Iterator[bytes]:
    """Give the elements of an array; any other text as it is, whose reader may count it."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if text.lstrip()[:1] == b"[":
        try:
            yield from map(bytes, _ARRAY.decode(text))
        except (ValueError, RecursionError):
            pass
        else:
            return
    yield text


_TAIL = 1024
_FIELDS = 4


class Mark(NamedTuple):
    """How far a file was read: what it was like then, and the byte after the last complete line.

    A file that has the size and the time of its mark is not opened. One that has grown is read on
    from there, if what is before that byte is what was there: a log that was rotated or a document
    that was written anew begins again. What is read twice is counted once, by its checksum.

    :param size: of the file, in bytes
    :param modified: when it was written last, in nanoseconds since the epoch
    :param offset: where the next build goes on; 0 if it begins again
    :param tail: checksum of what is before that
    """

    size: int
    modified: int
    offset: int = 0
    tail: str = ""

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parsed(cls, text: str | None) -> Mark | None:
        """Read a mark; None if there is none, or it is of another version."""
        size, modified, offset, tail = (*(text or "").split("."), *[""] * _FIELDS)[:_FIELDS]
        if not (size.isdecimal() and modified.isdecimal() and offset.isdecimal()):
            return None
        return cls(int(size), int(modified), int(offset), tail)

    def is_of(self, size: int, modified: int) -> bool:
        """Whether nothing has changed since."""
        return (self.size, self.modified) == (size, modified)


def tail_of(stream: IO[bytes], offset: int) -> str:
    """Give the checksum of the last KB before an offset."""
    start = max(0, offset - _TAIL)
    stream.seek(start)
    return blake2b(stream.read(offset - start), digest_size=8).hexdigest()


def start_of(stream: IO[bytes], known: Mark | None, size: int) -> int:
    """Give where to begin in a file, by its mark."""
    if known is None or not known.offset or known.offset > size:
        return 0
    return known.offset if tail_of(stream, known.offset) == known.tail else 0


_FILES = (MANIFEST, EVENTS, OBSERVATIONS)


def is_bundle(files: Sequence[str]) -> bool:
    """Whether a folder with these files is a bundle."""
    return MANIFEST in files and (EVENTS in files or OBSERVATIONS in files)


Merge = Callable[[Path], Document]
"""Merges the bundle in a folder, for merging knows Spark, and a history knows events only.

It raises a :exc:`.SparkLineageError` or an :exc:`OSError` if the bundle is none that can be merged.
"""


def refused(folder: Path) -> Document:
    """Merge no bundle: each is counted as unusable.

    :raise UnusableInputError: always
    """
    problem = f"{folder} is a capture bundle, which cannot be merged here."
    raise UnusableInputError(problem)


class BundlePiece:
    """A capture bundle, as the event that ``sparklineage merge`` makes of it.

    All of it is new if one of its files has changed.
    """

    def __init__(self, folder: Path, source: str, merge: Merge) -> None:
        self._folder, self._merge = folder, merge
        self.place, self.source, self.mark = str(folder), source, _bundle_state(folder)

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give the merged event; see :class:`.Piece`."""
        try:
            document = self._merge(self._folder)
        except (SparkLineageError, OSError):
            skipped[Skip.UNUSABLE_BUNDLE] += 1
            return
        yield document


def _bundle_state(folder: Path) -> str:
    """Give what changes when a file of the bundle does."""
    states = []
    for name in _FILES:
        try:
            status = (folder / name).stat()
        except OSError:
            continue
        states.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return blake2b("\n".join(states).encode(), digest_size=8).hexdigest()


_PARTIAL = ".part"


def try_of(place: str) -> Try | None:
    """Give the try that a file of an archive is of, by the end of its path; None for others."""
    task = task_of("/".join(place.removesuffix(".json").split("/")[-5:]))
    if task is None or not place.endswith(".json"):
        return None
    return Try(task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number)


class LocalFiles:
    """A file of this machine, or all below a folder.

    A folder may be an archive, a folder of captured tries or any other: a file of an archive says
    by its path which try it is of, and a folder with a manifest is a bundle. Links to folders are
    not followed.

    :param name: as the user named it
    :param merge: makes an event of a bundle
    """

    def __init__(self, path: Path, name: str, merge: Merge = refused) -> None:
        self._root, self._name, self._merge = path.absolute(), name.rstrip("/"), merge

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Give what is new in each file; see :class:`.Source`."""
        if not self._root.is_dir():
            yield from self._file(self._root, self._name, known)
            return
        try:
            with os.scandir(self._root):
                pass
        except OSError as error:
            msg = f"{self._name} cannot be listed: {error.strerror}."
            raise UnusableInputError(msg) from error
        for at, folders, files in os.walk(self._root):
            folder, below = Path(at), f"{self._name}{at.removeprefix(str(self._root))}"
            if is_store(files, folders):  # it has no events, and may be the one that is built
                folders.clear()
                continue
            if is_bundle(files):
                folders.clear()
                yield from self._bundle(folder, below, known)
                continue
            folders[:] = sorted(one for one in folders if one != UNSENT)
            for name in sorted(files):
                if has_events(name):
                    yield from self._file(folder / name, f"{below}/{name}", known)
                elif not name.endswith(_PARTIAL):
                    skipped[Skip.OTHER_FILE] += 1

    def _file(self, path: Path, source: str, known: Mapping[str, str]) -> Iterator[Piece]:
        mark = Mark.parsed(known.get(str(path)))
        if mark is None or not mark.is_of(*_file_state(path)):
            yield FilePiece(path, source, mark)

    def _bundle(self, folder: Path, source: str, known: Mapping[str, str]) -> Iterator[Piece]:
        piece = BundlePiece(folder, source, self._merge)
        if known.get(piece.place) != piece.mark:
            yield piece


def _file_state(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # whoever opens it counts it
        return -1, -1
    return status.st_size, status.st_mtime_ns


class FilePiece:
    """What is new in a file.

    :param known: how far it was read
    :param place: what its mark is kept by, if that is not its path
    """

    def __init__(self, path: Path, source: str, known: Mark | None = None, place: str = "") -> None:
        self._path, self._known = path, known
        self.place, self.source, self.mark = place or str(path), source, ""

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give the documents after the mark; see :class:`.Piece`."""
        try:
            with open_regular(self._path) as stream:
                yield from self._of(stream, skipped)
        except OSError:
            skipped[Skip.UNREADABLE] += 1

    def _of(self, stream: IO[bytes], skipped: Counter[str]) -> Iterator[Document]:
        status = os.fstat(stream.fileno())
        state, of = (status.st_size, status.st_mtime_ns), try_of(self.place)
        if self.place.endswith(".gz"):
            for text in _unpacked(stream, self.place, skipped):
                yield Document(text, of)
            self.mark = str(Mark(*state))
            return
        start = start_of(stream, self._known, status.st_size)
        stream.seek(start)
        found = Documents(stream, skipped, is_of_lines=is_of_lines(self.place) or start > 0)
        for text in found:
            yield Document(text, of)
        end = start + found.taken
        self.mark = str(Mark(*state, end, tail_of(stream, end)) if end else Mark(*state))


def _unpacked(stream: IO[bytes], name: str, skipped: Counter[str]) -> Iterator[bytes]:
    """Give the documents of a compressed file, as far as it is whole."""
    with closing(gzip.GzipFile(fileobj=stream)) as unpacked:
        try:
            yield from Documents(unpacked, skipped, is_of_lines=is_of_lines(name))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            skipped[Skip.TORN_FILE] += 1


_AT_ONCE = 16


class _File(NamedTuple):
    """A file, by its path below the URL; the one that the URL names has an empty one."""

    name: str
    written: datetime | None

    @property
    def folder(self) -> str:
        """The path of its folder."""
        return self.name.rpartition("/")[0]

    @property
    def modified(self) -> int:
        """When it was written, in nanoseconds; 0 if the store does not know."""
        return int(self.written.timestamp() * 1_000_000) * 1000 if self.written else 0


class RemoteFiles:
    """All files below a URL, or the one that it names; tables and marks have it scrubbed.

    They are fetched several at a time: a store answers in tens of milliseconds. In marks the size
    of such a file is 0, because not all stores list it: its time stands for both. A bundle at a URL
    is not merged, and Spark's own events in it are not taken for those of tasks: its folder is
    passed over and counted. ``sparklineage merge URL`` gives its event.
    """

    def __init__(self, url: str) -> None:
        self._url, self._objects = scrub(url), Objects(url)

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[RemotePiece]:
        """Give what is new in each file; see :class:`.Source`."""
        with (
            tempfile.TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True) as here,
            ThreadPoolExecutor(_AT_ONCE) as threads,
        ):
            waiting: deque[RemotePiece] = deque()
            for number, file in enumerate(self._listed(skipped)):
                place = f"{self._url}/{file.name}".rstrip("/")
                mark = Mark.parsed(known.get(place))
                if mark and file.modified and mark.is_of(0, file.modified):
                    continue
                fetched = threads.submit(self._fetch, file.name, Path(here) / str(number))
                waiting.append(RemotePiece(place, file.modified, mark, fetched))
                if len(waiting) >= _AT_ONCE:
                    yield waiting.popleft()
            yield from waiting

    def _fetch(self, name: str, into: Path) -> Path:
        self._objects.download(name, into)
        return into

    def _listed(self, skipped: Counter[str]) -> list[_File]:
        try:
            files = sorted(
                (_File(*found) for found in self._objects.walk("")), key=lambda f: f.name
            )
        except Exception as error:  # a store's library raises what it likes
            problem = f"{self._url} cannot be listed ({reason(error)})."
            fix = "See its connection; `airflow sparklineage history build` knows Airflow's."
            raise UnusableInputError(problem, fix) from error
        if not files:
            problem = f"There are no files at {self._url}."
            raise UnusableInputError(problem, "Give the URL of an archive, a folder or a file.")
        ours = [file for file in files if not file.name.startswith(f"{UNSENT}/")]
        bundles = {file.folder for file in ours if file.name.endswith(f"/{MANIFEST}")}
        single = [file for file in ours if file.folder not in bundles]
        named = [file for file in single if not file.name or has_events(file.name)]
        skipped[Skip.UNUSABLE_BUNDLE] += len(bundles)
        skipped[Skip.OTHER_FILE] += len(single) - len(named)
        return named


class RemotePiece:
    """What is new in a file that is being fetched."""

    def __init__(
        self, place: str, modified: int, known: Mark | None, fetched: Future[Path]
    ) -> None:
        self.place = self.source = place
        self.mark = ""
        self._modified, self._known, self._fetched = modified, known, fetched

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give the documents after the mark; see :class:`.Piece`."""
        try:
            path = self._fetched.result()
        except Exception:  # as above
            skipped[Skip.UNREADABLE] += 1
            return
        here = FilePiece(path, self.source, self._known, self.place)
        yield from here.documents(skipped)
        path.unlink(missing_ok=True)
        if mark := Mark.parsed(here.mark):
            self.mark = str(mark._replace(size=0, modified=self._modified))


LEFT_OUT = "part_left_out"
"""Count of the parts of events that were not of their shape; their events are not skipped."""


class Reading:
    """One build's reading of its sources, to lines of facts, and what the next build has to know.

    :param known: marks of the build before; none if all is to be read
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = known or {}
        self.marks = dict(self._known)
        """Marks by places, also those of the build before: for the next one."""
        self.events = 0
        """How many documents were read, those that were skipped among them."""
        self.skipped: Counter[str] = Counter()
        """How many were skipped, by :class:`.Skip`, :class:`.Reason` or :data:`LEFT_OUT`."""

    def lines(self, sources: Iterable[Source]) -> Iterator[Line]:
        """Give the facts of all events that are new.

        A file's mark is noted when all of it was taken.

        :raise UnusableInputError: if a source is not there
        """
        for source in sources:
            for piece in source.pieces(self._known, self.skipped):
                yield from self._of(piece)
                if piece.mark:
                    self.marks[piece.place] = piece.mark

    def _of(self, piece: Piece) -> Iterator[Line]:
        for document in piece.documents(self.skipped):
            self.events += 1
            found = facts_of(document.text, piece.source, document.of)
            if isinstance(found, Skipped):
                self.skipped[found.reason] += 1
                continue
            if found.left_out:
                self.skipped[LEFT_OUT] += found.left_out
            yield found


class StoreSource:
    """A store; it has facts and no events, which :func:`.engines.building.build` sees to."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Give nothing; see :class:`.Source`."""
        del known, skipped
        return iter(())


def store_at(url: str) -> StoreSource | None:
    """Give the store at a path or URL; None if there is none, or it cannot be listed."""
    store = Store(url)
    try:
        names = store.files.names("")
    except Exception:  # a store's library raises what it likes; who lists all of it says so
        return None
    return StoreSource(store) if is_store(names) else None


def source_of(text: str, merge: Merge = refused) -> Source:
    """Give the source that a user names: a path, or a URL.

    :param merge: makes an event of a capture bundle
    :raise UnusableInputError: if there is no such file or folder on this machine
    """
    url = urlsplit(text) if "://" in text else None
    if url is not None and url.scheme not in ("file", "local"):
        return store_at(text) or RemoteFiles(text.rstrip("/"))
    path = Path(text) if url is None else Path(unquote(url.path))
    if not path.exists():
        problem = f"There is no {path}."
        fix = "Give an archive folder, a capture bundle, or files of events."
        raise UnusableInputError(problem, fix)
    return store_at(text) or LocalFiles(path, text, merge)
