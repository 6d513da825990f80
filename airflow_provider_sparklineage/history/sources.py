"""The sources of events: files, folders, archives and bundles, here or at a URL.

A source gives pieces. A piece is the new part of one file (:class:`FilePiece`, of
:class:`LocalFiles`; :class:`RemotePiece`, of :class:`RemoteFiles`) or a new capture bundle
(:class:`BundlePiece`). A piece gives documents (:class:`Documents`), and then a mark
(:class:`Mark`), at which the next build goes on. :class:`Reading` makes lines of facts of all
documents, and counts the skipped parts. To add a source, write classes with the methods of
:class:`Source` and :class:`Piece`. It is an error if the path or URL that the user named cannot be
read; a file below it that cannot be read is counted, and the next build tries it again.
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
from airflow_provider_sparklineage.history.store import LOCAL_SCHEMES, Store, is_store
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
    """The reason why a part of a source gives no event; those of events: :class:`.facts.Reason`."""

    TORN_LINE = "torn_line"
    """The last line of a file is not complete: the next build reads it."""
    TORN_FILE = "torn_file"
    """A compressed file ends too early, or is damaged; the part before that is read."""
    TOO_LARGE = "too_large"
    """A line or document is longer than :data:`MAX_BYTES`."""
    OTHER_FILE = "other_file"
    """A file below a folder has another suffix than ``.json``, ``.ndjson`` and ``.jsonl``."""
    UNREADABLE = "unreadable"
    """A file cannot be opened or fetched; the next build tries again."""
    UNUSABLE_BUNDLE = "unusable_bundle"
    """A capture bundle cannot be merged."""


class Document(NamedTuple):
    """One document of JSON, which is an event in a valid file.

    :param of: the try of the event, if the document's place tells it
    """

    text: bytes
    of: Try | None = None


class Piece(Protocol):
    """The new part of one file.

    :param place: key of its mark: an absolute path, or a URL
    :param source: name of the file in the tables, which begins as the user named the source
    :param mark: the place up to which it was read, once all documents were taken; empty if the next
        build must read it again
    """

    place: str
    source: str
    mark: str

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Yield the new documents; add the skipped parts to the counts."""
        ...


class Source(Protocol):
    """A path or URL with events that a user named."""

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Yield the new part of each file, in the order of the files' names.

        :param known: marks of the previous build, by places
        :param skipped: counts of skipped parts are added to it
        :raise UnusableInputError: if the source does not exist, or cannot be listed
        """
        ...


MAX_BYTES = 64 * 1024 * 1024
"""Limit of one event; only one event is in memory at a time."""
SUFFIXES = (".json", ".ndjson", ".jsonl")
"""Suffixes of the files with events in a folder; ``.gz`` may follow each of them."""

_OF_LINES = (".ndjson", ".jsonl")
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write


def has_events(name: str) -> bool:
    """Whether a file's name has the suffix of a file with events."""
    return name.removesuffix(".gz").endswith(SUFFIXES)


class Documents:
    """The documents of a stream, from its position on: one in each line, or one in all lines.

    A document that is an array gives one document for each element.

    The content tells the form of a file, because OpenLineage's file transport appends lines to
    files of any name. If the first line is a JSON value, each line is a document; else the whole
    file is one. Files that are named ``.ndjson`` or ``.jsonl`` have documents in lines in any case.

    :param is_of_lines: whether the file's name tells that each line is a document
    :param skipped: counts of skipped parts are added to it
    """

    def __init__(
        self, stream: IO[bytes] | gzip.GzipFile, skipped: Counter[str], *, is_of_lines: bool
    ) -> None:
        self._stream, self._skipped, self._is_of_lines = stream, skipped, is_of_lines
        self.taken = 0
        """Number of bytes in the complete lines that were read; 0 if the file is one document."""

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
                if not _is_json(line):  # its writer has not finished it, or was killed
                    self._skipped[Skip.TORN_LINE] += not line.isspace()
                    return
            self.taken += len(line)
            if not line.isspace():
                yield from _split(line)
            line = self._stream.readline(MAX_BYTES + 1)

    def _passed(self, line: bytes) -> bytes:
        """Skip a line that is too long, and give the next line."""
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
    """Whether a file's name tells that each line is a document."""
    return name.removesuffix(".gz").endswith(_OF_LINES)


def _is_json(text: bytes) -> bool:
    try:
        _RAW.decode(text.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return False
    return True


def _split(text: bytes) -> Iterator[bytes]:
    """Yield the elements of an array; yield any other text as it is.

    A text that is not JSON is counted later, as an event that cannot be read.
    """
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
    """The state of a file when it was read, and the offset after its last complete line.

    A file with the size and the time of its mark is not opened. A larger file is read from the
    offset on, if the bytes before the offset are the same as then. Otherwise it is read from its
    start: it is a log that was rotated, or a document that was written again. An event that is read
    twice counts once, by its checksum.

    :param size: size of the file, in bytes
    :param modified: time of its last write, in nanoseconds since the epoch
    :param offset: offset at which the next build goes on; 0 if it begins at the start
    :param tail: checksum of the last bytes before the offset
    """

    size: int
    modified: int
    offset: int = 0
    tail: str = ""

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parsed(cls, text: str | None) -> Mark | None:
        """Parse a mark; None if there is no text, or it comes from another version."""
        size, modified, offset, tail = (*(text or "").split("."), *[""] * _FIELDS)[:_FIELDS]
        if not (size.isdecimal() and modified.isdecimal() and offset.isdecimal()):
            return None
        return cls(int(size), int(modified), int(offset), tail)

    def is_of(self, size: int, modified: int) -> bool:
        """Whether a file with this size and time has not changed since it was read."""
        return (self.size, self.modified) == (size, modified)


def tail_of(stream: IO[bytes], offset: int) -> str:
    """Give the checksum of the last KiB before an offset."""
    start = max(0, offset - _TAIL)
    stream.seek(start)
    return blake2b(stream.read(offset - start), digest_size=8).hexdigest()


def start_of(stream: IO[bytes], known: Mark | None, size: int) -> int:
    """Give the offset at which reading begins: that of the mark if it fits the file, else 0."""
    if known is None or not known.offset or known.offset > size:
        return 0
    return known.offset if tail_of(stream, known.offset) == known.tail else 0


_FILES = (MANIFEST, EVENTS, OBSERVATIONS)


def is_bundle(files: Sequence[str]) -> bool:
    """Whether a folder with these files is a capture bundle."""
    return MANIFEST in files and (EVENTS in files or OBSERVATIONS in files)


Merge = Callable[[Path], Document]
"""Function that merges the bundle in a folder. Callers give it, because merging needs the modules
for Spark, and the history reads events only.

It raises a :exc:`.SparkLineageError` or an :exc:`OSError` if the bundle cannot be merged.
"""


def refused(folder: Path) -> Document:
    """Refuse to merge a bundle, so that it is counted as unusable.

    :raise UnusableInputError: always
    """
    problem = f"{folder} is a capture bundle, which cannot be merged here."
    raise UnusableInputError(problem)


class BundlePiece:
    """A capture bundle, which gives the event that ``sparklineage merge`` makes of it.

    The event is new if one of the bundle's files has changed.
    """

    def __init__(self, folder: Path, source: str, merge: Merge) -> None:
        self._folder, self._merge = folder, merge
        self.place, self.source, self.mark = str(folder), source, _bundle_state(folder)

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Yield the merged event; see :class:`.Piece`."""
        try:
            document = self._merge(self._folder)
        except (SparkLineageError, OSError):
            skipped[Skip.UNUSABLE_BUNDLE] += 1
            return
        yield document


def _bundle_state(folder: Path) -> str:
    """Give a checksum of the sizes and times of the bundle's files."""
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
    """Give the try of an archive's file from the end of its path; None for other files."""
    task = task_of("/".join(place.removesuffix(".json").split("/")[-5:]))
    if task is None or not place.endswith(".json"):
        return None
    return Try(task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number)


class LocalFiles:
    """A file of this machine, or all files below a folder.

    The folder may be an archive, a folder of captured tries or any other one. The path of an
    archive's file tells its try, and a folder with a manifest is a bundle. Links to folders are not
    followed.

    :param name: the path as the user wrote it
    :param merge: makes an event of a bundle
    """

    def __init__(self, path: Path, name: str, merge: Merge = refused) -> None:
        self._root, self._name, self._merge = path.absolute(), name.rstrip("/"), merge

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Yield the new part of each file; see :class:`.Source`."""
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
            if is_store(files, folders):  # a store has no events, and may be the one being built
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
    except OSError:  # opening it fails as well, and is counted
        return -1, -1
    return status.st_size, status.st_mtime_ns


class FilePiece:
    """The new part of a file.

    :param known: mark of the previous build; None if the file was not read
    :param place: key of its mark, if that is not its path
    """

    def __init__(self, path: Path, source: str, known: Mark | None = None, place: str = "") -> None:
        self._path, self._known = path, known
        self.place, self.source, self.mark = place or str(path), source, ""

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Yield the documents after the mark; see :class:`.Piece`."""
        try:
            with open_regular(self._path) as stream:
                yield from self._of(stream, skipped)
        except OSError:
            skipped[Skip.UNREADABLE] += 1

    def _of(self, stream: IO[bytes], skipped: Counter[str]) -> Iterator[Document]:
        status = os.fstat(stream.fileno())
        state, of = (status.st_size, status.st_mtime_ns), try_of(self.place)
        if self.place.endswith(".gz"):
            for text in documents_in(stream, self.place, skipped):
                yield Document(text, of)
            self.mark = str(Mark(*state))
            return
        start = start_of(stream, self._known, status.st_size)
        stream.seek(start)
        documents = Documents(stream, skipped, is_of_lines=is_of_lines(self.place) or start > 0)
        for text in documents:
            yield Document(text, of)
        end = start + documents.taken
        self.mark = str(Mark(*state, end, tail_of(stream, end)) if end else Mark(*state))


def documents_in(stream: IO[bytes], name: str, skipped: Counter[str]) -> Iterator[bytes]:
    """Yield the documents of a file, up to its end; of a compressed file, also up to damage.

    :param name: name of the file, which tells whether it is compressed, and its form
    """
    if not name.endswith(".gz"):
        yield from Documents(stream, skipped, is_of_lines=is_of_lines(name))
        return
    with closing(gzip.GzipFile(fileobj=stream)) as unpacked:
        try:
            yield from Documents(unpacked, skipped, is_of_lines=is_of_lines(name))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            skipped[Skip.TORN_FILE] += 1


_AT_ONCE = 16


class _File(NamedTuple):
    """A file below a URL.

    :param name: path below the URL; empty if the URL names the file itself
    :param written: time of the last write; None if the store does not know it
    """

    name: str
    written: datetime | None

    @property
    def folder(self) -> str:
        """The path of its folder."""
        return self.name.rpartition("/")[0]

    @property
    def modified(self) -> int:
        """Time of the last write, in nanoseconds since the epoch; 0 if it is not known."""
        return int(self.written.timestamp() * 1_000_000) * 1000 if self.written else 0


class RemoteFiles:
    """All files below a URL, or the file that it names; tables and marks omit its credentials.

    Several files are fetched at the same time, because a store takes tens of milliseconds to
    answer. The size in the mark of such a file is 0, because not all stores list sizes; only its
    time is compared. A bundle at a URL is not merged, and Spark's own events in it are not taken
    for events of tasks: its folder is skipped and counted. ``sparklineage merge URL`` gives its
    event.
    """

    def __init__(self, url: str) -> None:
        self._url, self._objects = scrub(url), Objects(url)

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[RemotePiece]:
        """Yield the new part of each file; see :class:`.Source`."""
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
        except Exception as error:  # each store's library raises errors of its own
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
    """The new part of a file that is being fetched."""

    def __init__(
        self, place: str, modified: int, known: Mark | None, fetched: Future[Path]
    ) -> None:
        self.place = self.source = place
        self.mark = ""
        self._modified, self._known, self._fetched = modified, known, fetched

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Yield the documents after the mark; see :class:`.Piece`."""
        try:
            path = self._fetched.result()
        except Exception:  # each store's library raises errors of its own
            skipped[Skip.UNREADABLE] += 1
            return
        here = FilePiece(path, self.source, self._known, self.place)
        yield from here.documents(skipped)
        path.unlink(missing_ok=True)
        if mark := Mark.parsed(here.mark):
            self.mark = str(mark._replace(size=0, modified=self._modified))


LEFT_OUT = "part_left_out"
"""Key for the number of event parts with a wrong shape; their events are not skipped."""


class Reading:
    """Reads the sources of one build to lines of facts, and makes marks for the next build.

    :param known: marks of the previous build; None if all files must be read
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = known or {}
        self.marks = dict(self._known)
        """Marks by places for the next build, with those of the previous build."""
        self.events = 0
        """Number of documents that were read, with the skipped ones."""
        self.skipped: Counter[str] = Counter()
        """Numbers of skipped parts by :class:`.Skip`, :class:`.Reason` or :data:`LEFT_OUT`."""

    def lines(self, sources: Iterable[Source]) -> Iterator[Line]:
        """Yield the lines of facts of all new events.

        A file's mark is stored once all of its documents were taken.

        :raise UnusableInputError: if a source does not exist, or cannot be listed
        """
        for source in sources:
            for piece in source.pieces(self._known, self.skipped):
                yield from self._of(piece)
                if piece.mark:
                    self.marks[piece.place] = piece.mark

    def _of(self, piece: Piece) -> Iterator[Line]:
        for document in piece.documents(self.skipped):
            self.events += 1
            line = facts_of(document.text, piece.source, document.of)
            if isinstance(line, Skipped):
                self.skipped[line.reason] += 1
                continue
            if line.left_out:
                self.skipped[LEFT_OUT] += line.left_out
            yield line


def store_at(url: str) -> Store | None:
    """Give the store at a path or URL; None if there is none, or it cannot be listed."""
    store = Store(url)
    try:
        names = store.files.names("")
    except Exception:  # each library raises errors of its own; listing the files reports them
        return None
    return store if is_store(names) else None


def source_of(text: str, merge: Merge = refused) -> Source | Store:
    """Give the source that a user names by a path or a URL; or the store, if there is one.

    :param merge: makes an event of a capture bundle
    :raise UnusableInputError: if there is no such file or folder on this machine
    """
    url = urlsplit(text) if "://" in text else None
    if url is not None and url.scheme not in LOCAL_SCHEMES:
        return store_at(text) or RemoteFiles(text.rstrip("/"))
    path = Path(text if url is None else unquote(url.path))
    if not path.exists():
        problem = f"There is no {path}."
        fix = "Give an archive folder, a capture bundle, or files of events."
        raise UnusableInputError(problem, fix)
    return store_at(text) or LocalFiles(path, text, merge)
