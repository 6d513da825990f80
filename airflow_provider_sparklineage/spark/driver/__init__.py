"""The observer that ships to the PySpark driver; nothing of it is imported on the worker.

:mod:`..submit.submitted_files` packs ``sitecustomize.py`` and ``sparklineage_observer/`` into one
zip, which ``--py-files`` puts on the driver's Python path. There Python imports ``sitecustomize``
by itself, so the job needs no change. Python 3.8 syntax, the standard library, and py4j through the
session.
"""
