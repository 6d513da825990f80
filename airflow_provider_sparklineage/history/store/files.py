"""Where a store keeps its files: a folder of this machine, or below a URL of Airflow's."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.storage.objects import Objects

_LOCAL = ("file", "local")

SCRATCH = "tmp"
"""The folder of what builds have on disk while they run."""


class Files(Protocol):
    """What a store asks of a place; names are relative to it, with ``/`` between."""

    def read(self, name: str) -> bytes:
        """Give what a file holds; raises :exc:`FileNotFoundError`."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file that appears complete or not at all, in place of one that is there."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; whether it was written."""

    def put(self, name: str, file: Path) -> None:
        """Bring a file there; it may be moved away from where it is."""

    def local(self, name: str) -> Path:
        """Give a file as one of this machine."""

    def names(self, folder: str) -> list[str]:
        """List what is in a folder, nothing if it is not there."""

    def remove(self, name: str) -> None:
        """Delete a file or a folder with all in it, if it is there."""

    def scratch(self) -> Path:
        """Make an empty folder of this machine, for files that are put there later."""


class Folder:
    """A folder of this machine, or mounted there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        return (self.root / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file next to its place, and move it there."""
        partial = self._partial(name, content)
        partial.replace(self.root / name)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file next to its place, and link it there, which fails where there is one."""
        partial = self._partial(name, content)
        try:
            (self.root / name).hardlink_to(partial)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def put(self, name: str, file: Path) -> None:
        """Move a file there."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)

    def local(self, name: str) -> Path:
        """Give the file itself."""
        return self.root / name

    def names(self, folder: str) -> list[str]:
        """List what is in a folder."""
        try:
            return [path.name for path in (self.root / folder).iterdir()]
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Delete a file or a folder."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def scratch(self) -> Path:
        """Make a folder on the same disk, so that files are moved and not copied."""
        folder = self.root / SCRATCH / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def _partial(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
        partial.write_bytes(content)
        return partial


class Remote:
    """Files that Airflow keeps elsewhere; what is read of them is kept here, as none ever changes.

    Not every such store can write a file only where there is none: two who start in the same
    instant notice it by what is there afterwards.
    """

    def __init__(self, url: str) -> None:
        self._objects = Objects(url)
        self._here = Path(tempfile.mkdtemp(prefix="sparklineage-history-"))

    def read(self, name: str) -> bytes:
        """Give what a file holds."""
        return self._objects.read(name)

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        self._objects.write(name, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none, and look whether it is still this one."""
        folder, _, last = name.rpartition("/")
        if last in self._objects.names(folder) or not self._objects.create(name, content):
            return False
        return self._objects.read(name) == content

    def put(self, name: str, file: Path) -> None:
        """Upload a file."""
        self._objects.upload(name, file)

    def local(self, name: str) -> Path:
        """Give a copy."""
        copy = self._here / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            partial = copy.with_name(f"{copy.name}.{uuid.uuid4().hex}.part")
            self._objects.download(name, partial)
            partial.replace(copy)
        return copy

    def names(self, folder: str) -> list[str]:
        """List what is in a folder."""
        return self._objects.names(folder)

    def remove(self, name: str) -> None:
        """Delete a file or a folder."""
        self._objects.remove_folder(name)

    def scratch(self) -> Path:
        """Make a folder where this machine keeps what is temporary."""
        return Path(tempfile.mkdtemp(dir=self._here))

    def __del__(self) -> None:
        shutil.rmtree(self._here, ignore_errors=True)


def files_of(url: str) -> Files:
    """Give the files of a path, or below a URL that Airflow's ``ObjectStoragePath`` takes."""
    parts = urlsplit(url)
    if "://" not in url:
        return Folder(Path(url).absolute())
    if parts.scheme in _LOCAL:
        return Folder(Path(unquote(parts.path)))
    return Remote(url)
