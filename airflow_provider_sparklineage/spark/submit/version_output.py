"""Which Spark a ``spark-submit`` is, asked of itself where its files do not have it.

That starts a JVM for a second or two, so the answer is kept next to the fetched listeners for as
long as the script does not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S = 60  # a JVM on a busy worker

_SPARK = re.compile(r"version (\d+\.\d+\.\d+\S*)")
_SCALA = re.compile(r"Scala version (\d+\.\d+)")


def ask(spark_binary: str, env: Mapping[str, str], cache: Path) -> SparkDistribution | None:
    """Ask ``spark-submit --version``, or remember its answer.

    :param env: environment that it would be submitted with
    :param cache: folder in which the answer is kept; it need not be there
    :return: None if there is no such command
    :raise ListenerError: if it prints none
    """
    found = shutil.which(spark_binary, path=env.get("PATH"))
    if found is None:
        return None
    binary = Path(found).resolve()
    home = Path(env["SPARK_HOME"]) if env.get("SPARK_HOME") else None
    asked = f"{binary}\n{binary.stat().st_mtime_ns}\n{home}"
    answer = cache / f"spark-submit-{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, KeyError):
        known = json.loads(answer.read_text(encoding="utf-8"))
        return SparkDistribution(home, known["spark"], known["scala"])
    spark, scala = parse(_output(found, env), spark_binary)
    with suppress(OSError):  # it is asked again next time
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache, delete=False, encoding="utf-8") as file:
            json.dump({"spark": spark, "scala": scala}, file)
        Path(file.name).replace(answer)
    return SparkDistribution(home, spark, scala)


def parse(output: str, spark_binary: str = "spark-submit") -> tuple[str, str]:
    """Read the versions of Spark and Scala that ``spark-submit --version`` prints.

    :raise ListenerError: if it prints none; quotes what it printed
    """
    spark, scala = _SPARK.search(output), _SCALA.search(output)
    if spark is None or scala is None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        problem = (
            f"`{spark_binary} --version` does not print which Spark it is "
            f"({lines[-1][:200] if lines else 'it prints nothing'})."
        )
        raise ListenerError(problem, "Set [sparklineage] spark_version.")
    return spark[1], scala[1]


def _output(binary: str, env: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  (the command that is about to run the job)
            [binary, "--version"],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"`{binary} --version` gives no answer ({type(error).__name__})."
        raise ListenerError(problem, "Set [sparklineage] spark_version.") from error
    return done.stdout + done.stderr
