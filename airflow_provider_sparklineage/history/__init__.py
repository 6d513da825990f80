"""History: tables of the reads and writes of many runs, and queries that span runs.

The only input is events: those of the archive, and OpenLineage events of any producer. Each event
becomes one line of facts (:mod:`.facts`), steps in SQL make tables from the facts (:mod:`.steps`,
:mod:`.tables`), a store holds the tables (:mod:`.store`), and queries read them (:mod:`.queries`).
The steps run on DuckDB and on PySpark alike (:mod:`.engines`).
"""
