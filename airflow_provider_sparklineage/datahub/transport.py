"""The transport of OpenLineage's client that sends to DataHub.

A configuration of the client names the transport by its class path: in Airflow's ``[openlineage]
transport`` or in the extra of a connection, alone or as a child of ``composite``::

    {"type": "airflow_provider_sparklineage.datahub.DataHubTransport",
     "server": "http://gms:8080", "token": "…"}

The client hands the transport the events of any task, DAG run or Spark application. The transport
returns once DataHub has the whole event, and raises an error if DataHub does not have it in time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport.transport import Config, Transport

from airflow_provider_sparklineage.datahub import configuration, sending
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.event.model import CARRIERS, DOCUMENTATION_KEY
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openlineage.client.client import Event as ClientEvent
    from openlineage.client.event_v2 import Dataset

    from airflow_provider_sparklineage.datahub.proposals import Json


log = logger(__name__)


@attrs.define
class DataHubConfig(Config):
    """The transport's configuration, as the object that the client makes from its dictionary.

    :param read: the checked configuration
    """

    read: configuration.Configuration

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> DataHubConfig:
        """Read a configuration.

        :param params: the dictionary that the client has for the transport
        :raise SettingsError: if a key is unknown, or a value is impossible
        """
        return cls(configuration.read(params))


class DataHubTransport(Transport):
    """Sends events to DataHub, or writes them to files for ``datahub ingest``."""

    kind = "datahub"
    config_class = DataHubConfig

    def __init__(self, config: DataHubConfig) -> None:
        self._config = config.read

    def emit(self, event: ClientEvent) -> None:
        """Convert an event, and send it to DataHub or write it to a file.

        :raise DeliveryError: if DataHub did not store the whole event in the configured time, or
            the file cannot be written
        """
        begun = time.monotonic()
        document = _document(event)
        how, server = self._config.conversion, self._config.server
        converted = proposals(document, how)
        if server is not None:
            count = sending.send(server, converted, begun + server.timeout)
            log.debug("DataHub stored %d aspects in %.2f s.", count, time.monotonic() - begun)
        elif self._config.folder is not None:
            sending.write_file(self._config.folder, document, converted)


def _document(event: ClientEvent) -> Json:
    """Give an event as plain JSON, without the changes made for another backend."""
    if not isinstance(event, RunEvent):  # an event of a dataset or a job alone
        return Serde.to_dict(event)
    return neutral_of(event) or _as_json(event)


def _as_json(event: RunEvent) -> Json:
    """Convert an event to the JSON that the client's own ``Serde`` would give.

    ``Serde`` itself takes seconds for an event whose facets have many columns.
    """
    return _with_header_of(
        event,
        run_facets=_facets(event.run.facets),
        job_facets=_facets(event.job.facets),
        inputs=_datasets(event.inputs, "inputFacets"),
        outputs=_datasets(event.outputs, "outputFacets"),
    )


def _with_header_of(
    event: RunEvent, *, run_facets: Json, job_facets: Json, inputs: list[Json], outputs: list[Json]
) -> Json:
    run, job, state = event.run, event.job, event.eventType
    return {
        "eventTime": event.eventTime,
        "eventType": str(state.value) if state else "OTHER",
        "producer": event.producer,
        "schemaURL": event.schemaURL,
        "run": {"runId": run.runId, "facets": run_facets},
        "job": {"namespace": job.namespace, "name": job.name, "facets": job_facets},
        "inputs": inputs,
        "outputs": outputs,
    }


def _datasets(datasets: Iterable[Dataset] | None, own: str) -> list[Json]:
    """Give the inputs or the outputs as JSON.

    :param own: the key of the facets that only inputs or only outputs have: ``inputFacets`` or
        ``outputFacets``
    """
    return [
        {
            "namespace": dataset.namespace,
            "name": dataset.name,
            "facets": _facets(dataset.facets),
            own: _facets(getattr(dataset, own, None)),
        }
        for dataset in datasets or ()
    ]


def _facets(facets: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give facets as JSON; a facet is an object of the client, or a dict from JSON."""
    return {
        key: msgspec.to_builtins(facet, enc_hook=str)
        if isinstance(facet, dict)
        else Serde.to_dict(facet)
        for key, facet in (facets or {}).items()
        if facet is not None
    }


# --- the neutral event ----------------------------------------------------------------------------


def neutral_of(run_event: RunEvent) -> Json | None:
    """Give an event of this package in its neutral form, without changes for any backend, as JSON.

    The object of one of the event's facets carries the neutral form
    (:func:`.event.openlineage.with_neutral`). Airflow's additions to the event are kept: run, job,
    time, the facets of Airflow, and the datasets of ``run_event`` if the neutral form has none.

    :return: None if the event carries no neutral form: it is a START event, or an event of another
        task or producer
    """
    facets = run_event.run.facets or {}
    carried = (getattr(facets.get(key), "neutral", None) for key in CARRIERS)
    neutral: Json | None = next((one for one in carried if one is not None), None)
    if neutral is None:
        return None
    job_facets = dict(run_event.job.facets or {})
    job_facets.pop(DOCUMENTATION_KEY, None)
    has_datasets = neutral["inputs"] or neutral["outputs"]
    of_sides = neutral if has_datasets else _as_json(run_event)
    return _with_header_of(
        run_event,
        run_facets=_added(facets) | neutral["run"]["facets"],
        job_facets=_added(job_facets) | neutral["job"]["facets"],
        inputs=of_sides["inputs"],
        outputs=of_sides["outputs"],
    )


def _added(facets: Mapping[str, Any]) -> Json:
    """Give the facets that this package has not made, as JSON without nulls."""
    return {key: Serde.to_dict(facet) for key, facet in facets.items() if not _is_own(facet)}


def _is_own(facet: Any) -> bool:
    of = facet.get("_producer") if isinstance(facet, dict) else getattr(facet, "_producer", None)
    return bool(of == producer())
