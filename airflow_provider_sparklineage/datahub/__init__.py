"""RunEvents to DataHub: fields to fields, partition by partition, each run with its outcome.

What is converted are events of OpenLineage, of every task that Airflow's provider sends one for;
those of this package are converted in full, before anything is done to them for another backend.

==================  ================================================================================
``transport``       what OpenLineage's client hands events to; converts them, and sends them
``configuration``   what its configuration says, key by key; of the conversion: ``options``
``conversion``      event → proposals, by the parts in the folders below
``subject``         the event's entities, and their URNs; ``lenient`` reads what other producers may
                    have written in another shape
``proposals``       one aspect of one entity, as JSON; ``patches`` of it, by whom (``audit``), and
                    its custom properties (``values``)
``naming/``         what DataHub calls datasets, flows, jobs and runs
``datasets``        that datasets are there, and what else they are called
``schema/``         the schemas of datasets: fields, with their paths and types
``lineage/``        what is made of what, of tables and of columns
``runs/``           DAGs, tasks, tries, and what is missing from the lineage of each
``partitions/``     what a run did to which part of a dataset, and whether that was expected
``sending/``        proposals to DataHub's server, or to files
``pages``           the URLs of DataHub's pages
``checks``          whether DataHub's server takes proposals, for the doctor
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
