"""A store of answers that take seconds to find, for the next tasks of this user.

Each answer is a small JSON file. The files are in the cache of fetched listeners, or, if that
folder cannot be written (as in an image), in a folder of this user in the temporary folder. A file
is ignored if it belongs to another user, or if another user can write to it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from airflow_provider_sparklineage.spark.capture.ownership import is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

A_DAY_S = 24 * 3600.0
FAILURE_S = 900.0
"""The time during which tasks do not repeat a slow attempt that failed."""
_AHEAD_S = 60.0
_MAX_BYTES = 1 << 16
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def recall(cache: Path, question: str, answer: type[T], max_age_s: float = A_DAY_S) -> T | None:
    """Give the stored answer to a question; None if there is no answer that may be used.

    :param answer: the type of the answer
    :param max_age_s: the age in seconds below which the answer may be used. An answer from the
        future may not be used, unless it is less than a minute ahead, as the clock of a file server
        can be.
    """
    for folder in _folders(cache):
        with suppress(OSError, msgspec.MsgspecError):
            handle = os.open(folder / _name(question), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                age = time.time() - status.st_mtime
                is_believed = is_own(status, stat.S_IFREG) and not status.st_mode & _BY_OTHERS
                if is_believed and -_AHEAD_S <= age < max_age_s:
                    return msgspec.json.decode(file.read(_MAX_BYTES), type=answer)
    return None


def remember(cache: Path, question: str, answer: msgspec.Struct) -> None:
    """Store the answer to a question, if one of the folders can be written."""
    for folder in _folders(cache):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(prefix=".partial-", dir=folder)  # its mode is 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(answer))
                Path(partial).replace(folder / _name(question))
            except BaseException:
                Path(partial).unlink(missing_ok=True)
                raise
            return


def _folders(cache: Path) -> Iterator[Path]:
    yield cache
    with suppress(FileNotFoundError):  # if no temporary folder can be written to
        yield Path(tempfile.gettempdir()) / f"sparklineage-{os.getuid()}"


def _name(question: str) -> str:
    return f".known-{hashlib.sha256(question.encode(errors='surrogatepass')).hexdigest()[:32]}.json"
