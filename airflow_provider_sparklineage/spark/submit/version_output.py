"""Which Spark a ``spark-submit`` is, asked of itself where its files do not have it.

That starts a JVM for a second or two, so the answer is kept for a day, for as long as the script
does not change. That there was none is kept for a few minutes: of the tasks on a worker not each
has to wait for a script that hangs, and a machine that was only busy is asked again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import commands, remembered
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S = 60  # a JVM on a busy machine, for somebody who waits for this alone
TASK_TIMEOUT_S = 20
_SILENCE_S = 300.0

_SPARK = re.compile(r"version (\d+\.\d+\.\d+\S*)")
_SCALA = re.compile(r"Scala version (\d+\.\d+)")


class _Answer(msgspec.Struct, frozen=True):
    """Versions of Spark and Scala, or what is wrong: the sentences of a :exc:`ListenerError`."""

    spark: str = ""
    scala: str = ""
    problem: str = ""
    fix: str = ""


def ask(
    spark_binary: str, env: Mapping[str, str], cache: Path, *, in_task: bool = False
) -> SparkDistribution | None:
    """Ask ``spark-submit --version``, or remember its answer.

    :param env: environment that it would be submitted with
    :param cache: folder in which the answer is kept; it need not be there
    :param in_task: whether a job waits: then not for long, nor for what has just given no answer
    :return: None if there is no such command
    :raise ListenerError: if it prints none
    """
    found = shutil.which(spark_binary, path=env.get("PATH"))
    if found is None:
        return None
    home = Path(env["SPARK_HOME"]) if env.get("SPARK_HOME") else None
    binary = Path(found).resolve()
    status = binary.stat()
    script = f"{binary} {status.st_size} {status.st_mtime_ns}"
    question = f"version of {script} with {home} and {env.get('JAVA_HOME')}"
    answer = remembered.recall(cache, question, _Answer)
    if answer is None and in_task:
        answer = remembered.recall(cache, f"no {question}", _Answer, _SILENCE_S)
    if answer is None:
        try:
            spark, scala = parse(_output(found, env, in_task=in_task), spark_binary)
        except ListenerError as error:
            answer = _Answer(problem=error.problem, fix=error.fix)
            remembered.remember(cache, f"no {question}", answer)
        else:
            answer = _Answer(spark, scala)
            remembered.remember(cache, question, answer)
    if answer.problem:
        raise ListenerError(answer.problem, answer.fix)
    return SparkDistribution(home, answer.spark, answer.scala)


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


def _output(binary: str, env: Mapping[str, str], *, in_task: bool) -> str:
    timeout_s = TASK_TIMEOUT_S if in_task else TIMEOUT_S
    try:
        return commands.output([binary, "--version"], {**os.environ, **env}, timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = type(error).__name__ if isinstance(error, OSError) else f"within {timeout_s} s"
        problem = f"`{binary} --version` gives no answer ({why})."
        raise ListenerError(problem, "Set [sparklineage] spark_version.") from error
