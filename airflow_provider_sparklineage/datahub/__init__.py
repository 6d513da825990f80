"""RunEvents to DataHub: fields to fields, partition by partition, each run with its outcome.

What is converted are events of OpenLineage, of every task that Airflow's provider sends one for;
those of this package are converted in full, before anything is done to them for another backend.

==================  ================================================================================
``transport``       the entrance: OpenLineage's client hands it events, which it converts and sends
``configuration``   the transport's configuration, key by key
``conversion``      event → proposals, by the list of functions in it
``subject``         the event's entities, with their URNs, and what else all parts ask of the event
``lenient``         reading: values that other producers have written in another shape are absent
``naming``          DataHub's names of datasets, flows, jobs and runs
``schema``          fields of a dataset, with their paths and types
``jobs``            DataFlow and DataJob: DAGs and their tasks
``runs``            DataProcessInstance: tries, with their datasets and what their lineage lacks
``datasets``        that datasets are there, their other names, and their schemas
``lineage_facets``  datasets and columns that feed an output, as the event has them
``lineage``         the same as an output, a job and its SQL have it in DataHub
``partitions``      the part of a dataset that a run read or wrote: operations and profiles
``assertions``      whether partitions were as expected, and the tests of a task's own
``proposals``       one aspect of one entity, as JSON; patches of it, and its custom properties
``sending``         proposals to DataHub's server, or to files
==================  ================================================================================

The conversion is pure, and knows DataHub's JSON without its SDK, whose objects take ten times as
long; that the SDK takes each of them, and sends what is sent here, is what the tests show.

Words of DataHub that are used here: an *aspect* is a document on an entity (``schemaMetadata`` of a
dataset), a *proposal* (MCP, MetadataChangeProposal) asks to store one, *GMS* is its server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.transport import DataHubTransport

__all__ = ["DataHubTransport"]


def __getattr__(name: str) -> Any:
    """Import the transport when it is asked for: with it come all of OpenLineage's own."""
    if name == "DataHubTransport":
        from airflow_provider_sparklineage.datahub.transport import DataHubTransport

        return DataHubTransport
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
