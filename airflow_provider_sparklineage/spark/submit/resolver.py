"""Spark's own resolver, as a source of the listener.

``spark-submit --packages`` resolves with Ivy before it runs anything, by the site's settings
(``spark.jars.ivySettings``, ``spark.jars.repositories``, the local Maven repository, the JVM's
proxies). So what is submitted here is a program of no lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import commands, distribution
from airflow_provider_sparklineage.spark.submit.listener import artifact, coordinate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.submit.fetching import Fetcher, Progress

# Those of the user's properties that decide where and how to resolve; the others are for jobs.
_RESOLVING = re.compile(
    r"spark\.jars\.(ivy|ivySettings|repositories)|spark\.driver\.\w*JavaOptions"
)
_STORED = re.compile(r"The jars for the packages stored in: (.+)")

# What Ivy and spark-submit print of a failure, the most specific first.
_CAUSES = (
    r"TimeoutError: [^\n]*",
    r"Host \S+ not found",
    r"Server access [Ee]rror[^\n]*",
    r"JAVA_HOME is not set",
    r"UnsupportedClassVersionError[^\n]*",
    r"\w+(?:Exception|Error): [^\n]*",
    r"module not found: \S+",
)


def from_spark(
    scala: str,
    spark_submit: str,
    defaults: Mapping[str, str],
    *,
    repositories: str | None = None,
    env: Mapping[str, str] = os.environ,
    timeout_s: float,
    progress: Progress = lambda _: None,
) -> Fetcher:
    """Make a fetcher that resolves the listener as ``--packages`` would.

    :param spark_submit: the command; any Spark resolves a listener for any other
    :param defaults: the user's Spark properties; those about resolving are heeded
    :param repositories: further repositories, as ``--repositories`` takes them
    :param timeout_s: how long it may take in all
    """

    def fetcher(work: Path) -> Path:
        properties = {key: v for key, v in defaults.items() if _RESOLVING.fullmatch(key)}
        properties.setdefault("spark.jars.ivy", str(work / "ivy"))
        (work / "nothing.py").touch()
        file = work / "resolving.properties"
        distribution.write_properties(file, properties)
        command = [spark_submit, "--master", "local[1]", "--deploy-mode", "client"]
        command += ["--properties-file", str(file), "--packages", coordinate(scala)]
        if repositories:
            command += ["--repositories", repositories]
        command.append(str(work / "nothing.py"))
        output = _run(command, _environment(env), timeout_s, progress)
        stored = _STORED.search(output)
        name = f"{artifact(scala)}-{coordinate(scala).rpartition(':')[2]}.jar"
        jar = Path(stored[1].strip() if stored else work) / f"io.openlineage_{name}"
        if not jar.is_file():
            problem = f"{coordinate(scala)} could not be fetched ({_cause(output)})."
            fix = (
                "Check that this machine reaches a Maven repository: name a mirror with "
                "--repositories, set JAVA_TOOL_OPTIONS to -Dhttps.proxyHost=… -Dhttps.proxyPort=… "
                "behind a proxy, or download the jar on another machine and give it to "
                "`sparklineage fetch-listener --from`."
            )
            raise ListenerError(problem, fix)
        brought = work / name
        brought.write_bytes(jar.read_bytes())  # it may be in an Ivy cache of the user's
        return brought

    return fetcher


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Let the empty program run on this Python, in this machine's classic Spark."""
    kept = {key: value for key, value in env.items() if key not in ("SPARK_REMOTE", "MASTER")}
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**kept, **python}


def _run(command: list[str], env: Mapping[str, str], timeout_s: float, progress: Progress) -> str:
    """Run spark-submit, and pass on what Ivy prints of downloads; give all that it printed."""

    def take(line: str) -> None:
        if line.strip().startswith(("downloading", "found io.openlineage")):
            progress(line.strip())

    try:
        return commands.output(command, env, timeout_s, take)
    except subprocess.TimeoutExpired as error:
        return f"{error.output}\nTimeoutError: no end within {timeout_s:.0f} s\n"
    except OSError as error:
        problem = f"{command[0]} cannot be started ({error.strerror})."
        fix = "Put spark-submit on PATH, or give the jar to `sparklineage fetch-listener --from`."
        raise ListenerError(problem, fix) from error


def _cause(output: str) -> str:
    for pattern in _CAUSES:
        if match := re.search(pattern, output):
            return match.group().strip()[:200]
    return "spark-submit gave no reason"
