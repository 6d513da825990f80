"""The observer in a process that is more than a driver: an Airflow task in which PySpark runs.

The process does other work before and after the task's function, and may run several applications,
of which only some are observed. So, when an application has ended, the observer removes all its
changes to PySpark, and its listeners from a session that continues.
"""

import importlib
import logging
from contextlib import suppress

from sparklineage_observer import attaching
from sparklineage_observer.attaching import attached

_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_SERVING = ("run", "wait_for_commands")
"""The functions of py4j that log each call from Java; without a filter, Airflow's log would have a
line for each query."""


def begin(settings):
    """Observe the applications of this process from now on, until :func:`end` is called.

    :param settings: a dict of the properties ``spark.sparklineage.…``, which other drivers have in
        Spark's configuration
    """
    attached.begin(settings)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_of_the_job)
    attaching.wrap_sessions(importlib.import_module("pyspark.sql.session"))


def finish(drain_ms):
    """Wait until Spark has reported all ended queries, and write the last records.

    :param drain_ms: the longest time to wait, in ms
    """
    if attached.observer is not None:
        attached.observer.finish(drain_ms)


def end():
    """Undo the changes to PySpark and its sessions that were made since :func:`begin`."""
    attached.replacements.undo()
    for remove, listener in attached.listeners:
        with suppress(Exception):  # the JVM is gone, and the session with it
            remove(listener)
    for name in _LOGGERS:
        logging.getLogger(name).removeFilter(_is_of_the_job)
    attached.begin({})


def _is_of_the_job(record):
    return record.levelno > logging.INFO or record.funcName not in _SERVING
