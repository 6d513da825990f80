"""What is left of tries that ended long ago, or whose worker was killed, and when it goes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import locks

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sparklineage.spark.capture.bundle import (
        CaptureBundle,
        Manifest,
        TaskIdentity,
    )

PROPERTIES_PREFIX = ".sparklineage-properties-"
"""Start of the names of properties files for one submission; they can hold credentials."""

# spark-submit reads its properties file when it starts, which takes seconds.
_PROPERTIES_AGE = timedelta(hours=1)
# A bundle is locked as soon as it is made, but not in the same instant.
_YOUNG = timedelta(hours=1)
# Of the tasks on a worker not each has to look through all bundles.
_SWEPT = ".swept"
_INTERVAL = timedelta(hours=1)


def sweep(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Delete what tries below ``location`` have left for longer than that; return how many bundles.

    A bundle goes only if nobody holds it (:mod:`.locks`), so never that of a try that runs, on
    this machine or on another one that has the same mount. One that its worker never ended counts
    from its last write. Properties files that a killed worker left go after an hour. Whatever else
    is there is not ours: the location may be a folder that others use.
    """
    removed = 0
    for folder in (f.parent for f in location.glob(f"*/{locks.LOCK}")):
        if capture.is_name(folder.name) and not folder.is_symlink():
            with suppress(OSError):
                removed += _removed(folder, older_than, now)
    for file in location.glob(f"{PROPERTIES_PREFIX}*"):
        with suppress(OSError):
            if now - _modified(file) > _PROPERTIES_AGE:
                file.unlink()
    return removed


def sweep_at_times(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Sweep, unless another try has done so within the hour."""
    last = location / _SWEPT
    with suppress(OSError):
        if now - _modified(last) < min(_INTERVAL, older_than):
            return 0
    with suppress(OSError):
        last.touch(mode=0o600)
    return sweep(location, older_than=older_than, now=now)


def earlier_try(location: Path, manifest: Manifest) -> CaptureBundle | None:
    """Find the bundle of the last try of a task before this one, and hold it.

    :return: None if there is none, or if that try is still at work
    """
    found: list[CaptureBundle] = []
    for file in location.glob(f"*/{capture.MANIFEST}"):
        with suppress(CaptureError):
            bundle = capture.load(file.parent)
            if _is_before(bundle.manifest.task, manifest.task):
                found.append(bundle)
    for bundle in sorted(found, key=_try_number, reverse=True):
        lock = locks.acquire(bundle.path) if bundle.path else None
        return replace(bundle, lock=lock) if lock else None
    return None


def _try_number(bundle: CaptureBundle) -> int:
    return bundle.manifest.task.try_number if bundle.manifest.task else 0


def _is_before(one: TaskIdentity | None, other: TaskIdentity | None) -> bool:
    if one is None or other is None or one.try_number >= other.try_number:
        return False
    return msgspec.structs.replace(one, try_number=other.try_number) == other


def _removed(folder: Path, older_than: timedelta, now: datetime) -> bool:
    lock = locks.acquire(folder)
    if lock is None:
        return False
    try:
        ended = _ended(folder)
        since = ended or max(_modified(path) for path in folder.iterdir())
        if now - since <= (older_than if ended else max(older_than, _YOUNG)):
            return False
        capture.remove(folder)
        return True
    finally:
        lock.release()


def _ended(folder: Path) -> datetime | None:
    with suppress(CaptureError):  # killed before it had written its manifest
        return capture.load(folder).manifest.ended
    return None


def _modified(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)
