"""Secrets as Airflow knows them: what it masks in logs is masked in lineage."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import redact


def masked(text: str) -> str:
    """Hide the values of connections, and of all that was registered by ``mask_secret``."""
    return str(redact(text))
