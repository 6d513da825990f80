"""Checks of the archive: where events are kept, and what of it was not sent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.exceptions import ArchiveError, SettingsError
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.settings.resolution import Settings

ARCHIVE, UNSENT = "archive", "unsent events"

_EXAMPLE = "s3://aws_default@lineage/tasks"


def check(resolved: Settings) -> list[Check]:
    """Check whether events are kept and can be, and whether all of them were sent."""
    archive = archive_of(resolved)
    return [_without()] if archive is None else [_place(archive), *_unsent(archive)]


def _without() -> Check:
    try:
        is_wanted = not sources.configuration("archive_url").values
    except SettingsError:  # another check says so
        is_wanted = False
    executors = " and ".join(sources.remote_executors())
    if not (is_wanted and executors):
        return Check(ARCHIVE, Status.OK, "Events are kept nowhere: [sparklineage] archive_url.")
    return Check(
        ARCHIVE,
        Status.WARNING,
        f"Events are kept nowhere, because {executors} runs tasks on other machines: earlier tries "
        "are not shown, and an event that does not arrive is lost.",
        f"Set AIRFLOW__SPARKLINEAGE__ARCHIVE_URL on workers and API servers, e.g. to {_EXAMPLE}; "
        "none is an answer as well.",
    )


def _place(archive: Archive) -> Check:
    try:
        archive.unsent()
    except ArchiveError as error:
        return Check(ARCHIVE, Status.WARNING, error.problem, error.fix)
    if not archive.is_default:
        return Check(ARCHIVE, Status.OK, f"Events are kept in {archive.url}.")
    folder = Path(archive.url.removeprefix("file://"))
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(there, os.W_OK):
        problem = f"Events cannot be kept in {archive.url}: {there} is not writable."
        fix = "Set [sparklineage] archive_url to another place, or to none."
        return Check(ARCHIVE, Status.WARNING, problem, fix)
    return Check(ARCHIVE, Status.OK, f"Events are kept in {archive.url}, for this user only.")


def _unsent(archive: Archive) -> list[Check]:
    if not archive.has_marks:
        return []
    try:
        unsent = archive.unsent()
    except ArchiveError:  # another check says so
        return []
    if not unsent:
        return [Check(UNSENT, Status.OK, "All events of the archive were sent, as far as known.")]
    what = "1 event was" if len(unsent) == 1 else f"{len(unsent)} events were"
    oldest = min((entry.written for entry in unsent if entry.written), default=None)
    since = f", the first on {oldest:%Y-%m-%d at %H:%M} UTC" if oldest else ""
    fix = "Send them when the backend is up: airflow sparklineage resend"
    return [Check(UNSENT, Status.WARNING, f"{what} not sent{since}.", fix)]
