"""The sources of events: files, folders, archives and bundles, here or at a URL.

A source (:class:`LocalFiles`, :class:`RemoteFiles`) gives the documents of new files, of the new
parts of files (:class:`Documents`) and of new capture bundles. The mark of a file (:class:`Mark`)
tells the next build from where to read the file. :class:`Reading` makes lines of facts from all
documents, collects the marks, and counts the skipped parts. To add a source, write a class with the
method of :class:`Source`. It is an error if the path or URL that the user named cannot be read; a
file below it that cannot be read is counted, and the next build tries it again.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from enum import StrEnum
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from airflow_provider_sparklineage.event import archive
from airflow_provider_sparklineage.event.archive import GZIP, NO_EVENTS, task_of
from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.facts import Reason, Try, facts_of
from airflow_provider_sparklineage.history.store import INCOMING, Store, is_store, local_path
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import SparkLineageError, UnusableInputError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST, OBSERVATIONS
from airflow_provider_sparklineage.storage.bounded import reason
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    from airflow_provider_sparklineage.history.facts import Line


class Skip(StrEnum):
    """The reason why a part of a source gives no event.

    The reasons why an event gives no facts are :class:`.facts.Reason`.
    """

    TORN_LINE = "torn_line"
    """The last line of a file is not complete: the next build reads it."""
    TORN_FILE = "torn_file"
    """A compressed file ends too early, or is damaged; the part before the damage is read."""
    TOO_LARGE = "too_large"
    """A line or document is longer than :data:`MAX_BYTES`."""
    OTHER_FILE = "other_file"
    """A file below a folder has another suffix than ``.json``, ``.ndjson`` and ``.jsonl``."""
    UNREADABLE = "unreadable"
    """A file cannot be opened or fetched; the next build tries again."""
    UNUSABLE_BUNDLE = "unusable_bundle"
    """A capture bundle cannot be merged."""


class Document(NamedTuple):
    """A JSON document of a file; if the file is valid, each of its documents is an event.

    :param source: name of the file in the tables; it begins with the path or URL that the user gave
    :param of: the try of the event, if the file is of an archive or a bundle; else None
    """

    text: bytes
    source: str
    of: Try | None


class Source(Protocol):
    """A path or URL with events that a user named."""

    def documents(self, reading: Reading) -> Iterator[Document]:
        """Yield the new documents of each file, in the order of the files' names.

        Once all documents of a file were taken, its mark (the position up to which it was read) is
        added to the marks of ``reading``. There is no mark if the next build must read the file
        again. Skipped parts are added to the counts of ``reading``.

        :raise UnusableInputError: if the source does not exist, or cannot be listed
        """
        ...


MAX_BYTES = archive.MAX_BYTES
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
    """The documents of a file: each line is a document, or the whole file is one.

    A document that is an array gives one document for each element.

    The content tells the form of a file, because OpenLineage's file transport appends lines to
    files of any name. If the first line is a JSON value, each line is a document; else the whole
    file is one. Files that are named ``.ndjson`` or ``.jsonl`` have documents in lines in any case.
    A compressed file, which its name or its first bytes tell, is read up to its end, or up to
    damage.

    :param stream: the opened file, which may be compressed
    :param name: name of the file, which may tell whether it is compressed, and its form
    :param skipped: counts of skipped parts are added to it
    :param start: offset at which reading begins; if it is not 0, each line is a document
    """

    def __init__(
        self,
        stream: IO[bytes] | gzip.GzipFile,
        name: str,
        skipped: Counter[str],
        start: int = 0,
    ) -> None:
        self._stream, self._name, self._skipped = stream, name, skipped
        self.end = start
        """Offset after the last complete line that was read; 0 if the next build must not go on
        there: the file is one document, or compressed."""

    def __iter__(self) -> Iterator[bytes]:
        yield from self._unpacked() if self._is_compressed() else self._plain()

    def _is_compressed(self) -> bool:
        if self.end or self._name.endswith(".gz"):
            return not self.end
        self._stream.seek(0)
        return self._stream.read(len(GZIP)) == GZIP

    def _plain(self) -> Iterator[bytes]:
        self._stream.seek(self.end)
        is_of_lines = self.end > 0 or self._name.endswith(_OF_LINES)
        is_of_lines = is_of_lines or _is_json(self._stream.readline(MAX_BYTES + 1))
        self._stream.seek(self.end)
        yield from self._lines() if is_of_lines else self._whole()

    def _unpacked(self) -> Iterator[bytes]:
        self._stream.seek(0)
        with closing(gzip.GzipFile(fileobj=self._stream)) as unpacked:
            name = self._name.removesuffix(".gz")
            try:
                # Not unpacked twice: a file may contain itself, compressed, without end.
                yield from Documents(unpacked, name, self._skipped)._plain()  # noqa: SLF001  (its own class)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self._skipped[Skip.TORN_FILE] += 1

    def _lines(self) -> Iterator[bytes]:
        while line := self._stream.readline(MAX_BYTES + 1):
            if len(line) > MAX_BYTES and not line.endswith(b"\n"):
                self._skipped[Skip.TOO_LARGE] += 1
                while line and not line.endswith(b"\n"):
                    self.end += len(line)
                    line = self._stream.readline(MAX_BYTES)
                self.end += len(line)
                continue
            if not line.endswith(b"\n") and not _is_json(line):
                # Its writer has not finished it, or was killed.
                self._skipped[Skip.TORN_LINE] += not line.isspace()
                return
            self.end += len(line)
            if not line.isspace():
                yield from _split(line)

    def _whole(self) -> Iterator[bytes]:
        text = self._stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            self._skipped[Skip.TOO_LARGE] += 1
        elif text.strip():
            yield from _split(text)


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
    offset on, if the bytes before the offset have not changed. Otherwise it is read from its
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
        """Parse a mark; None if there is no text, or another version of this package wrote it."""
        size, modified, offset, tail = (*(text or "").split("."), *[""] * _FIELDS)[:_FIELDS]
        if not (size.isdecimal() and modified.isdecimal() and offset.isdecimal()):
            return None
        return cls(int(size), int(modified), int(offset), tail)


def tail_of(stream: IO[bytes], offset: int) -> str:
    """Give the checksum of the last KiB of a file before an offset."""
    start = max(0, offset - _TAIL)
    stream.seek(start)
    return blake2b(stream.read(offset - start), digest_size=8).hexdigest()


def start_of(stream: IO[bytes], known: Mark | None, size: int) -> int:
    """Give the offset at which reading begins: that of the mark if it fits the file, else 0.

    :param stream: the opened file
    :param known: the mark that the previous build made; None if there is none
    :param size: size of the file now, in bytes
    """
    if known is None or not known.offset or known.offset > size:
        return 0
    return known.offset if tail_of(stream, known.offset) == known.tail else 0


_FILES = (MANIFEST, EVENTS, OBSERVATIONS)


def is_bundle(files: Sequence[str]) -> bool:
    """Whether a folder with files of these names is a capture bundle."""
    return MANIFEST in files and (EVENTS in files or OBSERVATIONS in files)


Merge = Callable[[Path], tuple[bytes, Try | None]]
"""Function that merges the bundle in a folder, and gives the event and its try. Callers give it,
because merging needs the modules for Spark, and the history reads events only.

It raises a :exc:`.SparkLineageError` or an :exc:`OSError` if the bundle cannot be merged.
"""


def refused(folder: Path) -> tuple[bytes, Try | None]:
    """Refuse to merge a bundle, for callers that cannot merge; the bundle is counted as unusable.

    :param folder: the folder of the bundle
    :raise UnusableInputError: always
    """
    problem = f"{folder} is a capture bundle, which cannot be merged here."
    raise UnusableInputError(problem)


def _bundle_state(folder: Path) -> str:
    """Give a checksum of the sizes and times of the files of the bundle in a folder."""
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
    """Give the try of an archive's file from the end of its path; None for other files.

    :param place: path or URL of the file
    """
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
    :param merge: a function that makes an event of a bundle
    """

    def __init__(self, path: Path, name: str, merge: Merge) -> None:
        self._root, self._name, self._merge = path.absolute(), _readable(name.rstrip("/")), merge

    def documents(self, reading: Reading) -> Iterator[Document]:
        """Yield the new documents; see :class:`.Source`."""
        if not self._root.is_dir():
            yield from _new_in_file(self._root, self._name, reading)
            return
        try:
            with os.scandir(self._root):
                pass
        except OSError as error:
            msg = f"{self._name} cannot be listed: {error.strerror}."
            raise UnusableInputError(msg) from error
        for at, folders, files in os.walk(self._root):
            folder, below = Path(at), f"{self._name}{_readable(at.removeprefix(str(self._root)))}"
            if is_store(files, folders):  # a store has no events, and may be the one being built
                folders.clear()
                continue
            if is_bundle(files):
                folders.clear()
                yield from self._bundle(folder, below, reading)
                continue
            folders[:] = sorted(one for one in folders if not one.startswith(NO_EVENTS))
            for name in sorted(files):
                if has_events(name):
                    yield from _new_in_file(folder / name, f"{below}/{_readable(name)}", reading)
                elif not name.endswith(_PARTIAL) and not name.startswith(NO_EVENTS):
                    reading.skipped[Skip.OTHER_FILE] += 1

    def _bundle(self, folder: Path, source: str, reading: Reading) -> Iterator[Document]:
        """Yield the event that ``sparklineage merge`` makes of a bundle.

        Nothing is yielded if the bundle has not changed since the previous build.

        :param folder: the folder of the bundle
        :param source: name of the bundle in the tables
        :param reading: knows the marks of the previous build; the bundle's mark is added to it
        """
        place, state = _readable(str(folder)), _bundle_state(folder)
        if reading.known.get(place) == state:
            return
        try:
            text, of = self._merge(folder)
        except (SparkLineageError, OSError):
            reading.skipped[Skip.UNUSABLE_BUNDLE] += 1
        else:
            yield Document(text, source, of)
        reading.marks[place] = state


def _readable(name: str) -> str:
    """Give the name of a file as UTF-8 has it: bytes that are not UTF-8 are escaped."""
    return name.encode(errors="backslashreplace").decode()


def _new_in_file(path: Path, source: str, reading: Reading) -> Iterator[Document]:
    place = _readable(str(path))
    known = Mark.parsed(reading.known.get(place))
    with suppress(OSError):  # opening it fails as well, and is counted
        status = path.stat()
        if known and (known.size, known.modified) == (status.st_size, status.st_mtime_ns):
            return
    mark = yield from _documents_of(path, place, source, known, reading.skipped)
    if mark:
        reading.marks[place] = str(mark)


def _documents_of(
    path: Path, place: str, source: str, known: Mark | None, skipped: Counter[str]
) -> Generator[Document, None, Mark | None]:
    """Yield the documents of a file that are new since the previous build.

    :param place: the path or URL of the file, of which ``path`` may be a copy
    :param source: name of the file in the tables
    :param known: the mark that the previous build made; None if that build did not read the file
    :param skipped: counts of skipped parts are added to it
    :return: the mark for the next build; None if the file cannot be read
    """
    try:
        with open_regular(path) as stream:
            status, of = os.fstat(stream.fileno()), try_of(place)
            start = start_of(stream, known, status.st_size)
            documents = Documents(stream, place, skipped, start)
            for text in documents:
                yield Document(text, source, of)
            end = documents.end
            tail = tail_of(stream, end) if end else ""
            return Mark(status.st_size, status.st_mtime_ns, end, tail)
    except OSError:
        skipped[Skip.UNREADABLE] += 1
        return None


_AT_ONCE = 16


class RemoteFiles:
    """All files below a URL, or the file that the URL names.

    Tables and marks have the URL without its credentials. Several files are fetched at the same
    time, because a store takes tens of milliseconds to answer. The size in the mark of such a file
    is 0, because not all stores list sizes; only its time is compared. A bundle at a URL is not
    merged, and Spark's own events in it are not taken for events of tasks: its folder is skipped
    and counted. ``sparklineage merge URL`` gives its event.
    """

    def __init__(self, url: str) -> None:
        self._url, self._objects = scrub(url), Objects(url)

    def documents(self, reading: Reading) -> Iterator[Document]:
        """Yield the new documents; see :class:`.Source`."""
        with (
            tempfile.TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True) as here,
            ThreadPoolExecutor(_AT_ONCE) as threads,
        ):
            waiting: deque[Iterator[Document]] = deque()
            for number, (name, written) in enumerate(self._listed(reading.skipped)):
                place = f"{self._url}/{name}".rstrip("/")
                known = Mark.parsed(reading.known.get(place))
                modified = int(written.timestamp() * 1_000_000) * 1000 if written else 0
                if known and modified and (known.size, known.modified) == (0, modified):
                    continue
                copy = Path(here) / str(number)
                fetched = threads.submit(self._objects.download, name, copy)
                waiting.append(_new_in_fetched(fetched, copy, place, known, modified, reading))
                if len(waiting) >= _AT_ONCE:
                    yield from waiting.popleft()
            yield from chain.from_iterable(waiting)

    def _listed(self, skipped: Counter[str]) -> list[tuple[str, datetime | None]]:
        """List the files with events: paths below the URL, and the times of the last writes.

        The path is empty if the URL names the file itself. The time is None if the store does not
        know it.

        :param skipped: counts of files that are not listed are added to it, by reason
        """
        try:
            files = sorted(self._objects.walk(""), key=itemgetter(0))
        except Exception as error:  # each store's library raises errors of its own
            problem = f"{self._url} cannot be listed ({reason(error)})."
            fix = "See its connection; `airflow sparklineage history build` knows Airflow's."
            raise UnusableInputError(problem, fix) from error
        if not files:
            problem = f"There are no files at {self._url}."
            raise UnusableInputError(problem, "Give the URL of an archive, a folder or a file.")
        ours = [file for file in files if not file[0].startswith(NO_EVENTS)]
        manifest = f"/{MANIFEST}"
        bundles = {name.removesuffix(manifest) for name, _ in ours if name.endswith(manifest)}
        single = [file for file in ours if file[0].rpartition("/")[0] not in bundles]
        named = [file for file in single if not file[0] or has_events(file[0])]
        skipped[Skip.UNUSABLE_BUNDLE] += len(bundles)
        skipped[Skip.OTHER_FILE] += len(single) - len(named)
        return named


def _new_in_fetched(
    fetched: Future[None],
    copy: Path,
    place: str,
    known: Mark | None,
    modified: int,
    reading: Reading,
) -> Iterator[Document]:
    try:
        fetched.result()
    except Exception:  # each store's library raises errors of its own
        reading.skipped[Skip.UNREADABLE] += 1
        return
    mark = yield from _documents_of(copy, place, place, known, reading.skipped)
    copy.unlink(missing_ok=True)
    if mark:
        reading.marks[place] = str(mark._replace(size=0, modified=modified))


MAX_DELIVERED = 20_000
"""The most events delivered by tasks that one build merges, so that a build far behind publishes
something within a minute."""
_BATCH = 64  # files whose contents are in memory


class Delivered:
    """The events that tasks have delivered to a store (:mod:`.incoming`), the oldest ones first.

    :param most: greatest number of files that are read
    """

    def __init__(self, store: Store, most: int) -> None:
        names = incoming.waiting(store).names
        self._files, self._names = store.files, names[:most]
        self.more = len(names) - len(self._names)
        """Number of files that are left to the next build."""
        self._read: list[str] = []

    def documents(self, reading: Reading) -> Iterator[Document]:
        """Yield the events; see :class:`.Source`. A file that cannot be read stays where it is."""
        with ThreadPoolExecutor(_AT_ONCE, "sparklineage-history") as threads:
            for place in range(0, len(self._names), _BATCH):
                names = [f"{INCOMING}/{name}" for name in self._names[place : place + _BATCH]]
                for name, content in zip(names, threads.map(self._content, names), strict=True):
                    found = incoming.parsed(content) if content is not None else None
                    if found is None:
                        reading.skipped[Skip.UNREADABLE] += 1
                        continue
                    self._read.append(name)
                    sender, event = found
                    source, of = sender.source or name, _try_of(sender)
                    if event.startswith(GZIP):
                        for text in Documents(BytesIO(event), name, reading.skipped):
                            yield Document(text, source, of)
                    else:
                        yield Document(event, source, of)

    def remove(self) -> int:
        """Remove the files that were read; give their number."""
        with ThreadPoolExecutor(_AT_ONCE, "sparklineage-history") as threads:
            deque(threads.map(self._removed, self._read), 0)
        return len(self._read)

    def _content(self, name: str) -> bytes | None:
        try:
            return self._files.read(name)
        except OSError:
            return None

    def _removed(self, name: str) -> None:
        with suppress(OSError):  # the next build reads it again, and its event counts once
            self._files.remove(name)


def _try_of(one: incoming.Sender) -> Try:
    return Try(one.dag_id, one.task_id, one.run_id, one.map_index, one.try_number)


LEFT_OUT = "part_left_out"
"""Key in :attr:`Reading.skipped`: number of parts of events that have a wrong shape and are left
out. The other parts of such an event are used."""


class Reading:
    """Turns the sources of one build into lines of facts, and makes marks for the next build.

    A mark is the position up to which a file was read (:class:`Mark`).

    :param known: marks of the previous build by places, which are absolute paths or URLs; None if
        all files must be read
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.known = known or {}
        self.marks = dict(self.known)
        """Marks by places for the next build, with those of the previous build."""
        self.events = 0
        """Number of documents that were read, with the skipped ones."""
        self.skipped: Counter[str] = Counter()
        """Numbers of skipped parts by :class:`.Skip`, :class:`.Reason` or :data:`LEFT_OUT`."""

    def lines(self, sources: Iterable[Source]) -> Iterator[Line]:
        """Yield the lines of facts of all new events.

        :raise UnusableInputError: if a source does not exist, or cannot be listed
        """
        for document in chain.from_iterable(source.documents(self) for source in sources):
            self.events += 1
            line = facts_of(*document)
            if isinstance(line, Reason):
                self.skipped[line] += 1
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
    """Give the source at a path or URL that a user named; if a store is there, give the store.

    :param text: the path or URL
    :param merge: a function that makes an event of a capture bundle
    :raise UnusableInputError: if there is no such file or folder on this machine
    """
    path = local_path(text)
    if path is None:
        return store_at(text) or RemoteFiles(text.rstrip("/"))
    if not path.exists():
        problem = f"There is no {path}."
        fix = "Give an archive folder, a capture bundle, or files of events."
        raise UnusableInputError(problem, fix)
    return store_at(text) or LocalFiles(path, text, merge)
