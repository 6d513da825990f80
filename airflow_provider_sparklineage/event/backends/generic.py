"""A backend that takes all that OpenLineage allows: events are sent unchanged."""

from __future__ import annotations

from airflow_provider_sparklineage.event.backends.base import Backend


class Generic(Backend):
    """Any consumer of OpenLineage; this package knows no pages of it."""

    name = "generic"
    title = "any OpenLineage backend"
