"""The files of the archive that is made if nobody configured one: a folder below ``AIRFLOW_HOME``.

What it holds is its user's alone, whatever the umask: folders are 0700, files 0600. A folder that
is another user's is refused. Nothing is imported to write to it, and a file takes a millisecond.
"""

from __future__ import annotations

import os
import random
import stat
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.bundle import is_due
from airflow_provider_sparklineage.spark.capture.ownership import is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

# No name of a DAG begins like this: in theirs all but letters, digits and "_.-~" is encoded.
_SWEPT = "=swept"
_INTERVAL = timedelta(hours=1)
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


class OwnFolder(Frozen, frozen=True):
    """A folder of this user."""

    root: Path

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all."""
        self._own()
        file = self.root / name
        try:
            self._write(file, content)
        except FileNotFoundError:  # swept, as it was empty still
            self._write(file, content)

    def _write(self, file: Path, content: bytes) -> None:
        _make(file.parent)
        partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(partial, flags, _PRIVATE_FILE)
        try:
            with os.fdopen(handle, "wb") as stream:
                os.fchmod(handle, _PRIVATE_FILE)
                stream.write(content)
            partial.replace(file)
        except BaseException:  # no space is left, or the task's time is up
            partial.unlink(missing_ok=True)
            raise

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        self._check()
        with open_regular(self.root / name) as stream:
            return stream.read()

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._check()
        (self.root / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """List the files of a folder, none if it is not there."""
        try:
            self._check()
            return [file.name for file in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []

    def walk(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files below a folder, with the time of their last write."""
        with suppress(FileNotFoundError):
            self._check()
            for file, written in _files(self.root / folder):
                yield str(file.relative_to(self.root)), written

    def sweep_at_times(self, *, older_than: timedelta, now: datetime, seconds: float) -> int:
        """Delete what was written longer ago than that, unless it was done within the hour.

        :param seconds: that it may take; what is left then is for another hour
        :return: how many files were deleted
        """
        self._own()
        if not is_due(self.root / f"{_SWEPT}-{os.getuid()}", min(_INTERVAL, older_than), now):
            return 0
        return self.sweep(older_than=older_than, now=now, seconds=seconds)

    def sweep(self, *, older_than: timedelta, now: datetime, seconds: float) -> int:
        """Delete what was written longer ago than that, and folders that are empty then."""
        until = time.monotonic() + seconds
        removed = 0
        for file, written in _files(self.root):
            if time.monotonic() > until:
                break
            if now - written > older_than and file.parent != self.root:
                with suppress(OSError):  # another process sweeps as well
                    file.unlink()
                    removed += 1
                    for folder in file.relative_to(self.root).parents[:-1]:
                        (self.root / folder).rmdir()  # which ends at the first that is not empty
        return removed

    def _own(self) -> None:
        """Make the folder if it is not there, and keep others out of it."""
        _make(self.root)
        if stat.S_IMODE(self._check().st_mode) != _PRIVATE_FOLDER:
            self.root.chmod(_PRIVATE_FOLDER)

    def _check(self) -> os.stat_result:
        status = self.root.stat()  # it may be a link of its user's to a larger disk
        if not is_own(status, stat.S_IFDIR):
            msg = f"{self.root} is no folder of this user (its owner has the id {status.st_uid})"
            raise PermissionError(msg)
        return status


def _make(folder: Path) -> None:
    try:
        folder.mkdir(_PRIVATE_FOLDER)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make(folder.parent)
        _make(folder)
        return
    folder.chmod(_PRIVATE_FOLDER)


def _files(folder: Path) -> Iterator[tuple[Path, datetime]]:
    """Yield the files below a folder; links are not followed.

    In no order, so that who has no time for all begins with others the next time.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        entries = list(found)
        random.shuffle(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry))
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    modified = entry.stat(follow_symlinks=False).st_mtime
                    yield Path(entry), datetime.fromtimestamp(modified, UTC)
