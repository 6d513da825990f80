"""Where the history is, by Airflow's configuration."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.hooks.executor import default_archive
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.settings import resolution

_FIX = "Set [sparklineage] history_url, or name the store with --store."


def store_url() -> str:
    """Give the URL of the store: ``[sparklineage] history_url``, else next to the archive.

    :raise SettingsError: if a value is impossible, or there is neither of the two
    """
    configured = sources.configuration("history_url")
    url: str = resolution.value("history_url", configured)
    return url or next_to(archive_url())


def archive_url() -> str:
    """Give the URL of the archive that is in force; empty if there is none.

    :raise SettingsError: if its value is impossible
    """
    configured = sources.configuration("archive_url")
    url: str = resolution.value("archive_url", configured, default_archive())
    return url


def next_to(archive: str) -> str:
    """Give the URL of the store that belongs to an archive: ``history`` in the same folder.

    :raise SettingsError: if there is no archive, or it has no folder around it
    """
    if not archive:
        problem = "No store of the history is configured, and no archive that it could be next to."
        raise SettingsError(problem, _FIX)
    if not urlsplit(archive).path.strip("/"):  # all of a bucket is the archive
        problem = f"The archive {archive} has no folder around it, in which the history could be."
        raise SettingsError(problem, _FIX)
    return f"{archive.rstrip('/').rpartition('/')[0]}/history"
