"""The store: facts and tables in Parquet files, and a manifest that says which of them count.

::

    <store>/manifest.json                 the generation that is in force
    <store>/lock.json                     who builds
    <store>/facts/<build>/*.parquet       facts that came with a build; they are only added to
    <store>/generations/<build>/*.parquet the tables that were made of all facts
    <store>/tmp/                          what a build has on disk while it runs

A build writes new files and then, in one step, the manifest that names them: readers see the
generation before it or the one after it. Folders that no manifest names any more are removed an
hour later, as somebody may still read them; those of an interrupted build, by the next one.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.history.store.files import Files, files_of
from airflow_provider_sparklineage.history.store.lock import Lock, utc_now
from airflow_provider_sparklineage.history.store.manifest import Manifest, Retired, empty, parsed
from airflow_provider_sparklineage.history.tables import VERSION
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow_provider_sparklineage.history.engines.building import Built
    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.sources import Source
    from airflow_provider_sparklineage.history.sources.reading import Reading

GRACE = timedelta(hours=1)
"""How long the files of a generation outlive it."""
_MANIFEST, _FACTS, _GENERATIONS = "manifest.json", "facts", "generations"
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
            found = parsed(self.files.read(_MANIFEST))
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
        sources: Iterable[Source],
        *,
        progress: Callable[[int], None] | None = None,
        keep: timedelta | None = None,
    ) -> Built:
        """Add what sources have, and make the tables anew if there is anything new.

        :param progress: called with the number of events so far
        :param keep: forget events that are older than this
        :raise HistoryError: if DuckDB is missing, another build runs, or the disk is full
        """
        from airflow_provider_sparklineage.history.engines.building import build

        def lines(reading: Reading) -> Iterator[Line]:
            return reading.lines(sources)

        return build(self, lines, progress=progress, keep=keep)

    def add(self, lines: Iterable[Line], *, keep: timedelta | None = None) -> Built:
        """Add lines of facts, as :func:`.facts.facts_of` gives them; as :meth:`build` does."""
        from airflow_provider_sparklineage.history.engines.building import build

        return build(self, lambda _: lines, keep=keep)

    def merge(self, other: Store) -> Built:
        """Add all that another store has; events that both have count once."""
        from airflow_provider_sparklineage.history.engines.building import merge

        return merge(self, other)

    def compact(self, keep: timedelta | None = None) -> Built:
        """Write the facts of all builds into one part."""
        from airflow_provider_sparklineage.history.engines.building import compact

        return compact(self, keep)

    @contextmanager
    def building(self) -> Iterator[Building]:
        """Keep other writers out, while what is given is used to write a generation.

        :raise HistoryError: if somebody else builds
        """
        with Lock(self.files, self._now) as lock:
            for name in self.files.names("tmp"):
                self.files.remove(f"tmp/{name}")
            scratch = self.files.scratch()
            try:
                yield Building(self, lock, scratch, self._now)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


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
        self.facts_folder = f"{_FACTS}/{name}"
        self.tables_folder = f"{_GENERATIONS}/{name}"

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
    ) -> Manifest:
        """Put a generation in force, and remove what nobody can read any more.

        :param facts: files of all parts that count from now on, by part
        :param tables: files of each table
        :param skipped: in this build, by reason
        :param marks: what of the sources was read; None: as before
        :raise HistoryError: if somebody else took over; nothing is changed then
        """
        before, at = self.before, self.now()
        total = {key: before.skipped.get(key, 0) + skipped.get(key, 0)
                 for key in sorted({*before.skipped, *skipped})}  # fmt: skip
        manifest = Manifest(
            version=VERSION,
            generation=before.generation + 1,
            built_at=at,
            facts={part: list(files) for part, files in facts.items()},
            tables={name: list(files) for name, files in tables.items()},
            rows=dict(rows),
            skipped=total,
            marks=self._note(self.marks if marks is None else marks),
        )
        gone = sorted(before.folders() - manifest.folders())
        fresh = (one for one in before.retired if at - one.at <= GRACE)
        retired = (*fresh, *(Retired(folder, at) for folder in gone))
        manifest = msgspec.structs.replace(manifest, retired=retired)
        self._lock.check()
        self.store.files.write(_MANIFEST, manifest.text())
        self._sweep(manifest)
        return manifest

    @property
    def marks(self) -> dict[str, str]:
        """What of the sources the builds before have read."""
        if not self.before.marks:
            return {}
        return msgspec.json.decode(self.store.files.read(self.before.marks), type=dict[str, str])

    def _note(self, marks: Mapping[str, str]) -> str:
        if not marks:
            return ""
        name = f"{self.tables_folder}/marks.json"
        self.store.files.write(name, msgspec.json.encode(marks))
        return name

    def _sweep(self, manifest: Manifest) -> None:
        """Remove the folders of old generations, and of builds that were interrupted."""
        files = self.store.files
        kept = manifest.folders() | {one.folder for one in manifest.retired}
        for top in (_FACTS, _GENERATIONS):
            for name in files.names(top):
                if f"{top}/{name}" not in kept:
                    files.remove(f"{top}/{name}")
