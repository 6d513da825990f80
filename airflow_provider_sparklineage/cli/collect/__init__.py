"""``airflow sparklineage collect``: lineage of tries whose job went on without their worker.

:mod:`.finding` is which capture bundles there are, :mod:`.merging` makes events of them,
:mod:`.collector` keeps, sends and shows these.
"""
