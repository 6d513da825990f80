"""The Java that spark-submit would use, and whether it is recent enough for a Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import commands
from airflow_provider_sparklineage.spark.submit.listener import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

TIMEOUT_S = 10

# `java -version` prints `openjdk version "17.0.15"`, up to 8 `java version "1.8.0_402"`.
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find(env: Mapping[str, str]) -> Path | None:
    """Find the ``java`` that spark-submit would start: that of JAVA_HOME, else the one on PATH."""
    if env.get("JAVA_HOME"):
        java = Path(env["JAVA_HOME"]) / "bin" / "java"
        return java if java.is_file() else None
    found = shutil.which("java", path=env.get("PATH"))
    return Path(found) if found else None


def feature_version(java: Path) -> int | None:
    """Ask a ``java`` for its feature version, e.g. 17; None if it prints none."""
    try:
        printed = commands.output([str(java), "-version"], os.environ, TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(printed)
    return int(match[1]) if match else None


def oldest_for(spark: str) -> int:
    """Give the oldest Java that a version of Spark runs on."""
    return 17 if numbers(spark) >= (4,) else 8


def refusal(env: Mapping[str, str], distribution: SparkDistribution) -> ListenerError | None:
    """Give what is wrong with the Java that a Spark would be started with; None if it will do."""
    java = find(env)
    if java is None:
        where = f"JAVA_HOME is {env['JAVA_HOME']}" if env.get("JAVA_HOME") else "none is on PATH"
        oldest = oldest_for(distribution.version)
        return ListenerError(
            f"There is no Java to run Spark with ({where}).",
            f"Install Java {oldest} or later and set JAVA_HOME to it.",
        )
    version = feature_version(java)
    if version is None:
        return ListenerError(
            f"{java} does not run, or is no Java.", "Set JAVA_HOME to an installed Java."
        )
    if version < oldest_for(distribution.version):
        return ListenerError(
            f"{java} is Java {version}, but Spark {distribution.version} needs "
            f"{oldest_for(distribution.version)} or later.",
            "Set JAVA_HOME to such a one.",
        )
    return None
