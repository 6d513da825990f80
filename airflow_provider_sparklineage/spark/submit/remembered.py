"""Answers that take seconds to find out, kept for the next tasks of this user: small files of JSON.

They lie next to the fetched listeners, or, if that folder cannot be written (as in an image's
cache), in the user's own folder of the temporary folder. A file of another user is not believed.
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
"""For so long, tasks do not repeat a slow attempt that failed."""
_AHEAD_S = 60.0
_MAX_BYTES = 1 << 16
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def recall(cache: Path, question: str, answer: type[T], max_age_s: float = A_DAY_S) -> T | None:
    """Give the kept answer to a question; None if no kept answer can be believed.

    :param max_age_s: how old the answer may be. An answer from the future counts as too old, unless
        it is only a little ahead, as the clock of a file server can be.
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
    """Keep the answer to a question, if a folder can be written."""
    for folder in _folders(cache):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(prefix=".partial-", dir=folder)  # which is 0600
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
    with suppress(FileNotFoundError):  # there is no temporary folder that can be written to
        yield Path(tempfile.gettempdir()) / f"sparklineage-{os.getuid()}"


def _name(question: str) -> str:
    return f".known-{hashlib.sha256(question.encode(errors='surrogatepass')).hexdigest()[:32]}.json"
