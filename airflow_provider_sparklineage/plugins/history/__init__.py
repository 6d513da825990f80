"""The answers that the page "Lineage" in Airflow's navigation draws.

The endpoints of the page are in ``plugins/app.py``. They ask the history (``opened.py``), leave out
runs and partitions that the user may not see (``permissions.py``), and answer with JSON
(``answers.py``). ``plugins/page.py`` gives the files of the page.
"""
