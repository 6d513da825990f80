"""RunEvents to DataHub: fields to fields, partition by partition, each run with its outcome.

What is converted are events of OpenLineage, of every task that Airflow's provider sends one for;
those of this package are converted in full, before anything is done to them for another backend.

======================  ============================================================================
:mod:`.options`         what the transport's configuration says
:mod:`.conversion`      event → proposals: the parts below, in their order
:mod:`.subject`         the event's entities, and their URNs
:mod:`.lenient`         reading what other producers may have written in another shape
:mod:`.jobs`            DAGs and tasks, named as :mod:`.job_names` cuts the name of a job
:mod:`.silent_jobs`     tasks that send no event of their own
:mod:`.runs`            tries and DAG runs, with :mod:`.run_properties` and what is :mod:`.missing`
:mod:`.accesses`        what the run did to each dataset: which part, how much, as expected or not
:mod:`.operations`      each partition that was written
:mod:`.profiles`        how many rows a partition has, and what a task measured
:mod:`.run_datasets`    what the run read and wrote, on the run
:mod:`.assertions`      checks with their results: :mod:`.partition_checks`, and a task's own
                        tests: :mod:`.quality`
:mod:`.conditions`      the facet ``subset`` as a condition
:mod:`.lineage`         what is made of what: the job's SQL (:mod:`.queries`), outputs
                        (:mod:`.upstreams`), the job itself (:mod:`.job_lineage`, with
                        :mod:`.job_columns`), from :mod:`.feeding`, who feeds whom, and
                        :mod:`.columns` with their :mod:`.transformations`
:mod:`.identities`      a dataset of the event → one of DataHub, by :mod:`.platforms`' names,
                        symlinks, and :mod:`.namespaces`, which the configuration knows
:mod:`.datasets`        that datasets are there, and what else they are called
:mod:`.schemas`         the schemas of datasets, by :mod:`.schema_fields`, each with a path by
                        :mod:`.field_paths` and a type by :mod:`.column_types`, :mod:`.data_types`
:mod:`.urns`            URNs that DataHub's server takes, whatever a name is
:mod:`.patches`         what is added to an aspect, and leaves the rest of it alone
:mod:`.audit`           who changed something, and when
:mod:`.proposals`       one aspect of one entity, as JSON: what DataHub is asked to store
:mod:`.configuration`   what the transport's configuration says, key by key
:mod:`.transport`       what OpenLineage's client hands events to; converts them, and sends them by
:mod:`.sending`         batches of proposals, until a time has passed, by
:mod:`.gms`             one request to DataHub's server; or writes them by
:mod:`.folder`          files that ``datahub ingest`` reads
======================  ============================================================================

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
