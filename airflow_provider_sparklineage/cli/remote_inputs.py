"""Bundles at URLs, where drivers in a cluster delivered them, as commands are given them."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.output import logging_to_stderr
from airflow_provider_sparklineage.model.exceptions import CaptureError, UnusableInputError

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

    try:
        with logging_to_stderr():  # Airflow is imported for its connections
            fetched(url, into, UNLIMITED)  # who waits can see that, and interrupt it
    except CaptureError as error:
        raise UnusableInputError(error.problem, f"{error.fix}{_elsewhere(url)}") from error


def _elsewhere(url: str) -> str:
    if "@" not in url or os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        return ""
    return (
        " Here only connections in environment variables are known; `airflow sparklineage` with "
        "the same arguments knows all of Airflow's."
    )
