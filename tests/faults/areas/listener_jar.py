"""The jar of the OpenLineage listener, which must never reach a job if it would end it."""

from __future__ import annotations

from tests.faults.registry import Area
from tests.unit.listener_jars import listener_jar, other_jar

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
