"""A generation that is being written: its files, and how it comes into force."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.history.store.manifest import (
    FACTS,
    GENERATIONS,
    MANIFEST,
    MARKS,
    Manifest,
    Retired,
)
from airflow_provider_sparklineage.history.tables import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from airflow_provider_sparklineage.history.store import Store
    from airflow_provider_sparklineage.history.store.lock import Lock

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
