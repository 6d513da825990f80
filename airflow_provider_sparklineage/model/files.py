"""Files of this machine: they are opened without waiting, and their digests are taken once."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1024 * 1024


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading, without waiting.

    :raise OSError: if the file cannot be opened, or is not regular; ``strerror`` is the reason
    """
    # Without O_NONBLOCK, opening a named pipe would wait until another process writes to it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return BufferedReader(FileIO(handle), _CHUNK)


digests: dict[tuple[int, ...], str] = {}
"""The SHA-256 digests, in hex, of the files that were read, by :func:`identity_of`."""


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Give what is another for another file, and for the same file after it has changed."""
    changes = status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, *changes


def digest_of(path: Path) -> str:
    """Give the SHA-256 digest of a file, in hex; a file that has not changed is read once.

    :raise OSError: if the file cannot be read, or is not regular
    """
    with open_regular(path) as content:
        identity = identity_of(os.fstat(content.fileno()))
        if identity not in digests:
            digests[identity] = hashlib.file_digest(content, "sha256").hexdigest()
        return digests[identity]
