"""Pods with a user and a file system of their own, on a node that the API knows.

A container has namespaces of Linux for users and mounts, which need no privilege
(``unshare --user``). Its root is a folder: what the image would bring is mounted there from this
machine, and nobody can write to it; the volumes are mounted where the pod has them. Its user has
the number that the pod asks for, and no rights of another one. Network and processes are this
machine's.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.spark.submit import commands
from tests.cluster.kubelet import QUICK, Kubelet, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = "node"
_IMAGE_USER = 185  # of Spark's images
_WORK_DIR = "/opt/spark/work-dir"
_CHECKOUT = Path(__file__).parents[2]
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "usr", "etc")


class ContainedPod(Pod):
    """A pod whose process sees the container's files alone."""

    @property
    def _context(self) -> dict[str, Any]:
        """What the container may do; its own settings come before those of the pod."""
        of_pod = self.found["spec"].get("securityContext") or {}
        return {**of_pod, **(self.container.get("securityContext") or {})}

    def _with_mounts(self, text: str) -> str:
        return text

    def _own_env(self) -> dict[str, str]:
        return {"HOME": "/opt/spark", "JAVA_TOOL_OPTIONS": QUICK}

    def _contained(self, command: list[str]) -> list[str]:
        user = f"--map-user={self._user} --map-group=0"
        place = f"--root={_quoted(self.root)} --wd={_WORK_DIR}"
        script = [
            "set -e",
            *self._mounts(),
            f"exec unshare --user {user} {place} -- {shlex.join(command)}",
        ]
        own = ["unshare", "--user", "--map-root-user", "--mount"]
        return [*own, "--", "sh", "-c", "\n".join(script)]

    def _mounts(self) -> Iterator[str]:
        """Yield the commands that make the container's file system in its root folder."""
        for path in (_WORK_DIR, "/tmp", "/dev", "/proc"):
            self._here(path).mkdir(parents=True, exist_ok=True)
        yield _mount(self.root, self.root)
        # Mounts of their own, which stay as they are when the root becomes read-only.
        for mount in self.container["volumeMounts"]:
            target = self._here(mount["mountPath"])
            yield _mount(target, target)
        for folder in _image(self._spark_home):
            target = self._here(str(folder))
            if folder.is_symlink():
                target.symlink_to(folder.readlink())
                continue
            target.mkdir(parents=True, exist_ok=True)
            yield _mount(folder, target)
            yield f"mount -o remount,bind,ro {_quoted(target)}"
        for name in ("dev", "proc"):
            yield f"mount --rbind /{name} {_quoted(self._here(name))}"
        passwd = self.folder / "passwd"
        passwd.write_text(f"spark:x:{self._user}:0::/opt/spark:/bin/sh\n")
        yield _mount(passwd, self._here("etc/passwd"))
        yield _mount(self._hosts, self._here("etc/hosts"))
        if self._context.get("readOnlyRootFilesystem"):
            yield f"mount -o remount,bind,ro {_quoted(self.root)}"

    @property
    def _user(self) -> int:
        user: int = self._context.get("runAsUser", _IMAGE_USER)
        return user


class Node(Kubelet):
    """The node of a real API server: pods are bound to it, and what was deleted is let go."""

    pod_class = ContainedPod

    def _take(self, found: dict[str, Any]) -> None:
        self._api.bind(found, NODE)


def _image(spark_home: Path) -> list[Path]:
    """Give what this machine has in place of the image's files, outer folders first."""
    java = commands.find_java(os.environ)
    assert java is not None
    found = {Path("/", name) for name in _SYSTEM if Path("/", name).exists()}
    roots = (_CHECKOUT, Path(sys.prefix), Path(sys.base_prefix), spark_home, java.parents[1])
    for folder in sorted(roots, key=lambda path: len(path.parts)):
        if not any(folder.is_relative_to(known) for known in found):
            found.add(folder)
    return sorted(found)


def _mount(source: Path, target: Path) -> str:
    return f"mount --bind {_quoted(source)} {_quoted(target)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
