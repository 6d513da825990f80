"""The OpenLineage listener jar: which one fits a Spark, where it is, and how the cache gets it.

Nothing is downloaded here unless somebody asks for it (``sparklineage fetch-listener``), and
nothing is injected that is not there: a missing or mismatched jar kills the user's SparkContext.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.exceptions import ListenerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.distribution import SparkDistribution

LISTENER_CLASS = "io.openlineage.spark.agent.OpenLineageSparkListener"
VERSION = "1.53.0"
"""The listener that this package is tested with, and the first that Spark 4.2 needs."""

SHA256 = {
    "2.12": "9fe28ee2e5b2cb535cd51b6572394bddeb684bf0c58650a698cf7724ce62d94d",
    "2.13": "5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f",
}
"""Digest of the jar of :data:`VERSION` by Scala version."""

JAR_NAME = re.compile(r"openlineage-spark(?:_(?P<scala>\d\.\d+))?-(?P<version>\d[\w.]*)\.jar")

FETCH_TIMEOUT_S = 300  # 43 MB through a slow mirror


def artifact(scala: str) -> str:
    """Name of the listener's artifact for a Scala version."""
    return f"openlineage-spark_{scala}"


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where fetched listeners are kept."""
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or tempfile.gettempdir()) / ".cache"
    return Path(base) / "sparklineage"


def cached(scala: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where the listener for a Scala version is, or would be, in the cache."""
    return cache_folder(env) / f"{artifact(scala)}-{VERSION}.jar"


def find_jar(
    distribution: SparkDistribution, configured: Path | None, env: Mapping[str, str] = os.environ
) -> Path:
    """Find the listener jar for a Spark: as configured, else in its ``jars``, else in the cache.

    :raise ListenerError: if there is none, or none that works; the message says what to do
    """
    jar = _find(distribution, configured, env)
    _require_scala(jar, distribution)
    _require_listener(jar)
    return jar


def _find(distribution: SparkDistribution, configured: Path | None, env: Mapping[str, str]) -> Path:
    if configured is not None:
        if not configured.is_file():
            msg = (
                f"The listener jar {configured} does not exist; correct [sparklineage] "
                "listener_jar."
            )
            raise ListenerError(msg)
        return configured
    for jar in sorted(distribution.jars.glob("openlineage-spark*.jar")):
        return jar
    jar = cached(distribution.scala, env)
    if not jar.is_file():
        msg = (
            f"There is no OpenLineage listener for Spark {distribution.version} (Scala "
            f"{distribution.scala}); run `sparklineage fetch-listener` on the worker, or set "
            "[sparklineage] listener_jar."
        )
        raise ListenerError(msg)
    return jar


def _require_listener(jar: Path) -> None:
    """Refuse a file that would end the user's SparkContext: no readable jar, or another one."""
    try:
        with zipfile.ZipFile(jar) as archive:
            archive.getinfo(LISTENER_CLASS.replace(".", "/") + ".class")
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        msg = (
            f"{jar} is not a readable OpenLineage listener jar ({type(error).__name__}); fetch it "
            "again with `sparklineage fetch-listener`, or correct [sparklineage] listener_jar."
        )
        raise ListenerError(msg) from error


def _require_scala(jar: Path, distribution: SparkDistribution) -> None:
    match = JAR_NAME.fullmatch(jar.name)
    scala = match["scala"] if match else None
    if scala is not None and scala != distribution.scala:
        msg = (
            f"The listener {jar.name} is for Scala {scala}, but Spark {distribution.version} runs "
            f"on Scala {distribution.scala} and would not start with it; use "
            f"{artifact(distribution.scala)}."
        )
        raise ListenerError(msg)


def fetch(distribution: SparkDistribution, env: Mapping[str, str] = os.environ) -> Path:
    """Bring the listener for a Spark into the cache; at once if it is there.

    The download is Ivy's, from the jar that Spark itself resolves ``--packages`` with, so that its
    defaults and the JVM's proxy and trust settings apply. The jar appears whole or not at all.

    :raise ListenerError: if Java or Ivy is missing, the repository is out of reach, or the digest
        is wrong
    """
    jar = cached(distribution.scala, env)
    if jar.is_file():
        return jar
    ivy = next(iter(sorted(distribution.jars.glob("ivy-*.jar"))), None)
    java = java_binary(env)
    if ivy is None or java is None:
        missing = "Java" if java is None else f"Ivy in {distribution.jars}"
        msg = (
            f"The listener cannot be fetched without {missing}; install it, or set [sparklineage] "
            "listener_jar."
        )
        raise ListenerError(msg)
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as work:
            fetched = _resolve(java, ivy, artifact(distribution.scala), Path(work))
            _require_digest(fetched, distribution.scala)
            fetched.replace(jar)
    except OSError as error:
        msg = f"The listener cannot be put into the cache {jar.parent}: {error}."
        raise ListenerError(msg) from error
    return jar


def _resolve(java: str, ivy: Path, name: str, work: Path) -> Path:
    command = [java, "-jar", str(ivy), "-notransitive", "-types", "jar", "-confs", "master"]
    command += ["-dependency", "io.openlineage", name, VERSION]
    command += ["-cache", str(work / "cache"), "-retrieve", f"{work}/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(  # noqa: S603  (our own arguments; java as the environment has it)
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False, cwd=work
        )
    except subprocess.TimeoutExpired as error:
        msg = (
            f"Fetching {name} {VERSION} took longer than {FETCH_TIMEOUT_S} s; try again, or use a "
            "mirror."
        )
        raise ListenerError(msg) from error
    jar = work / f"{name}-{VERSION}.jar"
    if not jar.is_file():
        cause = _cause(done.stdout + done.stderr)
        msg = (
            f"io.openlineage:{name}:{VERSION} could not be fetched ({cause}). Check that this "
            "machine reaches a Maven repository (behind a proxy, set JAVA_TOOL_OPTIONS to "
            "-Dhttps.proxyHost=… -Dhttps.proxyPort=…), or download the jar elsewhere and set "
            "[sparklineage] listener_jar to its path."
        )
        raise ListenerError(msg)
    return jar


# What Ivy prints of a failure, the most telling first.
_CAUSES = (
    r"Host \S+ not found",
    r"Server access Error: [^\n]*",
    r"\w+(Exception|Error): [^\n]*",
    r"module not found: \S+",
)


def _cause(output: str) -> str:
    for pattern in _CAUSES:
        if match := re.search(pattern, output):
            return match.group().strip()[:200]
    return "Ivy gave no reason"


def _require_digest(jar: Path, scala: str) -> None:
    expected = SHA256.get(scala)
    with jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        msg = (
            f"The fetched {jar.name} has the SHA-256 digest {found}, not {expected}; it is not "
            "used. The repository or a proxy gave another file."
        )
        raise ListenerError(msg)


def java_binary(env: Mapping[str, str]) -> str | None:
    """Find the ``java`` that spark-submit would use: that of JAVA_HOME, else the one on PATH."""
    if env.get("JAVA_HOME"):
        java = Path(env["JAVA_HOME"]) / "bin" / "java"
        return str(java) if java.is_file() else None
    return shutil.which("java", path=env.get("PATH"))
