"""The remote folders of tries: announced, found, and deleted when they are old."""

from __future__ import annotations

import os
import random
import re
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import MANIFEST
from airflow_provider_sparklineage.spark.capture.remote import (
    ATTEMPT,
    END,
    SEGMENT,
    SENDING,
    START,
    Folder,
)
from airflow_provider_sparklineage.spark.capture.retention import is_before, is_due
from airflow_provider_sparklineage.spark.capture.undelivered import fix
from airflow_provider_sparklineage.storage.bounded import StoreError, asked
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest
    from airflow_provider_sparklineage.spark.capture.location import CaptureLocation

T = TypeVar("T")

_MAX_BYTES = 16 * 1024 * 1024
_THREAD = "sparklineage-remote"
# What nobody ended may be a job that runs, and its driver delivers only what there is.
_UNENDED = timedelta(days=1)
_MAY_RUN = {
    DegradationCode.APPLICATION_UNFINISHED,
    DegradationCode.DELIVERY_INCOMPLETE,
    DegradationCode.DRIVER_ELSEWHERE,
}
_OF_DRIVER = rf"(?:{START}|{END}|{SEGMENT.pattern})(?:\.part)?"
_OF_WORKER = rf"(?:{MANIFEST}|{SENDING})(?:\.[0-9a-f]{{32}}\.part)?"
_IS_OURS = re.compile(rf"{ATTEMPT.pattern}/\.?{_OF_DRIVER}(?:\.crc)?|{_OF_WORKER}")
_YARN = re.compile(r"application_\d+_\d+")
_SWEPT = ".swept-remote"
_INTERVAL = timedelta(hours=1)


def announce(manifest: Manifest, budget: Budget) -> None:
    """Write the manifest of a try into its remote folder.

    :raise CaptureError: if the store does not take it in time
    """
    url = manifest.remote

    def write() -> None:
        Objects(url, is_for_group=True).write(MANIFEST, capture.encoded(manifest))

    _asked(url, budget, write, "written to")


def manifest_of(url: str, budget: Budget) -> Manifest:
    """Read the manifest of a try's remote folder.

    :raise CaptureError: if there is none, or the store does not give it in time
    """
    content = _asked(url, budget, lambda: Objects(url).read(MANIFEST, _MAX_BYTES), "read")
    return capture.manifest_in(content, f"{url}/{MANIFEST}")


def manifests(
    location: str, budget: Budget, is_wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, Manifest]]:
    """Yield the remote folders of tries with their manifests, until the budget is spent.

    :param location: URL of the capture location
    :param is_wanted: asked for each folder's name
    :raise CaptureError: if the location cannot be listed in time
    """
    for name in filter(is_wanted, _names(location, budget)):
        url = f"{location}/{name}"
        with suppress(CaptureError):  # it is being written, or removed
            yield url, manifest_of(url, budget)


def remove(url: str, budget: Budget) -> None:
    """Delete a try's remote folder, if the store does so in time."""
    with suppress(StoreError):  # the next try sweeps
        asked(budget, lambda: Objects(url).remove_folder(""), _THREAD)


def earlier_try(
    location: str, manifest: Manifest, budget: Budget, job: str = ""
) -> Manifest | None:
    """Find the manifest of the last try of a task before this one whose driver delivered anything.

    A try that only waited for the end of what an earlier one had submitted has a folder, too. Where
    the job is not known by its application's id, the last try counts, whatever it has delivered.

    :param job: by which Airflow knows what is gone on with: on YARN, the application's id, and then
        no other one is taken
    :raise CaptureError: if there is anything that cannot be read in time: it may be that try
    """
    if manifest.task is None:
        return None
    prefix = capture.name_of_tries(manifest.task)
    is_known = _YARN.fullmatch(job) is not None
    found = []
    for name in _names(location, budget):
        if not name.startswith(prefix):
            continue
        url = f"{location}/{name}"
        try:
            theirs = replace(manifest_of(url, budget), remote=url)
            if is_before(theirs.task, manifest.task):
                found.append((theirs, _applications(theirs, budget)))
        except CaptureError:
            if not is_known:
                raise
    for theirs, applications in sorted(found, key=lambda f: _try_number(f[0]), reverse=True):
        if job in applications:
            return theirs
        if not is_known:  # that one may have submitted, and an older one's job is another job
            return theirs if applications else None
    return None


def _applications(manifest: Manifest, budget: Budget) -> set[str]:
    """Give the ids of a try's applications whose drivers have delivered anything.

    :raise CaptureError: if it cannot be found out in time
    """
    url = manifest.remote
    folder = Folder(url, manifest.application_run_id)
    attempts = _asked(url, budget, folder.attempts, "read")
    for attempt in attempts:
        if attempt.start is None and attempt.problems:
            problem = f"What was delivered to {url} could not be read ({attempt.problems[0]})."
            raise CaptureError(problem)
    return {a.start.application_id for a in attempts if a.start and folder.is_own(a)}


def _try_number(manifest: Manifest) -> int:
    return manifest.task.try_number if manifest.task else 0


def sweep(location: str, *, older_than: timedelta, now: datetime, budget: Budget) -> int:
    """Delete remote folders of tries that ended longer ago than that; return how many.

    Nobody can be asked whether a driver still delivers to a folder that its worker did not end: it
    goes when nothing was written to it for longer than that, and for a day.
    """
    try:
        names = _names(location, budget)
    except CaptureError:
        return 0
    random.shuffle(names)  # who has no time for all begins with others the next time
    removed = 0
    for name in names:
        if budget.is_spent():
            break
        url = f"{location}/{name}"
        if _is_old(url, older_than, now, budget):
            remove(url, budget)
            removed += 1
    return removed


def sweep_at_times(
    location: CaptureLocation, *, older_than: timedelta, now: datetime, budget: Budget
) -> int:
    """Sweep, unless another try of this user on this worker has done so within the hour."""
    last = location.folder / f"{_SWEPT}-{os.getuid()}"
    if is_due(last, min(_INTERVAL, older_than), now):
        return sweep(location.url, older_than=older_than, now=now, budget=budget)
    return 0


def _is_old(url: str, older_than: timedelta, now: datetime, budget: Budget) -> bool:
    limit, manifest = max(older_than, _UNENDED), None
    with suppress(CaptureError):
        manifest = manifest_of(url, budget)
    if manifest is not None:
        codes = {degradation.code for degradation in manifest.degradations}
        if manifest.ended and not codes & _MAY_RUN:
            limit = older_than
        known = manifest.ended or manifest.started
        if known and now - known <= limit:
            return False
    try:
        written = asked(budget, lambda: dict(Objects(url).walk("")), _THREAD)
    except StoreError:
        return False
    if not all(map(_IS_OURS.fullmatch, written)):
        return False  # somebody else's, by a name like ours
    times = written.values()
    return bool(times) and all(at is not None and now - at > limit for at in times)


def _names(location: str, budget: Budget) -> list[str]:
    """List what is called as folders of tries are.

    :raise CaptureError: if the location cannot be listed in time
    """
    names = _asked(location, budget, lambda: Objects(location).names(""), "listed")
    return [name for name in names if capture.is_name(name)]


def _asked(url: str, budget: Budget, action: Callable[[], T], what: str) -> T:
    try:
        return asked(budget, action, _THREAD)
    except StoreError as error:
        problem = f"The capture location {url} could not be {what} ({error})."
        raise CaptureError(problem, fix(url)) from error
