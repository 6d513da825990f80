"""Who is at work in a folder: a lock that the system lets go of when its process ends, however.

A process id would not do: ids come again, and a container's are not another one's.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOCK = ".lock"


class Lock:
    """A folder that this process is at work in, until it says so or ends."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Be done with it; twice is well."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def take(folder: Path) -> Lock | None:
    """Hold a folder, and make its lock if there is none.

    :return: None if it is held, or if the file system knows no locks
    """
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with suppress(OSError):
            os.close(handle)
        return None
    return Lock(handle)
