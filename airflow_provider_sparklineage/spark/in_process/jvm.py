"""The JVM of this process's driver: what it has, and what can be added while it runs.

What a submission would have to be guessed from names, it knows: which Spark it is, which listeners
are on its class paths, and whether one can be loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import listener
from airflow_provider_sparklineage.spark.submit.class_path import JobListener, ListenerSource
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS, Identity

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESOURCE = LISTENER_CLASS.replace(".", "/") + ".class"


class Jvm:
    """A JVM that PySpark has started, or met.

    :param client: py4j's
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._loader = self.named("java.lang.Thread").currentThread().getContextClassLoader()

    def named(self, name: str) -> Any:
        """Give a class by its full name: of ``jvm.org.apache`` py4j asks for each part."""
        from py4j.java_gateway import JavaClass

        return JavaClass(name, self.client)

    def spark(self) -> SparkDistribution:
        """Say which Spark it has."""
        spark = getattr(self.named("org.apache.spark.package$"), "MODULE$")
        numbers = self.named("scala.util.Properties").versionNumberString().split(".")
        home = self.named("java.lang.System").getenv("SPARK_HOME")
        folder = Path(home) if home else None
        return SparkDistribution(folder, spark.SPARK_VERSION(), ".".join(numbers[:2]))

    def listeners(self) -> tuple[JobListener, ...]:
        """Find the listeners that it would load, wherever they came from."""
        above = {str(url) for url in self._places(self._loader.getParent())}
        found = []
        for url in self._places(self._loader):
            source = ListenerSource.DRIVER if url in above else ListenerSource.JARS
            path = Path(unquote(urlsplit(url.removeprefix("jar:").partition("!/")[0]).path))
            identity = listener.of_name(path.name) or Identity(None, None)
            is_jar = path.is_file()
            found.append(JobListener(source, str(path), identity, path if is_jar else None))
        return tuple(found)

    @staticmethod
    def _places(loader: Any) -> Iterable[str]:
        places = loader.getResources(_RESOURCE)
        found = []
        while places.hasMoreElements():
            found.append(places.nextElement().toString())
        return dict.fromkeys(found)

    def add(self, jars: Iterable[str]) -> None:
        """Put jars of this machine on the class path that ``--jars`` would put them on.

        :raise ListenerError: if it takes none, or the listener cannot be loaded then
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
