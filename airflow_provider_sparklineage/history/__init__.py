"""History: what many runs did, in tables, and the questions that span runs.

It reads events and nothing else: those of the archive, and OpenLineage events of any producer. Each
event becomes one line of facts (:mod:`.facts`), steps in SQL make tables of them (:mod:`.steps`,
:mod:`.tables`), a store holds these (:mod:`.store`), and queries read them (:mod:`.queries`). The
steps run on DuckDB and on PySpark alike (:mod:`.engines`).
"""
