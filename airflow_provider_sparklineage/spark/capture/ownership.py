"""Checks and locks by which a folder belongs to this user, and to one process that works in it.

Spark loads files of a capture bundle, and writes to others. So only the worker's user and root may
be able to change the bundle, or to replace a folder on the path to the bundle by another folder
(:func:`exposed` checks that).

The process that works in a folder holds a lock on the folder (:func:`acquire_lock`). The system
releases the lock when the process ends, in any way. A process id in a file could not replace the
lock: ids are used again, and the same id means another process in another container. The package
``filelock`` could not replace it either. Airflow does not install ``filelock``, and on a file
system without locks ``filelock`` uses the existence of a file, which a killed process leaves
behind, and it deletes the file with the lock. Here the lock file is not deleted with the lock,
because a sweep of old bundles recognises a bundle by the file. On a file system without locks, no
sweep deletes a bundle. All sweeps have the same interval (:func:`is_sweep_due`).
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
    """Whether an entry of a file system belongs to this user and is of a kind.

    :param status: the status of the entry itself (``lstat``), so that a link is not a file or
        folder
    :param kind: a file type of :mod:`stat`, such as ``S_IFREG``
    """
    return status.st_uid == os.getuid() and stat.S_IFMT(status.st_mode) == kind


def exposed(folder: Path) -> Path | None:
    """Check each folder and link on the path to a folder; give the first that others can change.

    :return: the path of that folder or link; None if no other user can change the folder, or
        replace a part of the path to it
    :raise OSError: if the folder does not exist, or its status cannot be read
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
    """Whether another user could replace the content of a folder, or the target of a link.

    :param status: the status of the folder, or of the link itself
    """
    if status.st_uid not in (os.getuid(), 0):
        return True
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _steps(path: Path, passed: set[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield each folder and link on the way to a path, beginning at the root, with its status.

    Links are followed: after a link come the folders and links on the way to its target.

    :param passed: the paths that were yielded already; they are left out, and new ones are added
    """
    for step in (*reversed(path.parents), path):
        if step in passed:
            continue
        passed.add(step)
        status = step.lstat()
        yield step, status
        if stat.S_ISLNK(status.st_mode):
            yield from _steps(step.parent / step.readlink(), passed)


def _is_granted(folder: Path, status: os.stat_result) -> bool:
    """Whether other users can write to a parent folder because an administrator wants them to.

    In images and on mounts, the members of the worker's own group may be able to write: Airflow's
    image belongs to the user with which it was built, not to the user that runs it. In a pod, every
    user can write to a volume, but only the pod's containers have the volume. So this function does
    not look at the folder's owner.

    :param folder: the parent folder, to which other users can write
    :param status: the status of this folder
    """
    if status.st_mode & stat.S_IWOTH:
        return "KUBERNETES_SERVICE_HOST" in os.environ and folder.is_mount()
    is_groups = status.st_gid in (0, os.getegid(), *os.getgroups())
    return is_groups and bool(status.st_mode & stat.S_IWGRP)


LOCK_FILE = ".lock"
_POLL_S = 0.2


class Lock:
    """The lock on a folder in which this process works.

    The system releases the lock when the process ends.
    """

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def acquire_lock(
    folder: Path, wait_s: float = 0.0, *, make: bool = True, name: str = LOCK_FILE
) -> Lock | None:
    """Lock a folder for this process.

    :param wait_s: the time to wait, in seconds, for another process that holds the lock
    :param make: whether to make a missing lock file; False if another process may be removing the
        folder, because the new file would then be left behind
    :param name: the name of the lock file; a folder may have several locks
    :return: None if another process still holds the lock
    :raise OSError: if the lock file does not exist or cannot be made, or the file system has no
        locks
    """
    ends = time.monotonic() + wait_s
    # O_NOFOLLOW: others that may write to the folder must not choose the locked file by a link.
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    handle = os.open(folder / name, flags, 0o600)
    lock = Lock(handle)
    try:
        # The lock is polled, because waiting in flock() itself has no limit.
        while not _is_taken(handle):
            if time.monotonic() >= ends:
                lock.release()
                return None
            time.sleep(_POLL_S)
    except BaseException:  # Airflow's task timeout is a BaseException
        lock.release()
        raise
    return lock


def _is_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# A sweep takes time, so only one task of a user sweeps per hour on a worker, and not each task.
_SWEEP_INTERVAL = timedelta(hours=1)


def is_sweep_due(mark: Path, older_than: timedelta, now: datetime) -> bool:
    """Whether this user's last sweep is at least an hour ago; if so, note that a sweep begins now.

    The time of the last sweep is the modification time of a file. A sweep is also due if that time
    is in the future, because a clock was wrong, or if the file cannot be read or written. A file or
    link that another user has put in its place is ignored.

    :param mark: the path of the file, to which the user's id is added
    :param older_than: the age at which bundles are deleted; if it is less than an hour, it is also
        the time between two sweeps
    :param now: the present time
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
    """Give the time of the last write to a file, in UTC."""
    return datetime.fromtimestamp(status.st_mtime, UTC)
