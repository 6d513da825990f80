"""Files that others have put where they are."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1024 * 1024


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading.

    :raise OSError: also if it is no regular file; ``strerror`` is the reason
    """
    # Nobody may ever write to a named pipe: to open it must not wait for that.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(handle, "rb", _CHUNK)
