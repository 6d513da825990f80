"""The doctor: what in a set-up keeps lineage from arriving, and the fix.

:mod:`.spark` looks at this machine's Spark, listener and capture location, :mod:`.trial` runs a
small application, and :mod:`.report` says what was found. Airflow's half, and the lineage backend,
are in :mod:`.airflow`.
"""
