"""Checks of a capture location that is a URL: can the worker use it, does it fit the submission."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.doctor.spark import failed
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.spark.capture import location
from airflow_provider_sparklineage.storage.bounded import reason, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from airflow_provider_sparklineage.settings.resolution import Settings

REMOTE = "remote location"

_TIMEOUT_S = 20.0
_CONTENT = b"written by the doctor"


def check(settings: Settings, timeout_s: float = _TIMEOUT_S) -> list[Check]:
    """Write, list, read and delete a probe as the worker; nothing if the location is no URL."""
    captures = settings.capture_location
    if not captures.url:
        return []
    try:
        in_spark = location.in_spark(captures.url, settings.capture_location_in_spark)
    except SettingsError as error:
        return [failed(REMOTE, error)]
    steps: list[str] = []
    try:
        within(timeout_s, lambda: _probe(captures.url, steps), "sparklineage-doctor")
    except Exception as error:  # whatever the library of the store raises
        why = reason(error, timeout_s)
    else:
        text = f"This worker writes, lists, reads and deletes in {captures.url}"
        return [Check(REMOTE, Status.OK, f"{text}; drivers know it as {in_spark}.")]
    return [
        Check(
            REMOTE,
            Status.FAILED,
            f"This worker cannot {steps[-1]} {captures.url} ({why}).",
            "Check the connection whose id is before the @, its permissions, and that the provider "
            "of this file system is installed. What drivers deliver there cannot be collected.",
        )
    ]


def _probe(url: str, steps: list[str]) -> None:
    """Do once what collecting does; the last of the steps is the one that failed."""
    steps.append("write to")
    store = Objects(url)
    folder = f".doctor-{uuid.uuid4().hex}"
    store.write(f"{folder}/probe", _CONTENT)
    try:
        steps.append("list")
        if store.names(folder) != ["probe"]:
            msg = "what was written is not listed"
            raise FileNotFoundError(msg)
        steps.append("read from")
        if store.read(f"{folder}/probe") != _CONTENT:
            msg = "what is read is not what was written"
            raise ValueError(msg)
    finally:
        if steps[-1] == "read from":
            steps.append("delete from")
        store.remove_folder(folder)


def deleted(url: str, timeout_s: float = _TIMEOUT_S) -> None:
    """Delete a folder of the doctor's own, as far as that can be done in time."""
    with suppress(Exception):  # what is left of it is swept with what tasks have left
        within(timeout_s, lambda: Objects(url).remove_folder(""), "sparklineage-doctor")
