"""The observer in a process that is more than a driver: an Airflow task in which PySpark runs.

The process has other work before and after, and may run several applications, of which only some
are observed. So the observer leaves nothing behind when an application has ended: neither in
PySpark, nor in a session that goes on.
"""

import importlib
import logging

from sparklineage_observer import attaching
from sparklineage_observer.attaching import attached

_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_SERVING = ("run", "wait_for_commands")
"""Functions of py4j that log each call from Java: a line for each query in Airflow's log."""


def begin(settings):
    """Observe the applications of this process from now on, until :func:`end`.

    :param settings: the settings that a driver has in its configuration (``spark.sparklineage.…``)
    """
    attached.begin(settings)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_of_the_job)
    attaching.wrap_sessions(importlib.import_module("pyspark.sql.session"))


def finish(drain_ms):
    """Wait until Spark has reported the queries that are over, and write the last records."""
    if attached.observer is not None:
        attached.observer.finish(drain_ms)


def end():
    """Put PySpark and its sessions back into the state before :func:`begin`."""
    attached.replacements.undo()
    for remove, listener in attached.listeners:
        try:
            remove(listener)
        except Exception:  # noqa: S112  (the JVM is gone, and the session with it)
            continue
    for name in _LOGGERS:
        logging.getLogger(name).removeFilter(_is_of_the_job)
    attached.begin({})


def _is_of_the_job(record):
    return record.levelno > logging.INFO or record.funcName not in _SERVING
