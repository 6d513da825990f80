"""The owner of a folder: this user alone, and one process while it works in the folder.

Spark is given files of a capture bundle to load and to write to. So only the worker's user and root
may be able to change the bundle, or to rename a folder on the way to it and put another one in its
place (:func:`exposed`).

The process that works in a folder holds a lock (:func:`acquire_lock`). The system releases the lock
when the process ends, in any way. A process id would not do: ids are used again, and a container's
ids are not those of another one. Nor would ``filelock``, which Airflow does not bring: on a file
system without locks it goes on with a file that a killed process leaves and that a released lock
removes. Here the file stays, as it marks a bundle when old bundles are swept; without locks, no
bundle of others is ever removed. All sweeps have the same interval (:func:`is_sweep_due`).
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def is_own(status: os.stat_result, kind: int) -> bool:
    """Whether a file or folder is this user's and of a kind; a link is neither file nor folder."""
    return status.st_uid == os.getuid() and stat.S_IFMT(status.st_mode) == kind


def exposed(folder: Path) -> Path | None:
    """Give the first folder or link on the way to a folder in which others can replace things.

    :return: None if there is none, so the folder is this user's alone
    :raise OSError: if the folder does not exist, or cannot be looked at
    """
    end = folder.stat()
    for step, status in _steps(folder.absolute(), set()):
        if not _is_open(status):
            continue
        is_above = not (stat.S_ISLNK(status.st_mode) or os.path.samestat(status, end))
        if not (is_above and _is_granted(step, status)):
            return step
    return None


def _is_open(status: os.stat_result) -> bool:
    """Whether another user could replace the content of a folder, or the target of a link."""
    if status.st_uid not in (os.getuid(), 0):
        return True
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _steps(path: Path, passed: set[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield each folder and link on the way to a path, from the root, and follow the links."""
    for step in (*reversed(path.parents), path):
        if step in passed:
            continue
        passed.add(step)
        status = step.lstat()
        yield step, status
        if stat.S_ISLNK(status.st_mode):
            yield from _steps(step.parent / step.readlink(), passed)


def _is_granted(folder: Path, status: os.stat_result) -> bool:
    """Whether write access of others to a folder above is on purpose; its owner does not count.

    In images and on mounts, members of the worker's own group can, as an administrator chose: in
    Airflow's image the owner is the user that the image was built with, not the one that runs it.
    In a pod, every user can write to a volume, and only the pod's containers have the volume.
    """
    if status.st_mode & stat.S_IWOTH:
        return "KUBERNETES_SERVICE_HOST" in os.environ and folder.is_mount()
    is_groups = status.st_gid in (0, os.getegid(), *os.getgroups())
    return is_groups and bool(status.st_mode & stat.S_IWGRP)


LOCK_FILE = ".lock"
_POLL_S = 0.2


class Lock:
    """The lock on a folder in which this process works; the end of the process releases it."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Release the lock; a second time does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def acquire_lock(folder: Path, wait_s: float = 0.0, *, make: bool = True) -> Lock | None:
    """Lock a folder for this process.

    :param wait_s: how long to wait for another process that holds the lock
    :param make: make the lock file if there is none; False for a folder that another process may be
        removing, in which the new file would stay behind
    :return: None if another process still holds the lock
    :raise OSError: if the file does not exist or cannot be made, or the file system has no locks
    """
    ends = time.monotonic() + wait_s
    # O_NOFOLLOW: others that may write to the folder must not choose the locked file by a link.
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    handle = os.open(folder / LOCK_FILE, flags, 0o600)
    lock = Lock(handle)
    try:
        # The lock is polled, because waiting in flock() itself has no limit.
        while not _is_taken(handle):
            if time.monotonic() >= ends:
                lock.release()
                return None
            time.sleep(_POLL_S)
    except BaseException:  # Airflow's task timeout is one
        lock.release()
        raise
    return lock


def _is_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# One task an hour on a worker looks through the old things, not each task. Each user has a file.
_SWEEP_INTERVAL = timedelta(hours=1)


def is_sweep_due(mark: Path, older_than: timedelta, now: datetime) -> bool:
    """Whether this user's last sweep is an hour ago; if so, note the new one in a file if possible.

    If the clock was ahead at the last sweep, a sweep is due. A file that another user has put there
    is neither followed nor waited for, nor believed.

    :param mark: path of the file, to which the user's id is added
    :param older_than: age at which things are removed; if it is less than an hour, it is the
        interval
    """
    last = mark.with_name(f"{mark.name}-{os.getuid()}")
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        with suppress(FileExistsError):
            os.close(os.open(last, flags | os.O_CREAT | os.O_EXCL, 0o600))
            return True
        handle = os.open(last, flags)
        try:
            status = os.fstat(handle)
            if is_own(status, stat.S_IFREG) and status.st_nlink == 1:
                if timedelta() <= now - modified(status) < min(_SWEEP_INTERVAL, older_than):
                    return False
                os.utime(handle)
        finally:
            os.close(handle)
    return True


def modified(status: os.stat_result) -> datetime:
    """Give the time of the last write to a file."""
    return datetime.fromtimestamp(status.st_mtime, UTC)
