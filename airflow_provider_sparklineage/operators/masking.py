"""Secrets as Airflow knows them: a value that Airflow masks in logs is masked in lineage."""

from __future__ import annotations

from typing import Any, cast

from airflow.providers.common.compat.sdk import redact
from airflow.sdk.log import mask_secret

from airflow_provider_sparklineage.model.credentials import scrub


def masked(text: str) -> str:
    """Hide the secrets of connections, and all values that ``mask_secret`` has registered."""
    return str(redact(text))


def masked_message(text: str) -> str:
    """Hide secrets, and the credentials of URLs, in a message for people; never raises."""
    try:
        return masked(scrub(text))
    except Exception:
        return "Airflow could not hide the secrets of a message, so it is left out."


def mask(*secrets: str) -> None:
    """Register secrets, which are hidden from then on in the task's log and in its lineage."""
    for secret in secrets:
        mask_secret(secret)


def redacted(facets: dict[str, Any]) -> dict[str, Any]:
    """Hide the secrets in Airflow's own facets, as deep as its OpenLineage provider does."""
    return cast("dict[str, Any]", redact(facets, max_depth=_PROVIDERS_DEPTH))


_PROVIDERS_DEPTH = 20
