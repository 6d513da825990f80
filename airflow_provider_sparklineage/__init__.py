"""OpenLineage of Spark jobs run by Airflow, merged into one event per task.

The modules follow the data: ``operators`` injects the listener (``spark.conf``) and keeps what it
writes (``spark.capture``); ``spark.events`` decodes it, ``lineage.application`` accumulates and
repairs it, ``lineage.columns`` and ``lineage.merge`` make one task-level lineage of it, and
``lineage.facets`` says that in OpenLineage.
"""
