"""A backend that takes whatever OpenLineage allows: events leave as they were made."""

from __future__ import annotations

from airflow_provider_sparklineage.event.backends.base import Backend


class Generic(Backend):
    """Any consumer of OpenLineage; nothing is known of its pages."""

    name = "generic"
    title = "any OpenLineage backend"
