"""The store: facts and tables in Parquet files, and a manifest that says which of them count.

::

    <store>/manifest.json                 the generation that is in force
    <store>/lock.json                     who builds
    <store>/facts/<build>/*.parquet       facts that came with a build; they are only added to
    <store>/generations/<build>/*.parquet the tables that were made of all facts
    <store>/marks/*.json                  what of the sources was read
    <store>/tmp/                          what a build has on disk while it runs

A build writes new files and then, in one step, the manifest that names them: readers see the
generation before it or the one after it. Folders that no manifest names any more are removed an
hour later, as somebody may still read them; those of an interrupted build, by the next one.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.history.store.building import GRACE, Building
from airflow_provider_sparklineage.history.store.files import SCRATCH, Files, files_of
from airflow_provider_sparklineage.history.store.lock import NAME as LOCK
from airflow_provider_sparklineage.history.store.lock import Lock, utc_now
from airflow_provider_sparklineage.history.store.manifest import (
    FACTS,
    GENERATIONS,
    MANIFEST,
    MARKS,
    Manifest,
    empty,
    parsed,
)
from airflow_provider_sparklineage.history.tables import VERSION
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from airflow_provider_sparklineage.history.engines.building import Built
    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.sources import Source
    from airflow_provider_sparklineage.history.sources.reading import Reading

__all__ = ["GENERATIONS", "GRACE", "LOCK", "MANIFEST", "SCRATCH", "Building", "Store"]

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
            found = parsed(self.files.read(MANIFEST))
        except FileNotFoundError:
            return empty(self._now())
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

    def build(
        self,
        sources: Sequence[Source],
        *,
        progress: Callable[[int], None] | None = None,
        keep: timedelta | None = None,
    ) -> Built:
        """Add what sources have, and make the tables anew if there is anything new.

        :param progress: called with the number of events so far
        :param keep: forget events that are older than this, for good: whoever wants them again
            builds another store
        :raise HistoryError: if DuckDB is missing, another build runs, or the disk is full
        """
        from airflow_provider_sparklineage.history.engines.building import build
        from airflow_provider_sparklineage.history.sources.stores import StoreSource

        def lines(reading: Reading) -> Iterator[Line]:
            return reading.lines(sources)

        others = [one.store for one in sources if isinstance(one, StoreSource)]
        return build(self, lines, others, progress=progress, keep=keep)

    def add(self, lines: Iterable[Line], *, keep: timedelta | None = None) -> Built:
        """Add lines of facts, as :func:`.facts.facts_of` gives them; as :meth:`build` does."""
        from airflow_provider_sparklineage.history.engines.building import build

        return build(self, lambda _: lines, keep=keep)

    def compact(
        self, keep: timedelta | None = None, *, progress: Callable[[int], None] | None = None
    ) -> Built:
        """Write the facts of all builds into one part.

        :param keep: as of :meth:`build`; what is forgotten is not in the files any more
        :param progress: called with the number of steps that are done, of :data:`.steps.STEPS`
        """
        from airflow_provider_sparklineage.history.engines.building import compact

        return compact(self, keep, progress)

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
