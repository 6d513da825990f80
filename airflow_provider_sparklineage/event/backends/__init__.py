"""Lineage backends: their repairs of events and their pages. See :mod:`.base` to add one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.backends.datahub import DataHub
from airflow_provider_sparklineage.event.backends.generic import Generic
from airflow_provider_sparklineage.event.backends.marquez import Marquez

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.backends.base import Backend

_GENERIC = Generic()
BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (Marquez(), DataHub(), _GENERIC)
}
"""The backends by their names in ``[sparklineage] backend``."""


def backend_of(name: str) -> Backend:
    """Give the backend with a name; the generic one, which changes nothing, if there is none.

    Settings refuse an unknown name, but the manifest of another version may contain one.
    """
    return BACKENDS.get(name, _GENERIC)
