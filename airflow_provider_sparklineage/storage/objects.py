"""Files in the stores to which Airflow has access: one by one, or many at once within a budget.

:class:`Objects` accepts the URLs that Airflow's ``ObjectStoragePath`` accepts, and ``hdfs://`` also
without a connection.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.storage import hdfs
from airflow_provider_sparklineage.storage.bounded import (
    StoreError,
    ends_within,
    reason,
    settle,
    started,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.model.budget import Budget


# In these stores a file appears only when it is complete, there are no folders, and renaming a file
# copies it.
_OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
_CREATING = ("s3", "s3a")  # stores where a conditional write is known to work
_LOCAL = ("file", "local")
PACKAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "apache-airflow-providers-amazon[s3fs]"),
    **dict.fromkeys(("gs", "gcs"), "apache-airflow-providers-google"),
    **dict.fromkeys(("abfs", "abfss", "adl"), "apache-airflow-providers-microsoft-azure"),
}
"""The packages that have the file systems of the schemes, for Airflow."""
_MODULES = {
    **dict.fromkeys(("s3", "s3a"), "airflow.providers.amazon.aws.fs.s3"),
    **dict.fromkeys(("gs", "gcs"), "airflow.providers.google.cloud.fs.gcs"),
    **dict.fromkeys(("abfs", "abfss"), "airflow.providers.microsoft.azure.fs.adls"),
}
"""Airflow's modules with the file systems of the schemes."""
_LISTINGS = 10  # of a local folder, at most, if files are renamed during each
_FOLDER_MODE, _FILE_MODE = 0o770, 0o660  # the driver's user is another user of the same group


class Objects(Frozen, frozen=True):
    """The files below a URL that the user has configured.

    The permissions in the store decide which users may read the files. All methods may be called
    from several threads at once.

    :param is_for_group: whether new files and folders in the local file system, which may be a
        mounted one, can be read and written by the group of their owner, whatever the umask is
    """

    url: str
    is_for_group: bool = False

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that other processes see it complete or not at all.

        :param name: the path of the file below the URL
        :param content: the file's bytes
        """
        store, place = self._place(name)
        if self._scheme in _OBJECT_STORES:
            store.pipe_file(place, content)
            return
        part = f"{place}.{uuid.uuid4().hex}.part"
        folder = place.rpartition("/")[0]
        is_local = self.is_for_group and self._scheme == "file"
        is_new = is_local and not Path(folder).exists()
        store.makedirs(folder, exist_ok=True)
        try:
            if is_new:
                _open_to_group(folder, _FOLDER_MODE)
            store.pipe_file(part, content)
            if is_local:
                _open_to_group(part, _FILE_MODE)
            if self._scheme in _LOCAL:  # fsspec would move it into a folder that has this name
                Path(part).replace(place)
            else:
                store.mv(part, place)
        except BaseException:  # for example, no space is left, or the task's time is over
            with suppress(Exception):
                store.rm_file(part)
            raise

    def create(self, name: str, content: bytes) -> bool:
        """Write a file, but not over an existing file in S3; return whether it was written.

        In S3 the request has the condition that the file does not exist, so only one of two
        processes writes it. Other stores are not known to support such a condition, so there an
        existing file is overwritten.

        :param name: the path of the file below the URL
        :param content: the file's bytes
        :return: False if S3 refused the request because the file exists
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
        """Give the content of the file ``name``, or the first ``at_most`` bytes of it."""
        store, place = self._place(name)
        if self._scheme in _LOCAL:  # opening a pipe would wait for a process that writes to it
            with open_regular(Path(place)) as file:
                return file.read(-1 if at_most is None else at_most)
        content: bytes = store.cat_file(place, end=at_most)
        return content

    def download(self, name: str, into: Path) -> None:
        """Copy the file ``name``, of any size, to the path ``into`` on this machine."""
        store, place = self._place(name)
        store.get_file(place, str(into))

    def upload(self, name: str, file: Path) -> None:
        """Copy a local file of any size to the path ``name`` below the URL."""
        store, place = self._place(name)
        if self._scheme not in _OBJECT_STORES:
            store.makedirs(place.rpartition("/")[0], exist_ok=True)
        store.put_file(str(file), place)

    def remove(self, name: str) -> None:
        """Delete the file ``name`` below the URL; do nothing if it does not exist."""
        store, place = self._place(name)
        with suppress(FileNotFoundError):
            store.rm_file(place)

    def remove_folder(self, name: str) -> None:
        """Delete the folder ``name`` with its content; do nothing if it does not exist."""
        store, place = self._place(name)
        store.invalidate_cache()
        with suppress(FileNotFoundError):
            store.rm(place, recursive=True)

    def names(self, folder: str) -> list[str]:
        """List the names of a folder's files and folders; [] if the folder does not exist."""
        paths = self._listed(folder, detail=False)
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    def files(self, folder: str) -> dict[str, int]:
        """List the files in a folder, except links, with their sizes in bytes.

        :return: size by name; {} if the folder does not exist
        """
        return {
            info["name"].rpartition("/")[2]: int(info.get("size") or 0)
            for info in self._listed(folder, detail=True)
            if info.get("type") == "file" and not info.get("islink")
        }

    def _listed(self, folder: str, *, detail: bool) -> list[Any]:
        store, place = self._place(folder)
        tries_left = _LISTINGS
        while True:
            tries_left -= 1
            try:
                return list(store.ls(place, detail=detail, refresh=True))
            except FileNotFoundError:
                # In a local folder it may be a file that was renamed while the folder was listed.
                if self._scheme not in _LOCAL or not Path(place).exists():
                    return []
                if not tries_left:
                    raise

    def walk(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files below a folder, each with the time of its last write.

        If the folder does not exist, no files are yielded.

        :return: pairs of the file's path below the URL, and the time; the time is None if the store
            does not give it
        """
        (store, place), (_, root) = self._place(folder), self._place("")
        store.invalidate_cache()
        try:
            files = store.find(place, detail=True)
        except FileNotFoundError:
            return
        for name, info in files.items():
            yield name.removeprefix(root.rstrip("/")).lstrip("/"), _written(info)

    def forget(self) -> None:
        """Drop Airflow's connection to the store, so that the next call makes a new one.

        The new connection has new credentials: the old ones may be valid for an hour only.
        """
        if self._scheme not in hdfs.schemes:
            from airflow.sdk.io import attach

            conn_id, _, _ = self._parts
            _opened.pop((self._scheme, conn_id), None)
            vars(attach(self._scheme, conn_id)).pop("fs", None)

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def _parts(self) -> tuple[str | None, str, str]:
        """The connection's id, the host or bucket, and the folder."""
        authority, _, folder = self.url.partition("://")[2].partition("/")
        conn_id, _, host = authority.rpartition("@")
        return conn_id or None, host, folder

    def _place(self, name: str) -> tuple[Any, str]:
        """Give the file system of the URL, and the path of the file ``name`` in it.

        The methods do not use Airflow's path object, because it would record every file as a
        dataset of the task.
        """
        if self._scheme in hdfs.schemes:
            folder = urlsplit(self.url).path.rstrip("/")
            return hdfs.of_url(self.url), f"{folder}/{name}".rstrip("/") or "/"
        conn_id, host, folder = self._parts
        place = f"{f'{host}/{folder}'.rstrip('/')}/{name}".rstrip("/") or "/"
        if self._scheme in _LOCAL and not host:
            from fsspec.implementations.local import LocalFileSystem  # where Airflow is

            return LocalFileSystem(), place
        if self._scheme in _MODULES:
            with suppress(ImportError):  # below, Airflow says which package is missing
                return _open(self._scheme, conn_id), place
        from airflow.sdk import ObjectStoragePath

        try:
            path = ObjectStoragePath(self.url).joinpath(*name.split("/"))
            store = path.fs
        except ValueError as error:
            if "filesystem" not in str(error):  # the word in all messages of Airflow and fsspec
                raise
            package = PACKAGES.get(self._scheme, "the provider that has one")
            msg = f"Airflow has no file system for {self._scheme}://: install {package}"
            raise StoreError(msg) from error
        return store, path.path


_opened: dict[tuple[str, str | None], Any] = {}
_opening: defaultdict[tuple[str, str | None], Lock] = defaultdict(Lock)


def _open(scheme: str, conn_id: str | None) -> Any:
    """Give the file system of a store, the same to all threads, by Airflow's module for the scheme.

    To learn all schemes, Airflow would import the file systems of all providers that are installed,
    and with them the libraries of stores that the task has nothing to do with. A file system that
    Airflow has opened, or that the user has attached, is taken.

    :raise ImportError: if the provider or a package that it needs is not installed
    """
    from airflow.sdk.io import attach

    store = scheme, conn_id
    with _opening[store]:
        if (attached := vars(attach(scheme, conn_id)).get("fs")) is not None:
            return attached
        if store not in _opened:
            _opened[store] = import_module(_MODULES[scheme]).get_fs(conn_id)
        return _opened[store]


def _open_to_group(place: str, mode: int) -> None:
    with suppress(OSError):  # some mounts have no file modes
        Path(place).chmod(mode)


def _written(info: dict[str, object]) -> datetime | None:
    """Find the time of a file's last write, by the keys of different stores; else None.

    :param info: the file's entry in a listing by ``fsspec``
    """
    for key in ("mtime", "LastModified", "last_modified", "updated"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
    return None


_DOWNLOADS_AT_ONCE = 8  # more than processors, because a download mostly waits for answers
_DOWNLOAD_TRIES = 2


def downloaded(
    store: Objects, sizes: Mapping[str, int], folder: Path, budget: Budget
) -> Iterator[tuple[str, Path | StoreError]]:
    """Download files at the same time, and yield each when it has arrived, in the given order.

    When the budget is spent, no further download is begun, and unfinished downloads are not waited
    for: only files that have arrived are yielded.

    :param store: the store that has the files
    :param sizes: size in bytes by name, in the order of the result
    :param folder: an empty folder of this user; the caller has to remove the files in it
    :return: pairs of name and local file, or of name and error if the download failed
    """
    seconds = budget.left
    jobs = [(name, folder / str(n), Future[None]()) for n, name in enumerate(sizes)]
    waiting, ended = deque(jobs), Event()

    def work() -> None:
        with suppress(IndexError):  # no job is waiting any more
            while not ended.is_set():
                name, target, call = waiting.popleft()
                settle(call, partial(_download, store, name, sizes[name], target))

    # No ThreadPoolExecutor is used, because a process waits for its threads when it ends.
    for _ in range(min(_DOWNLOADS_AT_ONCE, len(jobs))):
        started(work, "sparklineage-download")
    try:
        for name, target, call in jobs:
            if not ends_within(budget, call):
                ended.set()
                continue
            error = call.exception()
            yield name, target if error is None else StoreError(reason(error, seconds))
    finally:
        ended.set()


def _download(store: Objects, name: str, size: int, target: Path) -> None:
    for tried in range(_DOWNLOAD_TRIES):
        try:
            store.download(name, target)
            break
        except OSError:  # for example, the connection broke
            if tried + 1 == _DOWNLOAD_TRIES:
                raise
    if (arrived := target.stat().st_size) != size:
        msg = f"{arrived} of its {size} bytes arrived"
        raise OSError(msg)
