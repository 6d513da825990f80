"""DataHub: events are not adapted here, because this package's own transport converts them."""

from __future__ import annotations

from airflow_provider_sparklineage.event.backends.base import Backend


class DataHub(Backend):
    """DataHub; ``links/datahub_pages`` gives the URLs of its pages.

    The URL of a page contains a URN, for which the names of a dataset are not enough.
    """

    name = "datahub"
    title = "DataHub"
