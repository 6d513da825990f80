"""Hide secrets in lineage: each value that Airflow masks in logs is masked in lineage, too."""

from __future__ import annotations

from typing import Any, cast

from airflow.providers.common.compat.sdk import redact
from airflow.sdk.log import mask_secret

from airflow_provider_sparklineage.model.credentials import scrub


def masked(text: str) -> str:
    """Hide in a text the secrets of connections, and all values that ``mask_secret`` registered."""
    return str(redact(text))


def masked_message(text: str) -> str:
    """Hide secrets, and the credentials of URLs, in a message; never raises.

    If that fails, the result is a fixed sentence that has nothing of the message.
    """
    try:
        return masked(scrub(text))
    except Exception:
        return "Airflow could not hide the secrets of a message, so it is left out."


def mask(*secrets: str) -> None:
    """Register secrets with Airflow, so that the task's log and lineage hide them from now on."""
    for secret in secrets:
        mask_secret(secret)


def redacted(facets: dict[str, Any]) -> dict[str, Any]:
    """Hide the secrets in Airflow's own facets, to the depth that its OpenLineage provider uses."""
    return cast("dict[str, Any]", redact(facets, max_depth=_PROVIDERS_DEPTH))


_PROVIDERS_DEPTH = 20
