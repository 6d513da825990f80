"""What is left of tries that ended long ago, or whose worker was killed, and when it goes."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import locks
from airflow_provider_sparklineage.spark.capture.privacy import is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.spark.capture.bundle import (
        CaptureBundle,
        Manifest,
        TaskIdentity,
    )

PROPERTIES_PREFIX = ".sparklineage-properties-"
"""Start of the names of properties files for one submission; they can hold credentials."""

LINKS_PREFIX = ".sparklineage-links-"
"""Start of the names of folders with links to a bundle whose path Spark would misread."""

# spark-submit reads its properties file when it starts, which takes seconds.
_PROPERTIES_AGE = timedelta(hours=1)
# A bundle is locked as soon as it is made, but not in the same instant.
_YOUNG = timedelta(hours=1)
# Of the tasks on a worker not each has to look through all bundles. Users have one file each.
_SWEPT = ".swept"
_INTERVAL = timedelta(hours=1)


def folders_of_properties(location: Path) -> tuple[Path, ...]:
    """Give the folders in which a properties file may lie, in the order in which they are tried.

    :param location: of the bundles
    """
    folders = [location, Path("/dev/shm")]  # noqa: S108  (files in it are 0600)
    with suppress(FileNotFoundError):  # there is none that can be written to
        folders.insert(1, Path(tempfile.gettempdir()))
    return tuple(dict.fromkeys(folders))


def sweep(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Delete what tries below ``location`` have left for longer than that; return how many bundles.

    A bundle goes only if nobody holds it (:mod:`.locks`), so never that of a try that runs, on
    this machine or on another one that has the same mount. One that its worker never ended counts
    from its last write. Properties files that a killed worker left go after an hour, links to a
    bundle after it. Whatever else is there is not ours, nor is what another user owns: the location
    may be a folder of many.
    """
    removed = 0
    for folder in own_bundles(location):
        with suppress(OSError):
            removed += _removed(folder, older_than, now)
    for place in folders_of_properties(location):
        for file in place.glob(f"{PROPERTIES_PREFIX}*"):
            with suppress(OSError):
                status = file.lstat()
                if is_own(status, stat.S_IFREG) and now - _modified(status) > _PROPERTIES_AGE:
                    file.unlink()
        for folder in place.glob(f"{LINKS_PREFIX}*"):
            with suppress(OSError):
                if is_own(folder.lstat(), stat.S_IFDIR) and _leads_nowhere(folder):
                    capture.remove(folder)
    return removed


def sweep_at_times(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Sweep, unless another try of this user has done so within the hour."""
    if is_due(location / f"{_SWEPT}-{os.getuid()}", min(_INTERVAL, older_than), now):
        return sweep(location, older_than=older_than, now=now)
    return 0


def is_due(last: Path, interval: timedelta, now: datetime) -> bool:
    """Whether the last sweep is an interval ago; notes this one in a file if it can.

    A clock that was ahead does not keep anybody from sweeping. What others have put in the place
    of the file is neither followed nor waited for, nor believed.
    """
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        with suppress(FileExistsError):
            os.close(os.open(last, flags | os.O_CREAT | os.O_EXCL, 0o600))
            return True
        handle = os.open(last, flags)
        try:
            status = os.fstat(handle)
            if is_own(status, stat.S_IFREG) and status.st_nlink == 1:
                if timedelta() <= now - _modified(status) < interval:
                    return False
                os.utime(handle)
        finally:
            os.close(handle)
    return True


def earlier_try(location: Path, manifest: Manifest) -> CaptureBundle | None:
    """Find the bundle of the last try of a task before this one, and hold it.

    :return: None if there is none, or if that try is still at work
    """
    found: list[CaptureBundle] = []
    for folder in own_bundles(location):
        with suppress(CaptureError):
            bundle = capture.load(folder)
            if is_before(bundle.manifest.task, manifest.task):
                found.append(bundle)
    for bundle in sorted(found, key=_try_number, reverse=True):
        with suppress(FileNotFoundError):  # somebody removes it
            lock = locks.acquire(bundle.path, make=False) if bundle.path else None
            return replace(bundle, lock=lock) if lock else None
    return None


def own_bundles(location: Path) -> Iterator[Path]:
    """Yield the folders below a location that are bundles, and this user's."""
    for folder in location.glob("*-*"):
        with suppress(OSError):
            if capture.is_name(folder.name) and is_own(folder.lstat(), stat.S_IFDIR):
                yield folder


def _try_number(bundle: CaptureBundle) -> int:
    return bundle.manifest.task.try_number if bundle.manifest.task else 0


def is_before(one: TaskIdentity | None, other: TaskIdentity | None) -> bool:
    """Whether two tries are of one task instance, and the first is the earlier one."""
    if one is None or other is None or one.try_number >= other.try_number:
        return False
    return msgspec.structs.replace(one, try_number=other.try_number) == other


def _removed(folder: Path, older_than: timedelta, now: datetime) -> bool:
    try:
        lock = locks.acquire(folder, make=False)
    except FileNotFoundError:
        if now - _modified(folder.lstat()) > _YOUNG:
            folder.rmdir()  # empty, as a network file system leaves what is removed while locked
        return False
    if lock is None:
        return False
    try:
        ended = _ended(folder)
        since = ended or max(_modified(p.lstat()) for p in (folder / locks.LOCK, *folder.iterdir()))
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


def _leads_nowhere(folder: Path) -> bool:
    return any(link.is_symlink() and not link.exists() for link in folder.iterdir())


def _modified(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)
