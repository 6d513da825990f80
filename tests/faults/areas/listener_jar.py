"""The jar of the OpenLineage listener, which must never reach a job if it would end it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time

from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.submit import fetching, listener
from tests.faults.bench import raising
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


@fault("The cached listener has zeros in it", "listener_unavailable")
def _(bench):
    bench.unset("listener_jar")
    fetching.cache_folder().mkdir(parents=True)
    with fetching.cached("2.13").open("wb") as file:
        file.truncate(40_000_000)


def _held(bench, name=ownership.LOCK_FILE):
    """Let another process hold a lock of the cache."""
    bench.unset("listener_jar")
    bench.set("fetch_listener", True)
    bench.patch(".spark.submit.commands.java_feature_version", lambda _: 17)
    fetching.cache_folder().mkdir(parents=True, exist_ok=True)
    held = ownership.acquire_lock(fetching.cache_folder(), name=name)
    bench.resources.callback(held.release)
    return fetching.cache_folder() / name


@fault(
    "Another process has just taken the cache, and holds it for ever; the task may fetch",
    "listener_unavailable",
    within=40,
)
def _(bench):
    bench.shorten(".spark.submit.fetching.TASK_LIMIT_S", 0.5)
    _held(bench)


@fault("Another process has held the cache for hours, and the task may fetch")
def _(bench):
    at = time.time() - 7200
    os.utime(_held(bench), (at, at))
    digest = hashlib.sha256(bench.spark.jar.read_bytes()).hexdigest()
    bench.monkeypatch.setitem(listener.PINS, "2.13", digest)
    _fetches(bench, lambda work: shutil.copyfile(bench.spark.jar, work / "fetched.jar"))


@fault(
    "Two other processes have held the cache for hours, and the task may fetch",
    "listener_unavailable",
)
def _(bench):
    at = time.time() - 7200
    os.utime(_held(bench), (at, at))
    _held(bench, ".lock-2")


@fault("A lock of the cache is from a clock of the future, and the task may fetch")
def _(bench):
    at = time.time() + 1e9
    os.utime(_held(bench), (at, at))
    digest = hashlib.sha256(bench.spark.jar.read_bytes()).hexdigest()
    bench.monkeypatch.setitem(listener.PINS, "2.13", digest)
    _fetches(bench, lambda work: shutil.copyfile(bench.spark.jar, work / "fetched.jar"))


@fault("The lock of the cache is a folder, and the task may fetch", "listener_unavailable")
def _(bench):
    _fetches(bench, raising(ZeroDivisionError()))
    (fetching.cache_folder() / ownership.LOCK_FILE).mkdir(parents=True)


@fault("The cached listener is a pipe", "listener_unavailable")
def _(bench):
    bench.unset("listener_jar")
    fetching.cache_folder().mkdir(parents=True)
    os.mkfifo(fetching.cached("2.13"))


@fault("The listener's jar is a pipe", "listener_unavailable")
def _(bench):
    bench.spark.jar.unlink()
    os.mkfifo(bench.spark.jar)


@fault("An extension of the listener is a pipe", "extension_unavailable")
def _(bench):
    os.mkfifo(bench.home / "shop.jar")
    bench.lineage["listener_extensions"] = [str(bench.home / "shop.jar")]


@fault(
    "Spark's resolver hangs, and the task may fetch",
    "listener_unavailable",
    within=40,
)
def _(bench):
    bench.unset("listener_jar")
    bench.set("fetch_listener", True)
    bench.shorten(".spark.submit.fetching.TASK_LIMIT_S", 0.5)
    bench.patch(".spark.submit.commands.java_feature_version", lambda _: 17)
    binary = bench.spark.home / "bin" / "spark-submit"  # which is not the one that runs the job
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    binary.chmod(0o755)


@fault("The listener's jar may not be read", "listener_unavailable")
def _(bench):
    jar = listener_jar(bench.home / "openlineage-spark_2.13-1.53.0.jar")
    bench.set("listener_jar", jar)
    bench.disk(errno.EACCES, jar.name, reading=True)


@fault("The disk gives an I/O error when the listener's jar is read", "listener_unavailable")
def _(bench):
    jar = listener_jar(bench.home / "openlineage-spark_2.13-1.53.0.jar")
    bench.set("listener_jar", jar)
    bench.disk(errno.EIO, jar.name, reading=True)


@fault("Two listeners would reach the job", "listener_unavailable")
def _(bench):
    other = listener_jar(bench.home / "openlineage-spark_2.13-1.52.0.jar", version="1.52.0")
    listener_jar(bench.spark.home / "jars" / "openlineage-spark_2.13-1.53.0.jar")
    bench.arguments["jars"] = str(other)


@fault("An extension of the listener does not exist", "extension_unavailable")
def _(bench):
    bench.lineage["listener_extensions"] = ["/nowhere/shop.jar"]


@fault("An extension of the listener is a folder", "extension_unavailable")
def _(bench):
    bench.lineage["listener_extensions"] = [str(bench.home)]


@fault("An extension of the listener is truncated", "extension_unavailable")
def _(bench):
    jar = other_jar(bench.home / "shop.jar")
    jar.write_bytes(jar.read_bytes()[:-30])
    bench.lineage["listener_extensions"] = [str(jar)]


def _fetches(bench, fetcher):
    """Let the task fetch its listener; Spark's resolver is replaced."""
    bench.unset("listener_jar")
    bench.set("fetch_listener", "True")
    bench.patch(".spark.submit.commands.from_spark", lambda *_, **__: fetcher)
    bench.patch(".spark.submit.commands.java_refusal", lambda *_: None)


@fault("There is no listener in the cache, and none may be fetched", "listener_unavailable")
def _(bench):
    bench.unset("listener_jar")


@fault("The repository answers with a web page", "listener_unavailable")
def _(bench):
    def page(folder):
        (folder / "listener.jar").write_text("<html>Sign in</html>")
        return folder / "listener.jar"

    _fetches(bench, page)


@fault("Fetching the listener has a defect", "injection_failed")
def _(bench):
    _fetches(bench, raising(ZeroDivisionError()))


@fault("Fetching the listener fails, because there is no network", "listener_unavailable")
def _(bench):
    _fetches(bench, raising(ConnectionError("Network is unreachable")))


@fault("The disk is full when the listener is fetched", "listener_unavailable")
def _(bench):
    _fetches(bench, raising(ZeroDivisionError()))
    bench.disk(errno.ENOSPC, ".fetch-*")
