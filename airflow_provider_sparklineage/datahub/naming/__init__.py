"""What DataHub calls the entities of an event, as URNs that its server takes.

==================  ================================================================================
:mod:`.identities`  a dataset of the event → one of DataHub, by its symlinks too
:mod:`.platforms`   platform and name of a dataset, by OpenLineage's namespace and name
:mod:`.namespaces`  what the configuration knows better
:mod:`.job_names`   which DAG and which task of it an event is about
:mod:`.urns`        URNs, whatever a name is
==================  ================================================================================
"""
