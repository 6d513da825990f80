"""A file system as Airflow's, in a folder of this machine: what a store does well, and badly."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

URL = "store://connection@lake/lineage"


class LocalStore:
    """Those methods of fsspec's file systems that are used; what is asked is counted.

    :param root: what :data:`URL` is
    :ivar before: called with the name of a method and a path, before that does anything
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str, str], None] = lambda *_: None
        self.forgotten = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
        """Have every URL lead here."""

        def place(objects: Objects, name: str) -> tuple[LocalStore, str]:
            folder = self.root / objects.url.removeprefix(URL).strip("/")
            return self, str(folder / name)

        def forget(_: Objects) -> None:
            self.forgotten += 1

        monkeypatch.setattr(Objects, "_place", place)
        monkeypatch.setattr(Objects, "forget", forget)
        return self

    def ls(self, path: str, *, detail: bool, refresh: bool) -> list[Any]:
        self._asked("ls", path)
        assert refresh, "what was there before is no answer"
        found: list[Any] = []
        for file in sorted(Path(path).iterdir(), reverse=True):  # no order to rely on
            with suppress(FileNotFoundError):  # renamed by another thread meanwhile
                found.append(self.info(file) if detail else str(file))
        return found

    def info(self, file: Path) -> dict[str, Any]:
        kind = "file" if file.is_file() else "directory" if file.is_dir() else "other"
        status = file.lstat()
        return {
            "name": str(file),
            "size": status.st_size,
            "type": kind,
            "islink": file.is_symlink(),
            "mtime": status.st_mtime,
        }

    def cat_file(self, path: str, end: int | None = None) -> bytes:
        self._asked("cat_file", path)
        return Path(path).read_bytes()[:end]

    def get_file(self, path: str, target: str) -> None:
        self._asked("get_file", path)
        shutil.copyfile(path, target)

    def makedirs(self, path: str, *, exist_ok: bool) -> None:
        Path(path).mkdir(parents=True, exist_ok=exist_ok)

    def pipe_file(self, path: str, content: bytes) -> None:
        self._asked("pipe_file", path)
        Path(path).write_bytes(content)

    def mv(self, path: str, target: str) -> None:
        Path(path).rename(target)

    def rm_file(self, path: str) -> None:
        self._asked("rm_file", path)
        Path(path).unlink()

    def rm(self, path: str, *, recursive: bool) -> None:
        self._asked("rm", path)
        assert recursive
        if not Path(path).exists():
            raise FileNotFoundError(path)
        shutil.rmtree(path)

    def find(self, path: str, *, detail: bool) -> dict[str, dict[str, Any]]:
        self._asked("find", path)
        if Path(path).is_file():
            return {path: {}}  # as fsspec does
        return {str(f): self.info(f) for f in Path(path).rglob("*") if f.is_file() and detail}

    def invalidate_cache(self) -> None:
        pass

    def _asked(self, method: str, path: str) -> None:
        self.calls[method] += 1
        self.before(method, path)
