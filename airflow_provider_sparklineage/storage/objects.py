"""Files where Airflow keeps objects: one by one, or many at once, in order and in time.

:class:`Objects` takes the URLs that Airflow's ``ObjectStoragePath`` takes, and ``hdfs://`` without
a connection as well.
"""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.storage import hdfs
from airflow_provider_sparklineage.storage.bounded import StoreError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.model.budget import Budget


# Files where Airflow keeps objects: what its ``ObjectStoragePath`` takes.


# Here a file appears when all of it has come, there are no folders, and to rename is to copy.
_OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
_CREATING = ("s3", "s3a")  # where a condition on a write is known to work
_FOLDER_MODE, _FILE_MODE = 0o770, 0o660  # the driver's user is another one of the group


class Objects(Frozen, frozen=True):
    """Files below a URL that is the user's own; whoever may read them is the user's choice.

    All of it may be used from several threads at once.

    :param is_for_group: whether what is written on a mount is for the group, whatever the umask,
        and for nobody else
    """

    url: str
    is_for_group: bool = False

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all."""
        store, place = self._place(name)
        if self._scheme in _OBJECT_STORES:
            store.pipe_file(place, content)
            return
        partial = f"{place}.{uuid.uuid4().hex}.part"
        folder = place.rpartition("/")[0]
        is_local = self.is_for_group and self._scheme == "file"
        is_new = is_local and not Path(folder).exists()
        store.makedirs(folder, exist_ok=True)
        try:
            if is_new:
                _open_to_group(folder, _FOLDER_MODE)
            store.pipe_file(partial, content)
            if is_local:
                _open_to_group(partial, _FILE_MODE)
            store.mv(partial, place)
        except BaseException:  # no space is left, or the task's time is up
            with suppress(Exception):
                store.rm_file(partial)
            raise

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; whether it was written.

        Only S3 tells two who do that in the same instant apart, by a condition of its own.
        """
        store, place = self._place(name)
        if self._scheme not in _CREATING:
            self.write(name, content)
            return True
        try:
            store.pipe_file(place, content, mode="create")
        except FileExistsError:
            return False
        return True

    def read(self, name: str, at_most: int | None = None) -> bytes:
        """Give what a file holds, or its first bytes."""
        store, place = self._place(name)
        content: bytes = store.cat_file(place, end=at_most)
        return content

    def download(self, name: str, into: Path) -> None:
        """Copy a file to this machine, however large it is."""
        store, place = self._place(name)
        store.get_file(place, str(into))

    def upload(self, name: str, file: Path) -> None:
        """Copy a file of this machine there, however large it is."""
        store, place = self._place(name)
        if self._scheme not in _OBJECT_STORES:
            store.makedirs(place.rpartition("/")[0], exist_ok=True)
        store.put_file(str(file), place)

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        store, place = self._place(name)
        with suppress(FileNotFoundError):
            store.rm_file(place)

    def remove_folder(self, name: str) -> None:
        """Delete a folder and all that is in it, if it is there."""
        store, place = self._place(name)
        store.invalidate_cache()
        with suppress(FileNotFoundError):
            store.rm(place, recursive=True)

    def names(self, folder: str) -> list[str]:
        """List the files and folders of a folder, none if it is not there."""
        store, place = self._place(folder)
        try:
            found = store.ls(place, detail=False, refresh=True)
        except FileNotFoundError:
            return []
        return [name.rstrip("/").rpartition("/")[2] for name in found]

    def files(self, folder: str) -> dict[str, int]:
        """List the files of a folder with their sizes, none if it is not there; no links."""
        store, place = self._place(folder)
        try:
            found = store.ls(place, detail=True, refresh=True)
        except FileNotFoundError:
            return {}
        return {
            info["name"].rpartition("/")[2]: int(info.get("size") or 0)
            for info in found
            if info.get("type") == "file" and not info.get("islink")
        }

    def walk(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files below a folder, with the time of their last write if the store has it."""
        (store, place), (_, root) = self._place(folder), self._place("")
        store.invalidate_cache()
        try:
            found = store.find(place, detail=True)
        except FileNotFoundError:
            return
        for name, info in found.items():
            yield name.removeprefix(root.rstrip("/")).lstrip("/"), _written(info)

    def forget(self) -> None:
        """Have Airflow connect anew: what it was given at first may have been valid for an hour."""
        if self._scheme not in hdfs.schemes:
            from airflow.sdk import ObjectStoragePath
            from airflow.sdk.io import attach

            path = ObjectStoragePath(self.url)
            vars(attach(path.protocol or "file", path.conn_id)).pop("fs", None)

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0]

    def _place(self, name: str) -> tuple[Any, str]:
        """Give the file system, and where a file is in it.

        By the file system and not by the path, which notes every file as data of the task.
        """
        if self._scheme in hdfs.schemes:
            folder = urlsplit(self.url).path.rstrip("/")
            return hdfs.of_url(self.url), f"{folder}/{name}".rstrip("/") or "/"
        from airflow.sdk import ObjectStoragePath

        path = ObjectStoragePath(self.url).joinpath(*name.split("/"))
        return path.fs, path.path


def _open_to_group(place: str, mode: int) -> None:
    with suppress(OSError):  # not every mount has modes
        Path(place).chmod(mode)


def _written(info: dict[str, object]) -> datetime | None:
    """Find the time of a file's last write under the names that stores have for it."""
    for key in ("mtime", "LastModified", "last_modified", "updated"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
    return None


_DOWNLOADS_AT_ONCE = 8  # each waits for answers most of the time
_DOWNLOAD_TRIES = 2
_LOOK_S = 0.2


def downloaded(
    store: Objects, sizes: Mapping[str, int], folder: Path, budget: Budget
) -> Iterator[tuple[str, Path | StoreError]]:
    """Yield files in the order of their names as given, each when it is here, or why it is not.

    Ends with the budget; what is not here by then is not yielded, and what hangs is left to itself.

    :param sizes: of the files, by name
    :param folder: an empty one of this user's; the files in it are the caller's to remove
    """
    begun = budget.left
    jobs = [(name, folder / str(n), Future[None]()) for n, name in enumerate(sizes)]
    waiting, ended = deque(jobs), threading.Event()

    def run() -> None:
        with suppress(IndexError):  # there are no more
            while not ended.is_set():
                name, target, future = waiting.popleft()
                try:
                    _download(store, name, sizes[name], target)
                except Exception as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)

    for _ in range(min(_DOWNLOADS_AT_ONCE, len(jobs))):
        context = contextvars.copy_context()
        # Not those of an executor, for which the process would wait when it ends.
        threading.Thread(
            target=context.run, args=(run,), daemon=True, name="sparklineage-download"
        ).start()
    try:
        for name, target, future in jobs:
            while not future.done():
                if budget.is_spent():
                    return
                with suppress(TimeoutError):
                    future.exception(max(0.0, min(_LOOK_S, budget.left)))
            failed = future.exception()
            if failed is None:
                yield name, target
            else:
                yield name, StoreError(reason(failed, begun))
    finally:
        ended.set()


def _download(store: Objects, name: str, size: int, target: Path) -> None:
    for tried in range(_DOWNLOAD_TRIES):
        try:
            store.download(name, target)
            break
        except OSError:  # a connection that broke
            if tried + 1 == _DOWNLOAD_TRIES:
                raise
    if (found := target.stat().st_size) != size:
        msg = f"{found} of its {size} bytes arrived"
        raise OSError(msg)
