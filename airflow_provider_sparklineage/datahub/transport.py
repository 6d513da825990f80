"""The transport of OpenLineage's client that sends to DataHub.

It is named by its class path where the client has its transports: in Airflow's ``[openlineage]
transport``, in the extra of a connection, alone or as a child of ``composite``::

    {"type": "airflow_provider_sparklineage.datahub.DataHubTransport",
     "server": "http://gms:8080", "token": "…"}

What it is given is what the client sends for any task, DAG run or Spark application. It returns
once DataHub has all of it, and raises if it has not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs
from openlineage.client.transport.transport import Config, Transport

from airflow_provider_sparklineage.datahub import configuration, folder, sending
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.model.credentials import logger

if TYPE_CHECKING:
    from openlineage.client.client import Event as ClientEvent

    from airflow_provider_sparklineage.event.document import Event

log = logger(__name__)


@attrs.define
class DataHubConfig(Config):
    """The configuration as the client makes it from what it is given."""

    read: configuration.Configuration

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> DataHubConfig:
        """Read a configuration.

        :raise SettingsError: if a key is unknown, or a value is impossible
        """
        return cls(configuration.read(params))


class DataHubTransport(Transport):
    """Sends events to DataHub, or writes them to files for it."""

    kind = "datahub"
    config_class = DataHubConfig

    def __init__(self, config: DataHubConfig) -> None:
        self._config = config.read

    def emit(self, event: ClientEvent) -> None:
        """Convert an event, and have DataHub store all of it.

        :raise DeliveryError: if it did not, in the time that the configuration gives
        """
        begun = time.monotonic()
        document = _document(event)
        if document is None:
            log.debug("DataHub is sent events of runs only.")
            return
        how, server = self._config.conversion, self._config.server
        made = proposals(document, how)
        if server is not None:
            count = sending.send(server, made, begun + server.timeout)
            log.debug("DataHub stored %d aspects in %.2f s.", count, time.monotonic() - begun)
        elif self._config.folder is not None:
            folder.write(self._config.folder, document, made)


def _document(event: ClientEvent) -> Event | None:
    """Give an event as JSON has it; None if it is of no run, but of a dataset or a job alone."""
    from openlineage.client.serde import Serde

    document: Event = Serde.to_dict(event)
    is_of_run = isinstance(document.get("run"), dict) and isinstance(document.get("job"), dict)
    return document if is_of_run else None
