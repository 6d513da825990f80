"""The capture bundle: one private directory for each try, with all files that merging needs.

======================  =====================================================================
``events.ndjson``       from the listener: one OpenLineage RunEvent a line
``observations.ndjson`` from the observer in the driver: one query a line
``manifest.json``       from the worker: :class:`Manifest`
======================  =====================================================================

``execute()``, ``sparklineage merge`` and a bug report read the same bundle and get the same answer.
The manifest holds no secret. The other two files hold reports of Spark, with errors and filters,
and these may contain secrets: secrets are removed when a report is sent or shown, not in the
files. So all files are readable for this user alone.

Bundles lie below a :class:`CaptureLocation`. :func:`create` makes a bundle, :func:`load` opens it,
and :func:`sweep` deletes it long after its try has ended or its worker was killed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import stat
import tempfile
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.degradations import Degradation
from airflow_provider_sparklineage.model.exceptions import CaptureError, SettingsError
from airflow_provider_sparklineage.model.last_run import LastRun
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.representation import (
    MAX_KEPT_BYTES,
    Intermediates,
    Limits,
    MismatchPolicy,
    Representation,
)
from airflow_provider_sparklineage.model.rules import PartitionRules
from airflow_provider_sparklineage.model.terms import (
    EVENTS,
    MANIFEST,
    OBSERVATIONS,
    Frozen,
    JobName,
)
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.capture.lines import (
    ReadReport,
    content_of,
    decoded,
    lines_of,
    opened,
)
from airflow_provider_sparklineage.spark.capture.ownership import exposed, is_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.spark.capture.events import SparkEvent
    from airflow_provider_sparklineage.spark.capture.lines import LongLine
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        ObservationReport,
    )
    from airflow_provider_sparklineage.spark.capture.ownership import Lock


# How long a sweep may hold the lock of a new bundle, until it sees that the bundle is new.
_SWEEPER_S = 2.0


class TaskIdentity(msgspec.Struct, frozen=True):
    """The try that a bundle belongs to, in Airflow's terms."""

    dag_id: str
    task_id: str
    run_id: str
    try_number: int
    map_index: int = -1


class Worker(msgspec.Struct, frozen=True):
    """The worker that made a bundle, by host and process id: look there if the try never ends."""

    host: str
    pid: int


OBSERVER = "observer"
"""The key, in :attr:`Manifest.versions`, of the digest of the observer that the driver should
have."""


class DriverAttempt(msgspec.Struct, frozen=True):
    """One of several drivers that a cluster started for one application.

    :param number: the cluster's number of the attempt, which is 1 for the first one
    :param started: the time at which it began to deliver, by its own clock
    """

    number: int
    started: datetime


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worker's knowledge of a try; ``event/schemas/manifest.json`` is the manifest's schema."""

    application_run_id: str
    """The OpenLineage run id that the listener uses for the application."""
    version: int = 1
    task: TaskIdentity | None = None
    worker: Worker | None = None
    job: JobName | None = None
    """OpenLineage job of the task."""
    run_id: str = ""
    """OpenLineage run id of the Airflow task's try."""
    started: datetime | None = None
    ended: datetime | None = None
    outcome: Literal["", "COMPLETE", "FAIL"] = ""
    """COMPLETE or FAIL after the try has ended; empty while the try runs, and if its worker was
    killed."""
    declared_inputs: tuple[DatasetName, ...] = ()
    """Datasets of ``inlets`` and ``reads``, as the listener names them."""
    declared_outputs: tuple[DatasetName, ...] = ()
    """Datasets of ``outlets`` and ``writes``."""
    expectations: tuple[Expectation, ...] = ()
    """The datasets and partitions that templates and declarations expect to be read and written."""
    naming: dict[str, str] = {}
    """The user's Spark properties that change how datasets are named."""
    partitioning: list[dict[str, Any]] = []
    """The partition rules of the organisation."""
    max_partitions: int = 100
    bare_partitions: bool = False
    max_event_bytes: int = MAX_KEPT_BYTES
    """The most bytes of the event that is kept; the event that is sent has a limit of its own."""
    redact_literals: bool = False
    on_partition_mismatch: str = "warn"
    check_partitions_of: tuple[str, ...] = ()
    """The datasets to which ``on_partition_mismatch`` applies; empty for all."""
    column_lineage: str = "compact"
    intermediate_datasets: str = "keep"
    lineage_facet: bool = False
    backend: str = "generic"
    """The lineage backend that the try's event was sent to; an unknown backend counts as generic.
    The merged lineage does not depend on the backend, except for declared outputs that were not
    written."""
    last_known: LastRun | None = None
    """The datasets that the last successful run read and wrote, if they are carried forward to this
    run; see :mod:`airflow_provider_sparklineage.lineage.declared_and_last_known`."""
    injected: tuple[str, ...] = ()
    """The names (never the values) of the Spark properties, jars and environment variables that
    were added to the job."""
    versions: dict[str, str] = {}
    """The versions of Spark, Airflow and so on, by name; :data:`OBSERVER` has a digest."""
    settings: dict[str, str] = {}
    remote: str = ""
    """URL of the folder to which a driver in a cluster delivers its capture, as Airflow knows the
    folder; empty if the driver writes into the bundle."""
    reached_tools: tuple[str, ...] = ()
    """URLs of the marks in the tools folder that are deleted if no driver delivers."""
    unreached_tools: tuple[str, ...] = ()
    """URLs of the marks in the tools folder that are written when a driver has delivered."""
    attempts: tuple[DriverAttempt, ...] = ()
    """The drivers that delivered, in their order; empty if the first driver was the only one."""
    of_command: bool = False
    """Whether spark-submit is in a command of the user's own. Such a bundle is not merged when the
    task has ended."""
    degradations: tuple[Degradation, ...] = ()
    """The degradations that the worker knew before merging; none of them is about one dataset."""

    @property
    def try_number(self) -> int:
        """The number of the try; 0 if no task made the bundle."""
        return self.task.try_number if self.task else 0

    @property
    def locator(self) -> Locator:
        """The locator, which finds the dataset and partition of each path accessed in this try."""
        return Locator(
            Naming.from_properties(self.naming), PartitionRules.from_documents(self.partitioning)
        )

    @property
    def intermediates(self) -> Intermediates:
        """The rule on intermediate datasets, which the job wrote and read back.

        The datasets that the rule names are left out of the outputs.

        :raise ValueError: if the manifest has a value that is not such a rule
        """
        return Intermediates.parse(self.intermediate_datasets)

    @property
    def limits(self) -> Limits:
        """The limit on the number of partitions that the event names for a dataset."""
        return Limits(self.max_partitions)

    @property
    def representation(self) -> Representation:
        """The form in which the event shows the lineage."""
        return Representation(
            self.bare_partitions,
            self.lineage_facet,
            self.max_event_bytes,
            self.redact_literals,
            MismatchPolicy(self.on_partition_mismatch, self.check_partitions_of),
        )


# The readers of events and observations are imported when a bundle is read: a submission waits for
# imports, and reads no bundle.
class CaptureBundle(Frozen, frozen=True):
    """The bundle of one try; ``path`` is None if no directory could be made."""

    path: Path | None
    manifest: Manifest
    report: ReadReport = msgspec.field(default_factory=ReadReport)
    lock: Lock | None = None
    """The lock by which the process that made the bundle keeps other processes from deleting it;
    None in other processes."""

    is_in_order: ClassVar[bool] = True
    """Whether :meth:`events` gives the events in the order in which one listener wrote them."""

    @property
    def events_path(self) -> Path | None:
        """The file to which the listener writes; None if the bundle has no directory."""
        return self.path / EVENTS if self.path else None

    @property
    def observations_path(self) -> Path | None:
        """The file to which the observer writes; None if the bundle has no directory."""
        return self.path / OBSERVATIONS if self.path else None

    def events(self, past_deadline: Callable[[], bool] = lambda: False) -> Iterator[SparkEvent]:
        """Read the listener's events; add counts and problems to :attr:`report`.

        :param past_deadline: is called before each line; if it returns True, reading ends
        :raise CaptureError: if the file exists but cannot be read
        """
        from airflow_provider_sparklineage.spark.capture.events import read_events

        with self._lines(self.events_path, past_deadline) as lines:
            yield from read_events(lines, self.report, source=EVENTS, past_deadline=past_deadline)

    def observations(
        self, report: ObservationReport, past_deadline: Callable[[], bool] = lambda: False
    ) -> Iterator[ObservationRecord]:
        """Read the observer's records, if there are any.

        :param report: receives counts and problems while the records are read
        :param past_deadline: is called before each line; if it returns True, reading ends
        :raise CaptureError: if the file exists but cannot be read
        """
        from airflow_provider_sparklineage.spark.capture.observations import read_observations

        with self._lines(self.observations_path, past_deadline) as lines:
            yield from read_observations(lines, report, past_deadline)

    def clock_put_back(self, past_deadline: Callable[[], bool]) -> timedelta | None:
        """Find by how much the driver's clock was put back.

        :param past_deadline: is called before each line; if it returns True, reading ends
        :return: None if the observer's records do not show it, or if their file cannot be read:
            :meth:`observations` reports that error
        """
        from airflow_provider_sparklineage.spark.capture.observations import clock_put_back

        try:
            with self._lines(self.observations_path, past_deadline) as lines:
                return clock_put_back(lines, past_deadline)
        except CaptureError:
            return None

    @contextmanager
    def _lines(
        self, path: Path | None, past_deadline: Callable[[], bool]
    ) -> Iterator[Iterator[bytes | LongLine]]:
        """Open a file of the bundle and give its lines; none if the file does not exist.

        :param path: the path of the file; None if the bundle has no directory
        :param past_deadline: a function that tells whether the time is over; called only while a
            long line is skipped
        """
        if path is None or not os.path.lexists(path):
            yield iter(())
            return
        with opened(path, CaptureError) as stream:
            yield lines_of(stream, past_deadline)

    def noted(self, *degradations: Degradation, **changes: Any) -> CaptureBundle:
        """Give the bundle with a changed manifest; save the manifest if that is possible.

        :param degradations: degradations to add, unless the manifest has them
        :param changes: new values of fields of the manifest, by the names of the fields
        """
        manifest = replace(self.manifest, **changes)
        known = dict.fromkeys((*manifest.degradations, *degradations))
        manifest = replace(manifest, degradations=tuple(known))
        bundle = replace(self, manifest=manifest)
        with suppress(CaptureError):  # if the bundle is kept, the try saves it once more at its end
            bundle.save()
        return bundle

    def save(self) -> None:
        """Write the manifest, as a whole or not at all.

        :raise CaptureError: if the directory is gone or full, or the manifest has a value that
            does not fit into JSON
        """
        if self.path is None:
            return
        if self.path.is_symlink():  # a job can change its own bundle in any way
            msg = f"{self.path} was replaced by a link; no manifest is written where it leads."
            raise CaptureError(msg)
        try:
            partial = self.path / f".{MANIFEST}"
            write_private(partial, encoded(self.manifest))
            partial.replace(self.path / MANIFEST)
        except (OSError, TypeError, ValueError) as error:
            msg = f"The manifest cannot be written to {self.path}: {error}"
            raise CaptureError(msg) from error

    def release(self) -> None:
        """Release the lock, so that other processes can delete the bundle when it is old enough."""
        if self.lock is not None:
            self.lock.release()

    def remove(self) -> None:
        """Delete the bundle's directory and all files in it."""
        self.release()
        if self.path is not None:
            remove(self.path)


def encoded(manifest: Manifest) -> bytes:
    """Give the content of the file ``manifest.json``.

    :raise TypeError: if a value of the manifest has a type that does not fit into JSON; for other
        values that do not fit, a ValueError
    """
    return msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"


def create(location: Path, manifest: Manifest, *, is_found_by_name: bool = False) -> CaptureBundle:
    """Make the bundle of a try below ``location``, with the manifest and an empty file for events.

    :param location: the folder of all bundles; it is made if it is missing
    :param is_found_by_name: whether another process has to find the bundle of this try: then its
        name is made of the try alone, and a bundle of this name is removed
    :raise CaptureError: if the location is not a directory that only this user can write to, or
        the bundle cannot be made in it
    """
    try:
        for missing in [folder for folder in location.parents if not folder.exists()][::-1]:
            missing.mkdir(mode=0o755, exist_ok=True)  # also where the umask is 0
        location.mkdir(mode=0o700, exist_ok=True)
        require_private(location)
        prefix = "try-"
        if manifest.task:
            prefix = f"{name_of_tries(manifest.task)}{manifest.task.try_number}-"
        if is_found_by_name:
            path = location / f"{prefix}{manifest.application_run_id[:8]}"
            remove(path)  # left by an earlier execution of the same try, as in `tasks test`
            path.mkdir(mode=0o700)
        else:
            path = Path(tempfile.mkdtemp(prefix=prefix, dir=location))  # mkdtemp makes it 0700
    except OSError as error:
        problem = f"No capture bundle can be made in {location}: {error}."
        fix = "Set [sparklineage] capture_location to a directory that the worker can write to."
        raise CaptureError(problem, fix) from error
    lock = None
    with suppress(OSError):  # without locks, no sweep deletes a bundle
        lock = ownership.acquire_lock(path, _SWEEPER_S)
    bundle = CaptureBundle(path, manifest, lock=lock)
    try:
        bundle.save()
        write_private(
            path / EVENTS, b""
        )  # a file that the listener made would be readable for others
    except OSError as error:
        bundle.remove()
        msg = f"The capture bundle {path} cannot be written to: {error}."
        raise CaptureError(msg) from error
    except CaptureError:
        bundle.remove()
        raise
    return bundle


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read, at any umask; refuse a path that is a link.

    :param content: the new content, which replaces that of an existing file
    :raise OSError: if the path is a link, or the file cannot be written
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def name_of_tries(task: TaskIdentity) -> str:
    """Give the text with which the names of all bundles of a task begin, before the try number.

    :param task: any try of the task
    :return: such as ``my_dag.my_task-try``
    """
    return f"{_slug(task.dag_id)}.{_slug(task.task_id)}-try"


def is_name(name: str) -> bool:
    """Whether a name has the form of the names that :func:`create` gives to bundles."""
    return re.fullmatch(r"(?:.+-try\d+|try)-[a-z0-9_]{8}", name) is not None


def collect_command(task: TaskIdentity, *more: str) -> str:
    """Give the shell command that collects the lineage of a task later.

    :param more: further arguments of the command
    """
    words = ["airflow", "sparklineage", "collect", task.run_id]
    return shlex.join([*words, "--dag", task.dag_id, "--task", task.task_id, *more])


def may_be_of(name: str, dag_id: str, task_id: str) -> bool:
    """Whether a bundle of that name can belong to the DAG and task; an empty id fits all names.

    Names do not have the full ids, so the bundle may also belong to another DAG or task.
    """
    starts = not dag_id or name.startswith(f"{_slug(dag_id)}.")
    return starts and (not task_id or f".{_slug(task_id)}-try" in name)


def remove(path: Path) -> None:
    """Delete a bundle's directory and all files in it; errors are ignored."""
    shutil.rmtree(path, ignore_errors=True)


def this_worker() -> Worker:
    """Give the host and process id of this process."""
    return Worker(socket.gethostname(), os.getpid())


def require_private(location: Path) -> None:
    """Refuse a location in which another user could have put, or could replace, a bundle.

    :raise CaptureError: if another user can change the location, or replace a folder on the path to
        it; the message names the folder
    """
    if (folder := exposed(location)) is None:
        return
    problem = f"{folder} belongs to another user or is writable for others."
    if folder != location:
        problem += f" So they could replace {location}."
    fix = (
        "Set [sparklineage] capture_location to a directory of the worker's own user with mode "
        "0700, below such that only root or this user can write to, or that have the sticky bit."
    )
    raise CaptureError(problem, fix)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:60]


def load(path: Path) -> CaptureBundle:
    """Open an existing bundle.

    :param path: the directory of the bundle
    :raise CaptureError: if the bundle has no readable manifest
    """
    file = path / MANIFEST
    try:
        return CaptureBundle(path, manifest_in(content_of(file), str(file)))
    except OSError as error:
        msg = f"{path} is no capture bundle: {file.name} cannot be read ({error.strerror})."
        raise CaptureError(msg) from error


def manifest_in(content: bytes, place: str) -> Manifest:
    """Read a manifest.

    :param content: the content of the file ``manifest.json``
    :param place: the path or URL of the manifest's file, for messages
    :raise CaptureError: if the content is not a manifest
    """
    try:
        manifest = decoded(content, msgspec.json.Decoder(Manifest))
        # These two properties raise for values that the decoder does not check.
        manifest.locator, manifest.intermediates  # noqa: B018
    except (ValueError, SettingsError) as error:
        msg = f"{place} is no manifest of a capture bundle: {str(error).rstrip('.')}."
        raise CaptureError(msg) from error
    return manifest


# --- leftovers ------------------------------------------------------------------------------------


PROPERTIES_PREFIX = ".sparklineage-properties-"
"""The prefix of the names of properties files, which can hold credentials; each is made for one
submission."""

LINKS_PREFIX = ".sparklineage-links-"
"""The prefix of the names of folders with links to files whose paths Spark would misread."""

# After an hour a properties file is not needed: spark-submit reads it within seconds of its start.
_PROPERTIES_AGE = timedelta(hours=1)
# A bundle is locked as soon as it is made, but not in the same instant.
_YOUNG = timedelta(hours=1)
_SWEPT = ".swept"


def folders_of_properties(location: Path) -> tuple[Path, ...]:
    """Give the folders into which the properties file of a submission can be written.

    The file is written into the first of these folders in which that is possible.

    :param location: the folder of the bundles
    """
    folders = [location, Path("/dev/shm")]  # noqa: S108  (files in it are 0600)
    with suppress(FileNotFoundError):  # if no temporary folder can be written to
        folders.insert(1, Path(tempfile.gettempdir()))
    return tuple(dict.fromkeys(folders))


def sweep(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Delete old leftovers of tries below ``location``; return how many bundles were deleted.

    A bundle is deleted only if no process holds its lock (:mod:`.ownership`). So the bundle of a
    try that runs is never deleted, on this machine or on another machine with the same mount. The
    age of a bundle counts from the end of its try, or from the last write to the bundle if its
    worker never ended the try. Properties files of killed workers are deleted after an hour, links
    to files of a bundle when the bundle is deleted. Other files and the files of other users are
    not deleted: the location may be a folder of many users.

    :param location: the folder of the bundles
    :param older_than: only bundles that are older than this are deleted
    :param now: the present time
    """
    removed = 0
    for folder in own_bundles(location):
        with suppress(OSError):
            removed += _removed(folder, older_than, now)
    for place in folders_of_properties(location):
        for file in place.glob(f"{PROPERTIES_PREFIX}*"):
            with suppress(OSError):
                status = file.lstat()
                # Owner first: another user may have set a time that no datetime can hold.
                if is_own(status, stat.S_IFREG) and (
                    now - ownership.modified(status) > _PROPERTIES_AGE
                ):
                    file.unlink()
        for folder in place.glob(f"{LINKS_PREFIX}*"):
            with suppress(OSError):
                if is_own(folder.lstat(), stat.S_IFDIR) and _leads_nowhere(folder):
                    remove(folder)
    return removed


def sweep_at_times(location: Path, *, older_than: timedelta, now: datetime) -> int:
    """Call :func:`sweep`, unless a try of this user has swept within the last hour.

    :param location: the folder of the bundles
    :param older_than: only bundles that are older than this are deleted
    :param now: the present time
    :return: the number of deleted bundles; 0 if no sweep was due
    """
    if ownership.is_sweep_due(location / _SWEPT, older_than, now):
        return sweep(location, older_than=older_than, now=now)
    return 0


def earlier_try(location: Path, manifest: Manifest) -> CaptureBundle | None:
    """Find and lock the bundle of the task instance's last try before this one.

    :param location: the folder of the bundles
    :param manifest: the manifest of this try
    :return: None if no earlier try has a bundle, or if a process still works in the bundle of the
        last earlier try
    :raise OSError: if the file system has no locks
    """
    earlier: list[CaptureBundle] = []
    for folder in own_bundles(location):
        with suppress(CaptureError):
            bundle = load(folder)
            if is_before(bundle.manifest.task, manifest.task):
                earlier.append(bundle)
    for bundle in sorted(earlier, key=lambda one: one.manifest.try_number, reverse=True):
        with suppress(FileNotFoundError):  # another process removes it
            lock = ownership.acquire_lock(bundle.path, make=False) if bundle.path else None
            return replace(bundle, lock=lock) if lock else None
    return None


def own_bundles(location: Path) -> Iterator[Path]:
    """Yield the folders below a location that are bundles of this user."""
    for folder in location.glob("*-*"):
        with suppress(OSError):
            if is_name(folder.name) and is_own(folder.lstat(), stat.S_IFDIR):
                yield folder


def is_before(one: TaskIdentity | None, other: TaskIdentity | None) -> bool:
    """Whether two tries belong to one task instance, and ``one`` is the earlier try.

    False if one of them is None, because it is not known.
    """
    if one is None or other is None or one.try_number >= other.try_number:
        return False
    return replace(one, try_number=other.try_number) == other


def _removed(folder: Path, older_than: timedelta, now: datetime) -> bool:
    try:
        lock = ownership.acquire_lock(folder, make=False)
    except FileNotFoundError:
        if now - ownership.modified(folder.lstat()) > _YOUNG:
            folder.rmdir()  # network file systems leave an empty folder if its lock is held
        return False
    if lock is None:
        return False
    try:
        ended = _ended(folder)
        since = ended or max(
            ownership.modified(p.lstat()) for p in (folder / ownership.LOCK_FILE, *folder.iterdir())
        )
        if now - since <= (older_than if ended else max(older_than, _YOUNG)):
            return False
        remove(folder)
        return True
    finally:
        lock.release()


def _ended(folder: Path) -> datetime | None:
    with suppress(CaptureError):  # the worker was killed before it had written a manifest
        return load(folder).manifest.ended
    return None


def _leads_nowhere(folder: Path) -> bool:
    return any(link.is_symlink() and not link.exists() for link in folder.iterdir())


# --- the location ---------------------------------------------------------------------------------


# Maps Airflow's names of file systems to Hadoop's names, where the two differ.
_IN_HADOOP = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "abfs": "abfss", "webhdfs": "hdfs"}
# For these schemes Airflow has the storage account in the connection, but Hadoop in the URL.
_WITH_ACCOUNT = ("abfs", "abfss", "adl")
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^@/]*@)?(?P<rest>.*)")


class CaptureLocation(Frozen, frozen=True):
    """The folder and the URL of capture bundles.

    :param folder: the folder on the worker, for the bundles that the worker works with
    :param url: the URL to which drivers in a cluster deliver, in the form that Airflow's
        ``ObjectStoragePath`` takes; empty if drivers deliver nothing
    """

    folder: Path
    url: str = ""

    def __str__(self) -> str:
        return self.url or str(self.folder)


def in_spark(url: str, configured: str, folder: str = "") -> str:
    """Give the URL by which Spark's Hadoop file systems find a location.

    :param url: the location's URL in Airflow's form, with or without a connection's id
    :param configured: the option ``capture_location_in_spark``; if it is empty, the URL is derived
        from ``url``
    :param folder: the name of a folder in the location; empty for the location itself
    :return: the URL in the form of Hadoop, such as ``s3a://bucket/lineage``
    :raise SettingsError: if the URL cannot be derived
    """
    return f"{configured or _derived(url)}/{folder}".rstrip("/")


def _derived(url: str) -> str:
    match = _URL.fullmatch(url)
    if match is None:
        problem = f"[sparklineage] capture_location {url} is no URL."
        raise SettingsError(problem, "Write it as s3://connection@bucket/folder.")
    scheme, rest = match["scheme"], match["rest"]
    if scheme in _WITH_ACCOUNT and "@" not in rest.partition("/")[0]:
        problem = f"How Spark calls {url} cannot be derived: Hadoop needs the storage account."
        fix = (
            "Set [sparklineage] capture_location_in_spark, for example to "
            "abfss://container@account.dfs.core.windows.net/lineage."
        )
        raise SettingsError(problem, fix)
    return f"{_IN_HADOOP.get(scheme, scheme)}://{rest}"
