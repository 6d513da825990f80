"""The files of an archive where Airflow keeps objects: what its ``ObjectStoragePath`` takes."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import ObjectStoragePath


class Objects(Frozen, frozen=True):
    """An archive of the user's own; whoever may read it is the user's choice."""

    url: str

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all."""
        # By the file system and not by the path, which notes every file as data of the task.
        path = self._path(name)
        store, place = path.fs, path.path
        partial = f"{place}.{uuid.uuid4().hex}.part"
        store.makedirs(place.rpartition("/")[0], exist_ok=True)
        store.pipe_file(partial, content)
        store.mv(partial, place)

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        path = self._path(name)
        content: bytes = path.fs.cat_file(path.path)
        return content

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        path = self._path(name)
        if path.fs.exists(path.path):
            path.fs.rm_file(path.path)

    def names(self, folder: str) -> list[str]:
        """List the files of a folder, none if it is not there."""
        path = self._path(folder)
        try:
            found = path.fs.ls(path.path, detail=False, refresh=True)
        except FileNotFoundError:
            return []
        return [name.rpartition("/")[2] for name in found]

    def walk(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files below a folder, with the time of their last write if the store has it."""
        path, root = self._path(folder), self._path("").path.rstrip("/")
        path.fs.invalidate_cache()
        for place, info in path.fs.find(path.path, detail=True).items():
            yield place.removeprefix(root).lstrip("/"), _written(info)

    def _path(self, name: str) -> ObjectStoragePath:
        from airflow.sdk import ObjectStoragePath

        return ObjectStoragePath(self.url).joinpath(*name.split("/"))


def _written(info: dict[str, object]) -> datetime | None:
    """Find the time of a file's last write under the names that stores have for it."""
    for key in ("mtime", "LastModified", "last_modified", "updated"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
    return None
