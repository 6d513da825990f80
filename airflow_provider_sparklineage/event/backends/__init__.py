"""Lineage backends: what each cannot take, and where its pages are. See :mod:`.base` to add one."""

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
"""By the name that ``[sparklineage] backend`` has for them."""


def backend_of(name: str) -> Backend:
    """Give a backend by its name; of a name that is not known, the one that changes nothing.

    Settings refuse such a name; it may come from the manifest of another version.
    """
    return BACKENDS.get(name, _GENERIC)
