"""Where PySpark starts a JVM and makes a SparkContext in this process, and what is there already.

PySpark has one gateway for a process, and one SparkContext at a time. It gives the SparkContext's
configuration to the JVM that it starts, as arguments that every user of the machine can read and as
system properties that every later SparkContext of the process has as well. So what we add comes
later: when the JVM is there, and the configuration is complete.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_sparklineage.spark.in_process import observer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


class Watcher(Protocol):
    """What is asked while PySpark makes a SparkContext; what it raises ends that."""

    def starting(self, conf: Any) -> AbstractContextManager[Any]:
        """Give the configuration (PySpark's) with which a JVM starts in here; None: the default."""

    def prepared(self, client: Any, conf: Any) -> Any:
        """Give the configuration (Java's) of a SparkContext that is about to be made.

        :param client: py4j's
        """


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have each SparkContext that this process makes in here go by a watcher.

    :raise ImportError: if there is no PySpark that makes any
    """
    from pyspark import SparkContext

    of: Any = SparkContext
    replacements = observer.module("replacing").Replacements()
    initialise, make = of._ensure_initialized.__func__, of._initialize_context  # noqa: SLF001

    def _ensure_initialized(
        cls: Any, instance: Any = None, gateway: Any = None, conf: Any = None
    ) -> None:
        if gateway is None and not of._gateway:  # noqa: SLF001
            with watcher.starting(conf) as given:
                initialise(cls, conf=given)
        initialise(cls, instance, gateway, conf)

    def _initialize_context(self: Any, jconf: Any) -> Any:
        return make(self, watcher.prepared(of._gateway._gateway_client, jconf))  # noqa: SLF001

    replacements.replace(of, "_ensure_initialized", classmethod(_ensure_initialized))
    replacements.replace(of, "_initialize_context", _initialize_context)
    try:
        yield
    finally:
        replacements.undo()


def active() -> tuple[Any, Any]:
    """Give the SparkContext that this process has, and the session that PySpark would give again.

    :return: None for what is not there
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    session: Any = SparkSession._instantiatedSession  # noqa: SLF001
    if context is None or context._jsc is None:  # noqa: SLF001
        return None, None
    has_session = session is not None and session._sc is context  # noqa: SLF001
    return context, session if has_session else None
