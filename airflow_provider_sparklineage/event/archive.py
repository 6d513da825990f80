"""The archive: every try's merged event in full, one JSON file each, where Airflow keeps objects.

::

    <archive_url>/<dag_id>/<run_id>/<task_id>/<map_index>/<try_number>.json

Each name is percent-encoded, so that a path leads to one try and no name out of the archive. A file
appears complete or not at all: it is written next to its place and moved there.

The store can be slow or away. Whatever is asked of it ends within :attr:`Archive.timeout_s`, as an
:exc:`ArchiveError`; what is still under way then is left to itself.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from airflow_provider_sparklineage.event.bounded import OutOfTimeError, within
from airflow_provider_sparklineage.event.validation import stored
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.truncation import truncated

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import ObjectStoragePath

    from airflow_provider_sparklineage.event.document import Written
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

T = TypeVar("T")

_SUFFIX = ".json"
# File systems end at 255 bytes, and a run id may have 250 characters of up to 12 bytes each.
_MAX_NAME = 200
_KEPT = 160
_LONGEST_REASON = 500


class Archive(Frozen, frozen=True):
    """An archive below a URL that Airflow's ``ObjectStoragePath`` takes.

    :param url: e.g. ``s3://aws_default@lineage/tasks``, ``file:///mnt/lineage``
    :param timeout_s: how long the store may take over each call
    """

    url: str
    timeout_s: float = 10.0

    def write(self, task: TaskIdentity, written: Written) -> None:
        """Keep the event of a try, in place of what was kept of it before.

        :raise ArchiveError: if the store did not take it in time
        """
        content = written.text

        def write() -> None:
            path = self._folder(task) / f"{task.try_number}{_SUFFIX}"
            # By the file system and not by the path, which notes every file as data of the task.
            store, name = path.fs, path.path
            partial = f"{name}.{uuid.uuid4().hex}.part"
            store.makedirs(name.rpartition("/")[0], exist_ok=True)
            store.pipe_file(partial, content)
            store.mv(partial, name)

        self._bounded(write, "written to")

    def read(self, task: TaskIdentity) -> dict[str, Any]:
        """Give the event of a try.

        :raise ArchiveError: if there is none, or the store did not give it in time
        :raise DocumentError: if what is there cannot be read
        """

        def read() -> bytes:
            path = self._folder(task) / f"{task.try_number}{_SUFFIX}"
            content: bytes = path.fs.cat_file(path.path)
            return content

        return stored(self._bounded(read, "read from"))

    def tries(self, task: TaskIdentity) -> list[int]:
        """List the tries of a task instance that have an event, the earliest first.

        :raise ArchiveError: if the store did not say so in time
        """

        def names() -> list[str]:
            path = self._folder(task)
            try:
                return list(path.fs.ls(path.path, detail=False, refresh=True))
            except FileNotFoundError:
                return []

        ends = (name.rpartition("/")[2] for name in self._bounded(names, "read from"))
        stems = (end.removesuffix(_SUFFIX) for end in ends if end.endswith(_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def within(self, timeout_s: float) -> Archive:
        """Give the same archive, asked for at most so long."""
        return replace(self, timeout_s=min(self.timeout_s, timeout_s))

    def _folder(self, task: TaskIdentity) -> ObjectStoragePath:
        from airflow.sdk import ObjectStoragePath

        return ObjectStoragePath(self.url).joinpath(
            *map(encoded, (task.dag_id, task.run_id, task.task_id, str(task.map_index)))
        )

    def _bounded(self, action: Callable[[], T], what: str) -> T:
        cause = None
        try:
            return within(self.timeout_s, action, "sparklineage-archive")
        except OutOfTimeError:
            why = f"no answer within {self.timeout_s:g} s"
        except Exception as error:  # whatever the store's library raises
            # It may have all that a server answered; half a secret would not be recognised.
            text = scrub(f"{type(error).__name__}: {error}")
            cause, why = error, truncated(text, _LONGEST_REASON)
        problem = f"The archive {self.url} could not be {what} ({why})."
        fix = "See [sparklineage] archive_url."
        raise ArchiveError(problem, fix) from cause


def encoded(name: str) -> str:
    """Make a name of a path out of any text; of a very long one, its start and a checksum."""
    text = quote(name.encode("utf-8", "surrogatepass"), safe="")
    if not text.strip("."):  # which would be the folder itself, or the one above
        text = text.replace(".", "%2E") or "%"
    if len(text) > _MAX_NAME:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        text = f"{text[:_KEPT]}~{digest}"
    return text
