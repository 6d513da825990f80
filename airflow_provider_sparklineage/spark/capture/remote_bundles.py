"""The bundles of tries at a capture location that is a URL.

A worker announces a try by writing the try's manifest to the location. The worker finds the folders
of tries, and deletes old folders. :mod:`airflow_provider_sparklineage.spark.capture.remote`
describes the layout of a folder, and downloads the files that a try's drivers delivered.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.terms import MANIFEST
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import remote, tools
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, is_before
from airflow_provider_sparklineage.spark.capture.ownership import is_sweep_due
from airflow_provider_sparklineage.storage.bounded import StoreError, within_budget
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation, Manifest


log = logger(__name__)

T = TypeVar("T")

_MAX_MANIFEST_BYTES = 16 * 1024 * 1024
_THREAD = "sparklineage-remote"
# The job of a try that no worker ended may still run, and its driver delivers only at intervals.
_UNENDED = timedelta(days=1)
_MAY_RUN = {
    DegradationCode.APPLICATION_UNFINISHED,
    DegradationCode.DELIVERY_INCOMPLETE,
    DegradationCode.DRIVER_ELSEWHERE,
}
_OF_DRIVER = rf"(?:{remote.START}|{remote.END}|{remote.SEGMENT.pattern})(?:\.part)?"
_OF_WORKER = rf"(?:{MANIFEST}|{remote.SENDING})(?:\.[0-9a-f]{{32}}\.part)?"
_OF_DOCTOR = r"probe|trial_application\.py|tables/(?:orders|totals)/[^/].*"
_IS_OURS = re.compile(
    rf"{remote.ATTEMPT.pattern}/\.?{_OF_DRIVER}(?:\.crc)?|{_OF_WORKER}|{_OF_DOCTOR}"
)
_YARN = re.compile(r"application_\d+_\d+")
_SWEPT = ".swept-remote"


def announce(manifest: Manifest, budget: Budget, url: str = "") -> None:
    """Write the manifest of a try into the try's remote folder.

    :param manifest: the manifest
    :param url: the URL of the folder; empty if the manifest has it
    :raise CaptureError: if the store fails, or does not store the manifest in time
    """
    url = url or manifest.remote

    def write() -> None:
        Objects(url, is_for_group=True).write(MANIFEST, capture.encoded(manifest))

    _asked(url, budget, write, "written to")


def manifest_of(url: str, budget: Budget) -> Manifest:
    """Read the manifest in the remote folder of a try.

    :param url: the URL of the try's folder
    :raise CaptureError: if there is no manifest, or the store does not return it in time
    """
    content = _asked(url, budget, lambda: Objects(url).read(MANIFEST, _MAX_MANIFEST_BYTES), "read")
    return capture.manifest_in(content, f"{url}/{MANIFEST}")


def manifests(
    location: str, budget: Budget, is_wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, Manifest]]:
    """Yield the URLs of the remote folders of tries, each with its manifest.

    A folder whose manifest cannot be read is left out, as is each folder after the budget is spent.

    :param location: the URL of the capture location
    :param budget: the time for reading all manifests
    :param is_wanted: a function that tells whether the folder of a name is wanted
    :raise CaptureError: if the location cannot be listed in time
    """
    for name in filter(is_wanted, _names(location, budget)):
        url = f"{location}/{name}"
        with suppress(CaptureError):  # another process writes or removes the folder
            yield url, manifest_of(url, budget)


def remove(url: str, budget: Budget) -> None:
    """Delete the remote folder of a try; give up if the store fails or the budget is spent.

    :param url: the URL of the try's folder
    """
    with suppress(StoreError):  # a later sweep deletes the folder
        within_budget(budget, lambda: Objects(url).remove_folder(""), _THREAD)


def end(
    manifest: Manifest,
    location: CaptureLocation,
    budget: Budget,
    *,
    keep: bool,
    older_than: timedelta,
    now: datetime,
) -> None:
    """Keep or delete the remote folder of a try that has ended; now and then delete old folders.

    Folders of tries and of tools can be old.

    :param manifest: the manifest of the try, which is written into a folder that is kept
    :param location: the folder and the URL of the capture location
    :param budget: the time for all of this
    :param keep: whether a driver may still deliver there, or a later try or a person may need the
        files in it
    :param older_than: old folders are those of tries that ended longer ago than this
    :param now: the present time
    """
    if keep:
        try:
            announce(manifest, budget)
        except CaptureError as error:
            log.debug("%s", error)
    else:
        remove(manifest.remote, budget)
    if is_sweep_due(location.folder / _SWEPT, older_than, now):
        sweep(location.url, older_than=older_than, now=now, budget=budget)
        tools.sweep(location.url, now=now, budget=budget)


def resumed(
    own: CaptureBundle, location: CaptureLocation, budget: Budget, job: str
) -> CaptureBundle:
    """Give the bundle of the earlier try that submitted the job, with the manifest of this try.

    If the earlier bundle is not found, the result is the bundle of this try. In both cases a
    degradation is added to the manifest. The files of an earlier bundle name the run of the earlier
    try as the parent of the application.

    If the driver delivers to a store, the earlier try may have run on another worker. Then the
    bundle has the folder of this try, and nothing is removed on this machine.

    :param own: the bundle of this try, which is removed if an earlier one is found on this machine
    :param location: the folder and the URL of the capture location
    :param budget: the time for reading in the store
    :param job: the id by which Airflow knows the job; on YARN, the application's id
    :return: a bundle whose manifest is not saved yet
    """
    mine, earlier = own.manifest, None
    if mine.remote:
        remove(mine.remote, budget)  # no driver is going to deliver there
        try:
            if theirs := earlier_try(location.url, mine, budget, job):
                earlier = replace(own, manifest=theirs)
        except CaptureError as error:
            log.debug("%s", error)
    else:
        with suppress(Exception):
            if earlier := capture.earlier_try(location.folder, mine):
                own.remove()
    if earlier is None:
        problem = (
            "The job had been submitted by an earlier try, whose capture bundle is not here, "
            "so what it read and wrote is unknown. A capture_location that all workers reach, "
            "a mount or a URL, keeps it."
        )
        known = replace(mine, remote="")
    else:
        theirs = earlier.manifest
        problem = (
            f"The job had been submitted by try {theirs.try_number}; this event has what the "
            "bundle of that try captured."
        )
        known = replace(
            mine,
            application_run_id=theirs.application_run_id,
            injected=theirs.injected,
            versions={**theirs.versions, **mine.versions},
            remote=theirs.remote,
        )
    note = Degradation(DegradationCode.SUBMISSION_RESUMED, problem)
    manifest = replace(known, degradations=(*mine.degradations, note))
    return replace(earlier or own, manifest=manifest)


def earlier_try(
    location: str, manifest: Manifest, budget: Budget, job: str = ""
) -> Manifest | None:
    """Find the try before this one whose driver ran the job; give the manifest of that try.

    Only earlier tries of the same task instance are looked at. If ``job`` is the id of a YARN
    application, the result is the try to which a driver of that application delivered. Otherwise it
    is the last try before this one, if a driver delivered anything to it. (A try that only waited
    for the job of an earlier try has a folder, too, without deliveries.)

    :param location: the URL of the capture location
    :param manifest: the manifest of this try
    :param budget: the time for reading in the store
    :param job: the id by which Airflow knows the job that an earlier try submitted and this try
        waits for; on YARN, the application's id
    :return: None if there is no such try
    :raise CaptureError: if the location cannot be listed in time; without a YARN id, also if a
        folder of the task cannot be read, because that folder may be the wanted one
    """
    if manifest.task is None:
        return None
    prefix = capture.name_of_tries(manifest.task)
    is_known = _YARN.fullmatch(job) is not None
    candidates = []
    for name in _names(location, budget):
        if not name.startswith(prefix):
            continue
        url = f"{location}/{name}"
        try:
            theirs = replace(manifest_of(url, budget), remote=url)
            if is_before(theirs.task, manifest.task):
                candidates.append((theirs, _applications(theirs, budget)))
        except CaptureError:
            if not is_known:
                raise
    for theirs, applications in sorted(candidates, key=lambda c: c[0].try_number, reverse=True):
        if job in applications:
            return theirs
        if not is_known:  # only the last try can have submitted the job, if it submitted one
            return theirs if applications else None
    return None


def _applications(manifest: Manifest, budget: Budget) -> set[str]:
    """Give the ids of those applications of a try whose drivers have delivered anything.

    :param manifest: the try's manifest, which has the URL of the try's folder
    :return: Spark's ids, such as ``application_1700000000000_0042`` on YARN
    :raise CaptureError: if the try's folder cannot be read in time
    """
    url = manifest.remote
    folder = remote.Folder(url, manifest.application_run_id)
    attempts = _asked(url, budget, folder.attempts, "read")
    for attempt in attempts:
        if attempt.start is None and attempt.problems:
            problem = f"The deliveries to {url} could not be read ({attempt.problems[0]})."
            raise CaptureError(problem)
    return {a.start.application_id for a in attempts if a.start and folder.is_own(a)}


def sweep(location: str, *, older_than: timedelta, now: datetime, budget: Budget) -> int:
    """Delete the remote folders of tries that have ended long ago.

    A folder is deleted when its try ended, and its last file was written, longer ago than
    ``older_than``. If no worker ended the try, or its driver may still run, nothing shows whether
    the driver will deliver more: then the folder must also be a day old.

    :param location: the URL of the capture location
    :param now: the present time
    :param budget: the time for all of this; folders for which there is no time are left to the next
        sweep
    :return: the number of deleted folders; 0 if the location cannot be listed
    """
    try:
        names = _names(location, budget)
    except CaptureError:
        return 0
    random.shuffle(names)  # if there is no time for all, the next sweep begins with other folders
    removed = 0
    for name in names:
        if budget.is_spent():
            break
        url = f"{location}/{name}"
        if _is_old(url, older_than, now, budget):
            remove(url, budget)
            removed += 1
    return removed


def _is_old(url: str, older_than: timedelta, now: datetime, budget: Budget) -> bool:
    limit, manifest = max(older_than, _UNENDED), None
    with suppress(CaptureError):
        manifest = manifest_of(url, budget)
    if manifest is not None:
        codes = {degradation.code for degradation in manifest.degradations}
        if manifest.ended and not codes & _MAY_RUN:
            limit = older_than
        since = manifest.ended or manifest.started
        if since and now - since <= limit:
            return False
    try:
        written = within_budget(budget, lambda: dict(Objects(url).walk("")), _THREAD)
    except StoreError:
        return False
    if not all(map(_IS_OURS.fullmatch, written)):
        return False  # the folder's name looks like ours, but it has files of another program
    times = written.values()
    return bool(times) and all(at is not None and now - at > limit for at in times)


def _names(location: str, budget: Budget) -> list[str]:
    """List the names of the folders of tries at a location.

    :param location: the URL of the capture location
    :raise CaptureError: if the location cannot be listed in time
    """
    names = _asked(location, budget, lambda: Objects(location).names(""), "listed")
    return [name for name in names if capture.is_name(name)]


def _asked(url: str, budget: Budget, action: Callable[[], T], verb: str) -> T:
    try:
        return within_budget(budget, action, _THREAD)
    except StoreError as error:
        problem = f"The capture location {url} could not be {verb} ({error})."
        if isinstance(error.__cause__, FileNotFoundError):
            problem = f"There is no capture bundle at {url}: it has no manifest."
        raise CaptureError(problem, remote.location_fix(url)) from error


def fetched(url: str, into: Path, budget: Budget) -> tuple[CaptureBundle, remote.Delivered]:
    """Download a remote bundle into a folder on this machine, with the files delivered by now.

    :param url: the URL of the try's folder, in Airflow's form
    :param into: an empty folder that only this user can access
    :return: the bundle in ``into``, and the state of the try's deliveries
    :raise CaptureError: if there is no manifest, or the store does not return it in time
    """
    manifest = replace(manifest_of(url, budget), remote=url)
    delivered = remote.received(manifest, into, budget, waits=False)
    missing = (*delivered.earlier, *delivered.degradations)
    manifest = replace(manifest, degradations=missing, attempts=delivered.attempts)
    bundle = CaptureBundle(into, manifest)
    bundle.save()
    return bundle, delivered
