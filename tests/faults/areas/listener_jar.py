"""The jar of the OpenLineage listener, which must never reach a job if it would end it."""

from __future__ import annotations

from airflow_provider_sparklineage.spark.capture import locks
from airflow_provider_sparklineage.spark.submit import fetching
from airflow_provider_sparklineage.spark.submit.listener import PINS
from tests.faults.registry import Area
from tests.unit.listener_jars import listener_jar, other_jar, with_a_damaged_class

AREA = Area(
    "The listener's jar",
    "A jar that is missing or would end the SparkContext is not given to the job: it runs without "
    "lineage.",
)
fault = AREA.fault


@fault("The listener's jar does not exist", "listener_unavailable")
def _(bench):
    bench.set("listener_jar", "/nowhere/openlineage-spark_2.13-1.53.0.jar")


@fault("The listener's jar is a folder", "listener_unavailable")
def _(bench):
    bench.set("listener_jar", bench.home)


@fault("The listener's jar is empty", "listener_unavailable")
def _(bench):
    bench.spark.jar.write_bytes(b"")


@fault("The listener's jar is truncated", "listener_unavailable")
def _(bench):
    bench.spark.jar.write_bytes(bench.spark.jar.read_bytes()[:-30])


@fault("The listener's jar is a web page", "listener_unavailable")
def _(bench):
    bench.spark.jar.write_text("<html>Sign in</html>")


@fault("The listener's jar is another library", "listener_unavailable")
def _(bench):
    bench.set("listener_jar", other_jar(bench.home / "openlineage-spark_2.13-1.53.0.jar"))


@fault("The listener's jar is for another Scala, whatever its name", "listener_unavailable")
def _(bench):
    jar = listener_jar(bench.home / "openlineage-spark_2.13-1.53.0.jar", scala="2.12")
    bench.set("listener_jar", jar)


@fault("The listener's jar is a link that leads nowhere", "listener_unavailable")
def _(bench):
    bench.spark.jar.unlink()
    bench.spark.jar.symlink_to("/nowhere.jar")


@fault("The listener's jar is a link to itself", "listener_unavailable")
def _(bench):
    bench.spark.jar.unlink()
    bench.spark.jar.symlink_to(bench.spark.jar)


@fault("A class in the listener's jar is damaged, but not its directory", "listener_unavailable")
def _(bench):
    with_a_damaged_class(listener_jar(bench.spark.jar))


@fault("The cached listener has the right size and zeros in it", "listener_unavailable")
def _(bench):
    bench.unset("listener_jar")
    fetching.cache_folder().mkdir(parents=True)
    with fetching.cached("2.13").open("wb") as file:
        file.truncate(PINS["2.13"].size)


@fault(
    "Another process holds the cache for ever, and the task may fetch",
    "listener_unavailable",
    leaves=(".cache/sparklineage/.lock",),
)
def _(bench):
    bench.unset("listener_jar")
    bench.set("fetch_listener", True)
    bench.patch(".spark.submit.fetching.TASK_LIMIT_S", 0.5)
    bench.patch(".spark.submit.java.feature_version", lambda _: 17)
    fetching.cache_folder().mkdir(parents=True)
    held = locks.acquire(fetching.cache_folder())
    bench.resources.callback(held.release)


@fault(
    "Spark's resolver hangs, and the task may fetch",
    "listener_unavailable",
    leaves=(".cache/sparklineage/.lock",),
)
def _(bench):
    bench.unset("listener_jar")
    bench.set("fetch_listener", True)
    bench.patch(".spark.submit.fetching.TASK_LIMIT_S", 0.5)
    bench.patch(".spark.submit.java.feature_version", lambda _: 17)
    binary = bench.spark.home / "bin" / "spark-submit"  # which is not the one that runs the job
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    binary.chmod(0o755)
