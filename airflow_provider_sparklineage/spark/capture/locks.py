"""Which process works in a folder: a lock that the system releases when the process ends, however.

A process id would not do: ids come again, and a container's are not another one's. Nor would
``filelock``, which Airflow does not bring: where a file system knows no locks it goes on with a
file that a killed process leaves and a released lock removes. Here the file stays, as it is the
sign of a bundle for :mod:`.retention`, and without locks nothing of others is ever removed.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOCK = ".lock"
_POLL_S = 0.2


class Lock:
    """A folder that this process works in, until it releases it or ends."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Be done with it; a second time does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def acquire(folder: Path, wait_s: float = 0.0, *, make: bool = True) -> Lock | None:
    """Lock a folder.

    :param wait_s: how long to wait for another process that holds it
    :param make: make the lock file if there is none; in a folder that somebody removes it would
        be what is left
    :return: None if another process still holds it
    :raise OSError: if the file is not there or cannot be made, or the file system knows no locks
    """
    ends = time.monotonic() + wait_s
    # Whoever else may write to the folder must not choose, by a link, what is made or locked.
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    handle = os.open(folder / LOCK, flags, 0o600)
    lock = Lock(handle)
    try:
        # Asked again and again: waiting in flock() itself has no limit.
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
