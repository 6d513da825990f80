"""Files on this machine: one, or all below a folder.

A folder may be an archive, a folder of captured tries or any other: a file of an archive says by
its path which try it is of, and a folder with a manifest is a bundle. Links to folders are not
followed.
"""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING

from airflow_provider_sparklineage.event.archive import UNSENT, task_of
from airflow_provider_sparklineage.history.facts.runs import Try
from airflow_provider_sparklineage.history.sources import Document, Skip
from airflow_provider_sparklineage.history.sources.bundles import BundlePiece, is_bundle
from airflow_provider_sparklineage.history.sources.documents import (
    Documents,
    has_events,
    is_of_lines,
)
from airflow_provider_sparklineage.history.sources.marks import Mark, start_of, tail_of
from airflow_provider_sparklineage.history.sources.stores import is_store
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.rule_files import open_regular

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.history.sources import Piece

_PARTIAL = ".part"


def try_of(place: str) -> Try | None:
    """Give the try that a file of an archive is of, by the end of its path; None for others."""
    task = task_of("/".join(place.removesuffix(".json").split("/")[-5:]))
    if task is None or not place.endswith(".json"):
        return None
    return Try(task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number)


class LocalFiles:
    """A file or folder of this machine.

    :param name: as the user named it
    """

    def __init__(self, path: Path, name: str) -> None:
        self._root, self._name = path.absolute(), name.rstrip("/")

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
        if mark is None or not mark.is_of(*_state(path)):
            yield FilePiece(path, source, mark)

    def _bundle(self, folder: Path, source: str, known: Mapping[str, str]) -> Iterator[Piece]:
        piece = BundlePiece(folder, source)
        if known.get(piece.place) != piece.mark:
            yield piece


def _state(path: Path) -> tuple[int, int]:
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
