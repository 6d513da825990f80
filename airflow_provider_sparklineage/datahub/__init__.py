"""RunEvents to DataHub: fields to fields, partition by partition, each run with its outcome.

What is converted are events of OpenLineage, of every task that Airflow's provider sends one for;
those of this package are converted in full, before anything is done to them for another backend.

======================  ============================================================================
:mod:`.options`         what the transport's configuration says
:mod:`.conversion`      event → proposals: the parts below, in their order
:mod:`.subject`         the event's entities, and their URNs
:mod:`.lenient`         reading what other producers may have written in another shape
:mod:`.accesses`        what the run did to each dataset: which part, how much, as expected or not
:mod:`.operations`      each partition that was written
:mod:`.conditions`      the facet ``subset`` as a condition
:mod:`.identities`      a dataset of the event → one of DataHub, by :mod:`.platforms`' names,
                        symlinks, and :mod:`.namespaces`, which the configuration knows
:mod:`.urns`            URNs that DataHub's server takes, whatever a name is
:mod:`.proposals`       one aspect of one entity, as JSON: what DataHub is asked to store
======================  ============================================================================

The conversion is pure, and knows DataHub's JSON without its SDK, whose objects take ten times as
long; that the SDK takes each of them is what the tests show. The SDK is imported to send, only.

Words of DataHub that are used here: an *aspect* is a document on an entity (``schemaMetadata`` of a
dataset), a *proposal* (MCP, MetadataChangeProposal) asks to store one, *GMS* is its server.
"""
