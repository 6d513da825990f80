"""PySpark in the task's own process: the JVM, the SparkContexts, and our additions to both.

PySpark has one gateway for a process, and one SparkContext at a time. When PySpark starts the JVM,
it passes the SparkContext's configuration as arguments that every user of the machine can read, and
as system properties that every later SparkContext of the process also has. So our configuration is
added later, when the JVM runs and the job's configuration is complete (:func:`watched_contexts`). A
SparkContext that existed before the task gets a :class:`LateListener`.

A submission has to guess three facts from the names of files: the version of Spark, the listeners
on the class paths, and whether a listener can be loaded. Here the JVM is asked for these facts
(:class:`Jvm`). The observer, which is shipped to other drivers, is imported into this process
(:func:`observer_module`).
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import listener
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS, Identity
from airflow_provider_sparklineage.spark.submit.listener_selection import (
    JobListener,
    ListenerSource,
)
from airflow_provider_sparklineage.spark.submit.submitted_files import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager


_OBSERVER = "sparklineage_observer"


def observer_module(name: str) -> Any:
    """Import a module of the observer's package under the name ``sparklineage_observer.<name>``.

    The modules import each other by this name, but the package is on no path of this process.
    """
    if _OBSERVER not in sys.modules:
        folder = DRIVER / _OBSERVER
        spec = spec_from_file_location(
            _OBSERVER, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            msg = f"There is no {folder}."
            raise ImportError(msg)
        package = module_from_spec(spec)
        sys.modules[_OBSERVER] = package
        spec.loader.exec_module(package)
    return import_module(f"{_OBSERVER}.{name}")


class Watcher(Protocol):
    """An object whose methods are called while PySpark makes a SparkContext.

    If a method raises an error, PySpark makes no SparkContext.
    """

    def starting(self, conf: Any) -> AbstractContextManager[Any]:
        """Give a context manager, inside which PySpark starts a JVM.

        Its ``__enter__`` gives the PySpark configuration with which the JVM starts, or None for
        PySpark's default configuration.

        :param conf: PySpark's configuration, as the job gives it
        """

    def prepared(self, client: Any, conf: Any) -> Any:
        """Give the Java configuration of a SparkContext that is about to be made.

        :param client: the gateway client of py4j
        :param conf: the Java SparkConf that PySpark would use
        """


@contextmanager
def watched_contexts(watcher: Watcher) -> Iterator[None]:
    """Call a watcher for each JVM and each SparkContext that PySpark starts inside this block.

    :raise ImportError: if PySpark is not installed
    """
    from pyspark import SparkContext

    base: Any = SparkContext
    replacements = observer_module("attaching").Replacements()
    initialise, make = base._ensure_initialized.__func__, base._initialize_context  # noqa: SLF001

    def _ensure_initialized(
        cls: Any, instance: Any = None, gateway: Any = None, conf: Any = None
    ) -> None:
        if gateway is None and not base._gateway:  # noqa: SLF001
            with watcher.starting(conf) as jvm_conf:
                initialise(cls, conf=jvm_conf)
        initialise(cls, instance, gateway, conf)

    def _initialize_context(self: Any, jconf: Any) -> Any:
        return make(self, watcher.prepared(base._gateway._gateway_client, jconf))  # noqa: SLF001

    replacements.replace(base, "_ensure_initialized", classmethod(_ensure_initialized))
    replacements.replace(base, "_initialize_context", _initialize_context)
    try:
        yield
    finally:
        replacements.undo()


def active_context() -> tuple[Any, Any]:
    """Give the active SparkContext of this process, and the session that PySpark would reuse.

    :return: (None, None) if no SparkContext is active; None in place of the session if there is no
        session of the active SparkContext
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    session: Any = SparkSession._instantiatedSession  # noqa: SLF001
    if context is None or context._jsc is None:  # noqa: SLF001
        return None, None
    has_session = session is not None and session._sc is context  # noqa: SLF001
    return context, session if has_session else None


_LISTENER_RESOURCE = LISTENER_CLASS.replace(".", "/") + ".class"


class Jvm:
    """The JVM that PySpark has started in this process.

    :param client: the gateway client of py4j
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._loader = self.named("java.lang.Thread").currentThread().getContextClassLoader()

    def named(self, name: str) -> Any:
        """Give a Java class by its full name.

        For the expression ``jvm.org.apache…`` py4j would ask the JVM about each part of the name.
        """
        from py4j.java_gateway import JavaClass

        return JavaClass(name, self.client)

    def spark(self) -> SparkDistribution:
        """Give the Spark distribution of the JVM: its folder, and its Spark and Scala versions."""
        spark = getattr(self.named("org.apache.spark.package$"), "MODULE$")
        numbers = self.named("scala.util.Properties").versionNumberString().split(".")
        home = self.named("java.lang.System").getenv("SPARK_HOME")
        folder = Path(home) if home else None
        return SparkDistribution(folder, spark.SPARK_VERSION(), ".".join(numbers[:2]))

    def listeners(self) -> tuple[JobListener, ...]:
        """Find the jars of OpenLineage's listener on all class paths of the JVM."""
        above = {str(url) for url in self._places(self._loader.getParent())}
        listeners = []
        for url in self._places(self._loader):
            source = ListenerSource.DRIVER if url in above else ListenerSource.JARS
            path = Path(unquote(urlsplit(url.removeprefix("jar:").partition("!/")[0]).path))
            identity = listener.identity_of_name(path.name) or Identity(None, None)
            is_jar = path.is_file()
            listeners.append(JobListener(source, str(path), identity, path if is_jar else None))
        return tuple(listeners)

    @staticmethod
    def _places(loader: Any) -> Iterable[str]:
        places = loader.getResources(_LISTENER_RESOURCE)
        urls = []
        while places.hasMoreElements():
            urls.append(places.nextElement().toString())
        return dict.fromkeys(urls)

    def add(self, jars: Iterable[str]) -> None:
        """Add jars of this machine to the class path to which Spark adds the jars of ``--jars``.

        :raise ListenerError: if no jar can be added to the class path, or the listener cannot be
            loaded from it afterwards
        """
        try:
            for jar in jars:
                self._loader.addURL(self.named("java.io.File")(jar).toURI().toURL())
            self.named("java.lang.Class").forName(LISTENER_CLASS, True, self._loader)
        except Exception as error:
            problem = (
                "The listener cannot be loaded in the JVM that this process has "
                f"({type(error).__name__}: {str(error).splitlines()[0]})."
            )
            fix = "Let the task's own function be the first that uses Spark in its process."
            raise ListenerError(problem, fix) from error

    def properties(self, conf: Any) -> dict[str, str]:
        """List the properties of a Java SparkConf."""
        return {str(entry._1()): str(entry._2()) for entry in conf.getAll()}  # noqa: SLF001


# A listener that is added to a running SparkContext has a configuration of its own. Spark reported
# the application's start before the listener was added, and may report the application's end after
# the listener was removed. So this class reports both to the listener.


_DRAIN_MS = 600_000
"""The time for Spark's last events. It is long, because the task waits only for its own
``collect_timeout``, and declares that something may be missing if this takes longer."""


class LateListener:
    """A listener for one try, added to a SparkContext that existed before the try.

    :param context: the Java SparkContext
    :param conf: a Java SparkConf that only the listener gets
    """

    def __init__(self, jvm: Jvm, context: Any, conf: Any) -> None:
        self._jvm, self._context = jvm, context
        self._listener = jvm.named(LISTENER_CLASS)(conf)
        self._listener.onApplicationStart(self._start())
        context.addSparkListener(self._listener)

    def end(self) -> None:
        """Remove the listener from its SparkContext, unless the SparkContext has stopped."""
        if self._context.isStopped():  # Spark has reported the end to the listener already
            return
        with suppress(Exception):  # after a timeout, later events are lost
            self._context.listenerBus().waitUntilEmpty(_DRAIN_MS)
        self._context.removeSparkListener(self._listener)
        self._listener.onApplicationEnd(self._end())

    def _start(self) -> Any:
        none = self._jvm.named("scala.Option").empty()
        some = self._jvm.named("scala.Option").apply
        context = self._context
        return self._jvm.named("org.apache.spark.scheduler.SparkListenerApplicationStart")(
            context.appName(),
            some(context.applicationId()),
            int(time.time() * 1000),  # the task's part of the application starts now
            context.sparkUser(),
            context.applicationAttemptId(),
            none,
            none,
        )

    def _end(self) -> Any:
        ended = self._jvm.named("org.apache.spark.scheduler.SparkListenerApplicationEnd")
        now = int(time.time() * 1000)
        try:
            return ended(now)
        except Exception:  # Spark 4 wants an exit code as well, which may be absent
            return ended(now, self._jvm.named("scala.Option").empty())
