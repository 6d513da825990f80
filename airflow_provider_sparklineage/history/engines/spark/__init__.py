"""Building the tables on Spark, from 3.5 on: the same steps and the same files as DuckDB's.

A job for spark-submit (:mod:`airflow_provider_sparklineage.history.spark_jobs.build_history`) leads
through it: texts become facts on the executors (:mod:`.reading`), the steps become Spark's SQL
(:mod:`.sql`) and run, and the tables become files of a store or tables of a catalog
(:mod:`.building`). The queries can be asked there, too (:mod:`.asking`).

Nothing here imports PySpark before a job calls it.
"""
