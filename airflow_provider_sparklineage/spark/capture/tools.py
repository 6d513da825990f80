"""The tools folder of a capture location: the listener's jar and the observer, for all drivers.

::

    <capture_location>/.tools/<sha256 of the file>/
        openlineage-spark_2.13-1.53.0.jar    the file; or sparklineage_observer.zip
        used-2026-05-06                      the last day on which a task needed the file
        reached-by-0a1b2c3d4e5f6071          such drivers have delivered to this capture location

The first worker that needs a file puts it there, and Spark gets its URL. The digest is in the path,
so a worker with another version of a file makes another folder, and a file is never replaced while
a job reads it. Spark's executors may start late and read the jar then, so a folder is deleted only
when no task has needed its file for :data:`UNUSED`.

Spark ends a job whose jar it cannot read. A driver that has delivered to the location reaches it,
so the worker then notes who that driver was (``reached-by-``, :func:`note`). As long
as this is not noted, :mod:`airflow_provider_sparklineage.spark.submit.deploy_mode` brings the file
in another way if there is one.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.files import digest_of
from airflow_provider_sparklineage.spark.capture import remote
from airflow_provider_sparklineage.spark.capture.bundle import in_spark
from airflow_provider_sparklineage.storage.bounded import StoreError, within_budget
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation, Manifest


log = logger(__name__)

FOLDER = ".tools"
UNUSED = timedelta(days=90)
"""Time after which a file that no task needs any more is deleted."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_USED = re.compile(r"used-\d{4}-\d\d-\d\d")
_THREAD = "sparklineage-tools"
_ASKING = 1 / 6
"""The part of the time in which a store has to list a folder."""


class Tool(NamedTuple):
    """A file in the tools folder.

    :param url: its URL for Spark, such as ``s3a://lake/lineage/.tools/0a1b…/openlineage-spark.jar``;
        a ``local:`` URL for a mount, because Spark would upload a ``file:`` URL
    :param is_reached: whether it is noted that drivers like this one reach the location
    """

    url: str
    is_reached: bool


class Marks(NamedTuple):
    """Marks by which the tools folder says that drivers of a kind reach it.

    :param reached: URLs of marks that were there when the job was submitted
    :param unreached: URLs of marks that are to be written when the driver has delivered
    """

    reached: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()


class Tools:
    """The tools folder of a capture location that is a URL.

    :param location: the capture location
    :param configured: the option ``capture_location_in_spark``
    :param driver: a text that is the same for all drivers with the same rights and file systems
    :param budget: the time for putting files there; the job waits
    """

    def __init__(
        self, location: CaptureLocation, configured: str, driver: str, budget: Budget
    ) -> None:
        self.url = f"{location.url}/{FOLDER}"
        self.in_spark = re.sub(
            r"\Afile:/*", "local:///", in_spark(location.url, configured, FOLDER)
        )
        self._mark = f"reached-by-{hashlib.sha256(driver.encode()).hexdigest()[:16]}"
        self._budget = budget
        self.marks = Marks()
        """The marks of the files that were put here."""

    def put(self, name: str, source: Path | bytes, today: datetime | None = None) -> Tool:
        """Put a file into the folder, unless it is there.

        :param name: the file's name
        :param source: the file on this worker, or its content
        :param today: the day for the mark of use; None for the present one
        :raise CaptureError: if the file cannot be put there in time
        """
        try:
            digest, size = _digest_and_size(source)
        except OSError as error:
            msg = f"{name} cannot be read: {error}."
            raise CaptureError(msg) from error
        used = f"used-{today or datetime.now(UTC):%Y-%m-%d}"
        store = Objects(f"{self.url}/{digest}", is_for_group=True)
        try:
            # A store that does not answer must not hold up each task as long as one upload may.
            there = within_budget(self._budget.part(_ASKING), partial(store.files, ""), _THREAD)
            if there.get(name) != size or used not in there:
                put = partial(_put, store, name, source, size, used, there)
                within_budget(self._budget, put, _THREAD)
        except StoreError as error:
            problem = f"{name} could not be put into the tools folder {self.url} ({error})."
            raise CaptureError(problem, remote.location_fix(self.url)) from error
        mark = f"{store.url}/{self._mark}"
        # One file that such drivers have read proves it for all: an upgrade has a new observer.
        reached, unreached = self.marks
        if self._mark in there:
            self.marks = Marks((*reached, mark), unreached)
        else:
            self.marks = Marks(reached, (*unreached, mark))
        return Tool(f"{self.in_spark}/{digest}/{name}", bool(self.marks.reached))


def note(manifest: Manifest, budget: Budget, *, has_reported: bool) -> None:
    """Note whether drivers of a kind reach the capture location of a try.

    :param manifest: the manifest of the try, which has the marks of the files that a driver needed
    :param has_reported: whether that driver has reported anything; if not, it may not have read the
        files either, so the marks are deleted
    """
    with suppress(StoreError):  # the next driver that reports is noted
        for mark in manifest.unreached_tools if has_reported else manifest.reached_tools:
            folder, _, name = mark.rpartition("/")
            store = Objects(folder, is_for_group=True)
            change = (
                partial(store.write, name, b"") if has_reported else partial(store.remove, name)
            )
            within_budget(budget, change, _THREAD)


def _digest_and_size(source: Path | bytes) -> tuple[str, int]:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest(), len(source)
    return digest_of(source), source.stat().st_size


def _put(
    store: Objects,
    name: str,
    source: Path | bytes,
    size: int,
    used: str,
    there: Mapping[str, int],
) -> None:
    """Put a file into its folder, with the mark of use.

    :param there: the sizes of the files in the folder, by name
    """
    if there.get(name) != size:  # not there, or torn by a store that shows unfinished files
        content = source if isinstance(source, bytes) else source.read_bytes()
        log.info("Putting %s (%.1f MB) into %s, once for all tasks …", name, size / 1e6, store.url)
        store.write(name, content)
        if (arrived := store.files("").get(name)) != size:
            msg = f"{arrived or 0} of its {size} bytes arrived"
            raise OSError(msg)
    if used not in there:
        store.write(used, b"")
        for old in filter(_USED.fullmatch, there):
            with suppress(Exception):  # another worker may have deleted it
                store.remove(old)


def sweep(location: str, *, now: datetime, budget: Budget) -> int:
    """Delete the files that no task has needed for long; return their number.

    A folder without a mark of use is left: another worker may be filling it, or it is not ours.

    :param location: the URL of the capture location
    :param now: the present time
    """
    url, removed = f"{location}/{FOLDER}", 0
    try:
        digests = within_budget(budget, partial(Objects(url).names, ""), _THREAD)
        for digest in filter(_DIGEST.fullmatch, digests):
            store = Objects(f"{url}/{digest}")
            names = within_budget(budget, partial(store.names, ""), _THREAD)
            days = sorted(filter(_USED.fullmatch, names))
            if days and days[-1] < f"used-{now - UNUSED:%Y-%m-%d}":
                within_budget(budget, partial(store.remove_folder, ""), _THREAD)
                removed += 1
    except StoreError as error:  # a later sweep goes on
        log.debug("The tools folder %s was not swept: %s", url, error)
    return removed
