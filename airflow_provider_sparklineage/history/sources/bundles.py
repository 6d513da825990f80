"""Capture bundles: of each, the event that ``sparklineage merge`` makes of it."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
from airflow_provider_sparklineage.history.facts.runs import Try
from airflow_provider_sparklineage.history.sources import Document, Skip
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, MANIFEST, OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.event_files import open_bundle

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from airflow_provider_sparklineage.spark.capture.bundle import Manifest

_FILES = (MANIFEST, EVENTS, OBSERVATIONS)


def is_bundle(files: Sequence[str]) -> bool:
    """Whether a folder with these files is a bundle."""
    return MANIFEST in files and (EVENTS in files or OBSERVATIONS in files)


class BundlePiece:
    """A bundle; all of it is new if one of its files has changed."""

    def __init__(self, folder: Path, source: str) -> None:
        self._folder = folder
        self.place, self.source, self.mark = str(folder), source, _state(folder)

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give the merged event; see :class:`.Piece`."""
        try:
            with open_bundle([str(self._folder)]) as bundle:
                event = merged_event(bundle, task_lineage(bundle))
                of = _try(bundle.manifest)
        except (SparkLineageError, OSError):
            skipped[Skip.UNUSABLE_BUNDLE] += 1
            return
        yield Document(json.dumps(event).encode(), of)


def _try(manifest: Manifest) -> Try | None:
    task, started = manifest.task, manifest.started
    if task is None:
        return None
    text = started.isoformat() if started else ""
    return Try(task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number, text)


def _state(folder: Path) -> str:
    """Give what changes when a file of the bundle does."""
    states = []
    for name in _FILES:
        try:
            status = (folder / name).stat()
        except OSError:
            continue
        states.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return blake2b("\n".join(states).encode(), digest_size=8).hexdigest()
