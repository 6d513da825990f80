"""The page "Spark lineage" in Airflow's navigation: its endpoints, and what a user may see of them.

``routes`` are the endpoints, behind Airflow's session. They ask the history (:mod:`.opened`), leave
out what a user may not see (:mod:`.visibility`), and answer with JSON: which datasets there are
(:mod:`.datasets`), the partitions of one and their states (:mod:`.partitions`), what one of them
was made from and what was made from it (:mod:`.graph`), what to run again (:mod:`.plans`).

The page itself is TypeScript in ``ui``, which is not shipped; ``make page`` builds it into
``static``, which is. :mod:`.built` knows its files, and whether they are of these sources.
"""
