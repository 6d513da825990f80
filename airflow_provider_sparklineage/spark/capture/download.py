"""The segments of a try in a work folder of its bundle: downloaded, and joined to whole files.

A :class:`Download` fetches segments, the most important first, and joins them in the order of their
lines. A :class:`Follower` fetches them while the job runs, so that few are left when it has ended.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.storage.bounded import StoreError
from airflow_provider_sparklineage.storage.objects import Objects, downloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logger(__name__)

_CHUNK = 1024 * 1024
_FIRST_S = 60.0
"""The time after which the first segments are fetched: most jobs have ended by then."""
_LONGEST_S = 600.0
_THINNING = 20  # a pause lasts at least 1/20 of the job's age, up to _LONGEST_S
_STOP_S = 1.0


class Download:
    """The segments that were downloaded into a work folder, which :meth:`remove` deletes.

    :param store: the try's remote folder
    :param into: the folder of the bundle, in which the work folder is made
    :ivar files: the downloaded files by their names in the remote folder
    :ivar sizes: their sizes in bytes, by the same names
    """

    def __init__(self, store: Objects, into: Path) -> None:
        self._store = store
        self._into = into
        self._work: tempfile.TemporaryDirectory[str] | None = None
        self.files: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}

    def fetch(self, sizes: Mapping[str, int], budget: Budget) -> dict[str, StoreError]:
        """Download the files that are not here yet, in the given order, as long as there is time.

        :param sizes: sizes in bytes by the names in the remote folder
        :return: the errors, by name, of the files that could not be downloaded
        :raise OSError: if there is no room for a folder
        """
        failed = {}
        missing = {name: size for name, size in sizes.items() if self.sizes.get(name) != size}
        if not missing:
            return {}
        if self._work is None:
            # Errors of the cleanup are ignored, because a download that hangs may still write to
            # the folder.
            self._work = tempfile.TemporaryDirectory(
                prefix=".delivered-", dir=self._into, ignore_cleanup_errors=True
            )
        folder = Path(tempfile.mkdtemp(dir=self._work.name))
        for name, file in downloaded(self._store, missing, folder, budget):
            if isinstance(file, StoreError):
                failed[name] = file
            else:
                self.files[name], self.sizes[name] = file, missing[name]
        return failed

    def within(self, folder: str) -> dict[str, int]:
        """Give the sizes of the downloaded files of a folder, by their names in it."""
        prefix = f"{folder}/"
        return {
            name.removeprefix(prefix): size
            for name, size in self.sizes.items()
            if name.startswith(prefix)
        }

    def join(self, names: Mapping[str, str], budget: Budget) -> list[str]:
        """Join downloaded files to files of the bundle, which replace those of the same name.

        :param names: the names in the remote folder, in the order of their lines, each with the
            name of the bundle's file; the files that are not here are left out
        :return: sentences about the files for which there was no room or no time
        """
        here = [name for name in names if name in self.files]
        if self._work is None:
            return []
        lost, work = [], Path(self._work.name)
        with ExitStack() as opened:
            wholes: dict[str, IO[bytes]] = {}
            for done, name in enumerate(here):
                left = len(here) - done
                if budget.is_spent():
                    lost.append(f"{left} file(s) could not be joined in time.")
                    break
                try:
                    target = names[name]
                    if target not in wholes:
                        whole = _opened(work / target)
                        wholes[target] = opened.enter_context(whole)
                    _append(self.files[name], wholes[target])
                except OSError as error:  # no space is left
                    lost.append(f"The worker could not keep {left} file(s) of it ({error}).")
                    break
        for target in wholes:
            (work / target).replace(self._into / target)
        return lost

    def remove(self) -> None:
        """Delete the work folder."""
        if self._work is not None:
            self._work.cleanup()


def _opened(file: Path) -> IO[bytes]:
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


def _append(segment: Path, whole: IO[bytes]) -> None:
    """Append all the lines of a segment to a file, or none of them; then remove the segment.

    :param segment: the path of the downloaded segment
    :param whole: the file, which is open
    :raise OSError: if the disk is full
    """
    before = whole.seek(0, os.SEEK_END)
    try:
        with open_regular(segment) as source:
            shutil.copyfileobj(source, whole, _CHUNK)
        whole.flush()
        end = whole.tell()
        if end > before and os.pread(whole.fileno(), 1, end - 1) != b"\n":
            whole.write(b"\n")  # or two lines would become one
            whole.flush()
    except OSError:
        os.ftruncate(whole.fileno(), before)
        raise
    segment.unlink()


class Follower:
    """A thread that downloads what drivers deliver, as long as the job runs.

    Its errors are only logged, because all files can be downloaded when the job has ended.

    :param download: the download, which nobody else uses before :meth:`stop`
    :param look: gives the sizes of the present segments by name, in the order of their lines
    """

    def __init__(self, download: Download, look: Callable[[], Mapping[str, int]]) -> None:
        self.download = download
        self._look = look
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparklineage-follow", daemon=True)
        self._thread.start()

    def stop(self) -> Download:
        """End the thread, and give the download; a call that hangs in it is left to itself."""
        self._stopped.set()
        self._thread.join(_STOP_S)
        return self.download

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stopped.wait(self._pause(time.monotonic() - begun)):
            with suppress(Exception):
                self.follow()

    @staticmethod
    def _pause(age: float) -> float:
        return max(_FIRST_S, min(age / _THINNING, _LONGEST_S))

    def follow(self) -> None:
        """Download the segments that are there now."""
        sizes = self._look()
        if not self._stopped.is_set():
            unstopped = Budget(lambda: 0.0 if self._stopped.is_set() else 1.0)
            for name, error in self.download.fetch(sizes, unstopped).items():
                log.debug("%s could not be read: %s", name, error)
