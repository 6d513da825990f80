"""Is what the events report true? The queries of TPC-H over planted partitions: ``make truth``.

Each query runs on its own copies of the tables, all of a format in one application, which is
submitted as a task would, and becomes one event. What that reports is compared with what is known
without Spark's plans:

====================  ============================================================================
:mod:`.queries`       the 22 queries, and of each which rows of which table matter
:mod:`.planting`      the data, and what is planted into the columns that partition it
:mod:`.values`        which partitions may and must be read, by DuckDB; which were written
:mod:`.opened`        which files Spark really opened, by strace
:mod:`.columns`       what each column is made of, by sqlglot
:mod:`.reported`      what the event reports, in the same terms
:mod:`.verdict`       the comparison
:mod:`.running`       one application for each format
:mod:`.job`           jobs whose truth is written down, for what no query of TPC-H does
:mod:`.jobs`          these jobs
:mod:`.running_jobs`  one application for them, on each format, and the comparison
====================  ============================================================================
"""
