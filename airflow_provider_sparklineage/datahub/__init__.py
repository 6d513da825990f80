"""Convert RunEvents to DataHub's metadata: fields, partitions, and runs with their outcomes.

The input is OpenLineage's events: every event that Airflow's provider sends for a task. An event of
this package is converted in its full form, without the changes that another backend needs.

==================  ================================================================================
``transport``       the entry point, to which OpenLineage's client gives events to convert and send
``configuration``   the transport's configuration, key by key
``conversion``      the conversion of an event to proposals, by a list of functions
``subject``         the event's entities with their URNs, and other values that all parts read
``naming``          DataHub's names of datasets, flows, jobs and runs
``schema``          fields of a dataset, with their paths and types
``jobs``            DataFlow and DataJob: DAGs and their tasks
``runs``            DataProcessInstance: tries, with their datasets and the gaps in their lineage
``datasets``        the existence of datasets, their other names, and their schemas
``lineage_facets``  datasets and columns that feed an output, read from the event
``lineage``         the same datasets and columns, as aspects of the output, the job and the SQL
``partitions``      the part of a dataset that a run read or wrote: operations and profiles
``assertions``      whether partitions were as expected, and the data tests that a task made
``proposals``       one aspect of one entity, as JSON; patches of an aspect; custom properties
``sending``         proposals to DataHub's server, or to files
==================  ================================================================================

The conversion is pure. It writes DataHub's JSON without DataHub's SDK, because the SDK's objects
take ten times as long to make. The tests show that the SDK reads each proposal, and would send the
same JSON.

Words of DataHub that are used here: an *aspect* is a document on an entity (``schemaMetadata`` of a
dataset), a *proposal* (MCP, MetadataChangeProposal) asks DataHub to store an aspect, *GMS* is
DataHub's server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.transport import DataHubTransport

__all__ = ["DataHubTransport"]


def __getattr__(name: str) -> Any:
    """Give the class of the transport, imported on first use.

    The import takes long, because it imports all of OpenLineage's transports.

    :raise AttributeError: for any other name
    """
    if name == "DataHubTransport":
        from airflow_provider_sparklineage.datahub.transport import DataHubTransport

        return DataHubTransport
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
