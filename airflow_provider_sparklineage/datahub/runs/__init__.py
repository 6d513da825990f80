"""DAGs, tasks and their runs, with what is missing from the lineage of each.

======================  ============================================================================
:mod:`.jobs`            DataFlow and DataJob, with :mod:`.people`: owners and tags
:mod:`.silent_jobs`     tasks that send no event of their own
:mod:`.instances`       DataProcessInstance: a try, a run of a DAG
:mod:`.run_properties`  its custom properties; :mod:`.missing` has those of its lineage
:mod:`.dependencies`    what comes before a task and a run
:mod:`.airflow_pages`   addresses of Airflow's pages
======================  ============================================================================
"""
