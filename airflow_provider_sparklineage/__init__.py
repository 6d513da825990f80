"""OpenLineage of Spark jobs run by Airflow, merged into one event per task.

The folders are the stations of the flow, in its order. What comes later may import what comes
before, never the other way round (``setup.cfg``); see ``docs/architecture.md``.

==================  ================================================================================
``model/``          the values that all stations speak of: names, partitions, conditions, timestamps
``storage/``        files that are not on this machine, and calls that may take only so long
``templates/``      template + context → text, and which characters came from which date
``expectations/``   traced texts and declarations → the partitions that a task should access
``spark/submit/``   a submission → the same with listener, observer and capture bundle in it
``spark/driver/``   the observer: runs in the PySpark driver, notes what each query accessed
``spark/capture/``  the bundle of one try on disk → typed events and observations
``lineage/``        events + observations → one ``TaskLineage``: what was read, written, from what
``settings/``       options and connections → the settings of one try
``event/``          ``TaskLineage`` → one RunEvent, and the steps until it leaves
``datahub/``        any RunEvent → DataHub's metadata, and the transport that sends it
``history/``        many RunEvents → tables, and the questions that span runs
``hooks/``          Airflow's configuration and connections as sources of settings
``links/``          links from a task to its pages in the lineage backend
``operators/``      the operator: injection before spark-submit, collection after it
``plugins/``        the tab in Airflow's pages, and its page
``cli/``            the ``sparklineage`` command
==================  ================================================================================

Only ``hooks``, ``links``, ``operators``, ``plugins`` and the commands that say so import Airflow.
"""
