"""Bundles at URLs, where drivers in a cluster delivered them, as commands are given them."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.output import logging_to_stderr
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    SettingsError,
    UnusableInputError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def downloaded(inputs: Sequence[str]) -> Iterator[list[str]]:
    """Give what a command was given without URLs: for this long such a bundle is on this machine.

    :raise UnusableInputError: if there is no bundle at a URL
    """
    with ExitStack() as folders:

        def here(given: str) -> str:
            if "://" not in given:
                return given
            folder = tempfile.TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True)
            _download(given.rstrip("/"), Path(folders.enter_context(folder)))
            return folder.name

        yield [here(given) for given in inputs]


def _download(url: str, into: Path) -> None:
    from airflow_provider_sparklineage.model.budget import UNLIMITED
    from airflow_provider_sparklineage.spark.capture.delivered import fetched

    with logging_to_stderr():  # Airflow is imported for its connections
        known = _as_configured(url)
        try:
            fetched(known, into, UNLIMITED)  # who waits can see that, and interrupt it
        except CaptureError as error:
            raise UnusableInputError(error.problem, f"{error.fix}{_elsewhere(known)}") from error


def _as_configured(url: str) -> str:
    """Give a URL with the connection of the capture location, if it is below that.

    In logs of tasks it is without, for that could be somebody's name and password; and those of
    drivers have it as Spark does.
    """
    if "@" in url:
        return url
    from airflow_provider_sparklineage.hooks import sources
    from airflow_provider_sparklineage.settings.resolution import resolve
    from airflow_provider_sparklineage.spark.capture.location import in_spark

    settings = resolve(sources.configuration("capture_location", "capture_location_in_spark"))
    location = settings.capture_location.url
    names = []
    if location:
        names.append(scrub(location))
        with suppress(SettingsError):  # Spark's cannot be derived
            names.append(in_spark(location, settings.capture_location_in_spark))
    for name in names:
        if url.startswith(f"{name}/"):
            return location + url.removeprefix(name)
    return url


def _elsewhere(url: str) -> str:
    if "@" not in url or os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        return ""
    return (
        " Here only connections in environment variables are known; `airflow sparklineage` with "
        "the same arguments knows all of Airflow's."
    )
