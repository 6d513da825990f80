"""The observer, which is shipped to the PySpark driver.

:mod:`..submit.submitted_files` packs ``sitecustomize.py`` and ``sparklineage_observer/`` into one
zip, which ``--py-files`` puts on the driver's Python path. In the driver, Python imports
``sitecustomize`` by itself, so the job needs no change. The observer uses only the syntax of Python
3.8, the standard library, and the py4j of the driver's session. The worker imports it only where
PySpark runs in the task's own process (:mod:`..in_process`).
"""
