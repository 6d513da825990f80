"""Check of ``capture_endpoint``: can this worker listen where drivers without Python would send."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.doctor.spark import failed
from airflow_provider_sparklineage.model.exceptions import RemoteDriverError, SettingsError
from airflow_provider_sparklineage.operators import receiving
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from airflow_provider_sparklineage.settings.resolution import Settings

ENDPOINT = "capture endpoint"


def check(settings: Settings) -> list[Check]:
    """Listen for a moment; nothing if no endpoint is configured."""
    if not settings.capture_endpoint:
        return []
    try:
        receiver = receiving.begin(settings.capture_endpoint, Path(os.devnull))
    except (SettingsError, RemoteDriverError) as error:
        return [failed(ENDPOINT, error)]
    url = receiver.url
    receiver.close()
    text = f"This worker can listen for drivers without Python, at {url}; whether they reach it is"
    return [Check(ENDPOINT, Status.OK, f"{text} seen when one runs.")]
