"""Files below a URL, fetched several at a time: a store answers in tens of milliseconds.

In marks the size of such a file is 0, because not all stores list it: its time stands for both.
A bundle at a URL is not merged, and Spark's own events in it are not taken for those of tasks: its
folder is passed over and counted. ``sparklineage merge URL`` gives its event.
"""

from __future__ import annotations

import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.event.archive import UNSENT
from airflow_provider_sparklineage.history.sources import Skip
from airflow_provider_sparklineage.history.sources.documents import has_events
from airflow_provider_sparklineage.history.sources.local import FilePiece
from airflow_provider_sparklineage.history.sources.marks import Mark
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.spark.capture.bundle import MANIFEST
from airflow_provider_sparklineage.storage.bounded import reason
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Future
    from datetime import datetime

    from airflow_provider_sparklineage.history.sources import Document

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
    """All files below a URL, or the one that it names; tables and marks have it scrubbed."""

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
