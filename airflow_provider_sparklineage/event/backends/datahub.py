"""DataHub, which this package's own transport converts events for: they stay as they were made."""

from __future__ import annotations

from airflow_provider_sparklineage.event.backends.base import Backend


class DataHub(Backend):
    """DataHub; ``links/datahub_pages`` knows its pages.

    A page is that of a URN, which is not made of names alone.
    """

    name = "datahub"
    title = "DataHub"
