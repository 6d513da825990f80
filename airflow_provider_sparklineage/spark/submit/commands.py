"""Commands that are run to find the version of Java or Spark, or to fetch the listener with Spark.

Each command has a time limit, after which the command is killed together with its child processes
(:func:`run`). A job waits for a command only if files do not give the answer. So this module
is imported only where a command is run.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import distribution, listener
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow_provider_sparklineage.spark.submit.fetching import Fetcher, Progress


_POLL_S = 0.1
_MAX_BYTES = 1 << 20  # an endless output is cut here
_REAP_S = 5.0  # a killed process that hangs in the kernel is waited for no longer than this


def run(
    command: list[str],
    env: Mapping[str, str],
    timeout_s: float,
    take: Callable[[str], object] = lambda _: None,
    folder: Path | None = None,
) -> tuple[int, str]:
    """Run a command; give its exit code, and its output without credentials in URLs.

    The function does not wait for processes that the command leaves running in the background. When
    the time is up, or the caller is interrupted, the command is killed with all processes of its
    group.

    :param command: the program and its arguments
    :param env: all environment variables of the command
    :param timeout_s: the time limit, in seconds
    :param take: is called with each line of the output as soon as the line is printed
    :param folder: the folder in which the command runs; None for the present one
    :raise OSError: if the command cannot be started
    :raise subprocess.TimeoutExpired: if the command does not end in time; the error has the output
        up to then
    """
    process = subprocess.Popen(  # noqa: S603  (Spark's commands, as the user named them)
        command,
        env=dict(env),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a process group of its own, which can be killed as a whole
    )
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    lines: list[str] = []
    try:
        for line in _printed(process, process.stdout, time.monotonic() + timeout_s):
            lines.append(scrub(line.decode(errors="replace")))
            take(lines[-1])
    except BaseException as error:  # Airflow's task timeout is a BaseException
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if isinstance(error, TimeoutError):
            raise subprocess.TimeoutExpired(command, timeout_s, "".join(lines)) from None
        raise
    finally:
        process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
    return process.returncode, "".join(lines)


def _printed(process: subprocess.Popen[bytes], output: IO[bytes], ends: float) -> Iterator[bytes]:
    """Yield the lines that a command prints, until the command has ended.

    :param ends: the end of the time limit, on the monotonic clock
    :raise TimeoutError: if the command does not end in time
    """
    size, rest = 0, b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0:
            if selector.select(min(left, _POLL_S)):
                chunk = os.read(output.fileno(), 1 << 16)
                if not chunk:
                    break
                if size <= _MAX_BYTES:
                    size += len(chunk)
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from (line + b"\n" for line in lines)
            elif process.poll() is not None:  # a background process still holds the pipe
                break
    try:
        process.wait(max(0.0, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    yield rest


JAVA_TIMEOUT_S = 10

# `java -version` prints `openjdk version "17.0.15"`, and up to Java 8 `java version "1.8.0_402"`.
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java(env: Mapping[str, str]) -> Path | None:
    """Find the ``java`` that spark-submit would start: in JAVA_HOME if that is set, else on PATH.

    :param env: the environment of spark-submit
    :return: the path; None if there is no such file
    """
    if env.get("JAVA_HOME"):
        java = Path(env["JAVA_HOME"]) / "bin" / "java"
        return java if java.is_file() else None
    on_path = shutil.which("java", path=env.get("PATH"))
    return Path(on_path) if on_path else None


def java_feature_version(java: Path) -> int | None:
    """Ask a ``java`` for its feature version, e.g. 17.

    :param java: the path of the program
    :return: None if the program cannot be run, or prints no version
    """
    try:
        _, printed = run([str(java), "-version"], os.environ, JAVA_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _JAVA_VERSION.search(printed)
    return int(match[1]) if match else None


def oldest_java_for(spark: str) -> int:
    """Give the feature version of the oldest Java that a version of Spark runs on: 8 or 17.

    :param spark: the version of Spark, e.g. ``4.0.1``
    """
    return 17 if listener.version_numbers(spark) >= (4,) else 8


def java_refusal(env: Mapping[str, str], distribution: SparkDistribution) -> ListenerError | None:
    """Give the error that explains why a Spark would not start with the Java that it would use.

    :param env: the environment with which Spark would be started
    :param distribution: the Spark that would be started
    :return: None if the Java fits
    """
    java = find_java(env)
    if java is None:
        where = f"JAVA_HOME is {env['JAVA_HOME']}" if env.get("JAVA_HOME") else "none is on PATH"
        oldest = oldest_java_for(distribution.version)
        return ListenerError(
            f"There is no Java to run Spark with ({where}).",
            f"Install Java {oldest} or later and set JAVA_HOME to it.",
        )
    version = java_feature_version(java)
    if version is None:
        return ListenerError(
            f"{java} does not run, or is no Java.", "Set JAVA_HOME to an installed Java."
        )
    if version < oldest_java_for(distribution.version):
        return ListenerError(
            f"{java} is Java {version}, but Spark {distribution.version} needs "
            f"{oldest_java_for(distribution.version)} or later.",
            "Set JAVA_HOME to such a one.",
        )
    return None


# ``spark-submit --version`` starts a JVM, which takes a second or two.


VERSION_TIMEOUT_S = 60  # a JVM on a busy machine, for a user who waits for this alone
TASK_VERSION_TIMEOUT_S = 20

_PRINTED_SPARK = re.compile(r"version (\d+\.\d+\.\d+\S*)")
_PRINTED_SCALA = re.compile(r"Scala version (\d+\.\d+)")


def ask_version(
    spark_binary: str, env: Mapping[str, str], *, in_task: bool = False
) -> SparkDistribution | None:
    """Find the versions that ``spark-submit --version`` prints.

    :param spark_binary: the command, a path or a name on PATH
    :param env: the environment with which the job would be submitted
    :param in_task: whether a job waits; then the time limit is shorter
    :return: the versions, with SPARK_HOME if it is set; None if there is no such command
    :raise ListenerError: if the command fails, takes too long or prints no version
    """
    binary = shutil.which(spark_binary, path=env.get("PATH"))
    if binary is None:
        return None
    timeout_s = TASK_VERSION_TIMEOUT_S if in_task else VERSION_TIMEOUT_S
    try:
        _, output = run([binary, "--version"], {**os.environ, **env}, timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = type(error).__name__ if isinstance(error, OSError) else f"within {timeout_s} s"
        problem = f"`{binary} --version` gives no answer ({why})."
        raise ListenerError(problem, "Set [sparklineage] spark_version.") from error
    home = Path(env["SPARK_HOME"]) if env.get("SPARK_HOME") else None
    return SparkDistribution(home, *parse_version_output(output, spark_binary))


def parse_version_output(output: str, spark_binary: str = "spark-submit") -> tuple[str, str]:
    """Read the versions of Spark and Scala from the output of ``spark-submit --version``.

    :param output: all lines that the command printed
    :param spark_binary: the command, for the error's message
    :return: the version of Spark, and the version of Scala
    :raise ListenerError: if the output has no versions; the message quotes the last line
    """
    spark, scala = _PRINTED_SPARK.search(output), _PRINTED_SCALA.search(output)
    if spark is None or scala is None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        problem = (
            f"`{spark_binary} --version` does not print which Spark it is "
            f"({lines[-1][:200] if lines else 'it prints nothing'})."
        )
        raise ListenerError(problem, "Set [sparklineage] spark_version.")
    return spark[1], scala[1]


# ``spark-submit --packages`` resolves packages with Ivy before it runs the application. It uses the
# site's settings (``spark.jars.ivySettings``, ``spark.jars.repositories``, the local Maven
# repository, the JVM's proxies). So an empty program is submitted here to resolve the listener.


# The user's properties that affect how packages are resolved. Other properties are for jobs.
_RESOLVING = re.compile(
    r"spark\.jars\.(ivy|ivySettings|repositories)|spark\.driver\.\w*JavaOptions"
)
_STORED = re.compile(r"The jars for the packages stored in: (.+)")

# The texts with which Ivy and spark-submit explain a failure, the most specific first.
_CAUSES = (
    r"TimeoutError: [^\n]*",
    r"Host \S+ not found",
    r"Server access [Ee]rror[^\n]*",
    r"JAVA_HOME is not set",
    r"UnsupportedClassVersionError[^\n]*",
    r"\w+(?:Exception|Error): [^\n]*",
    r"module not found: \S+",
)
_UNKNOWN_CAUSE = "spark-submit gave no reason"


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
    """Make a fetcher that resolves the listener in the way of ``spark-submit --packages``.

    :param scala: the Scala version of the wanted listener
    :param spark_submit: the command to run; it need not belong to the Spark that gets the listener
    :param defaults: the user's Spark properties, of which only those about resolving are used
    :param repositories: further repositories, in the form of the argument of ``--repositories``
    :param env: the environment in which the command runs, without ``SPARK_REMOTE`` and ``MASTER``
    :param timeout_s: the time limit of the command, in seconds
    :param progress: is called with lines of text for the user who waits
    """

    def fetcher(work: Path) -> Path:
        properties = {key: v for key, v in defaults.items() if _RESOLVING.fullmatch(key)}
        properties.setdefault("spark.jars.ivy", str(work / "ivy"))
        (work / "nothing.py").touch()
        file = work / "resolving.properties"
        distribution.write_properties(file, properties)
        command = [spark_submit, "--master", "local[1]", "--deploy-mode", "client"]
        command += ["--properties-file", str(file), "--packages", listener.coordinate(scala)]
        if repositories:
            command += ["--repositories", repositories]
        command.append(str(work / "nothing.py"))
        # The empty program runs with this Python and a local Spark.
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        others = {key: v for key, v in env.items() if key not in ("SPARK_REMOTE", "MASTER")}
        output = _run_resolver(command, others | python, timeout_s, progress)
        stored = _STORED.search(output)
        name = f"{listener.artifact(scala)}-{listener.VERSION}.jar"
        jar = Path(stored[1].strip() if stored else work) / f"io.openlineage_{name}"
        if not jar.is_file():
            causes = (re.search(pattern, output) for pattern in _CAUSES)
            cause = next((match[0].strip()[:200] for match in causes if match), _UNKNOWN_CAUSE)
            problem = f"{listener.coordinate(scala)} could not be fetched ({cause})."
            fix = (
                "Check that this machine reaches a Maven repository: name a mirror with "
                "--repositories, set JAVA_TOOL_OPTIONS to -Dhttps.proxyHost=… -Dhttps.proxyPort=… "
                "behind a proxy, or download the jar on another machine and give it to "
                "`sparklineage fetch-listener --from`."
            )
            raise ListenerError(problem, fix)
        copy = work / name
        copy.write_bytes(jar.read_bytes())  # not moved: the jar may be in the user's Ivy cache
        return copy

    return fetcher


def _run_resolver(
    command: list[str], env: Mapping[str, str], timeout_s: float, progress: Progress
) -> str:
    """Run spark-submit; give its output, and report Ivy's lines about downloads as progress.

    :param command: spark-submit with its arguments
    :param env: the environment of the command
    :param timeout_s: the time limit, in seconds
    :param progress: is called with each of these lines
    :return: the output; after the time limit, its last line is an error that names the limit
    :raise ListenerError: if spark-submit cannot be started
    """

    def take(line: str) -> None:
        if line.strip().startswith(("downloading", "found io.openlineage")):
            progress(line.strip())

    try:
        return run(command, env, timeout_s, take)[1]
    except subprocess.TimeoutExpired as error:
        return f"{error.output}\nTimeoutError: no end within {timeout_s:.0f} s\n"
    except OSError as error:
        problem = f"{command[0]} cannot be started ({error.strerror})."
        fix = "Put spark-submit on PATH, or give the jar to `sparklineage fetch-listener --from`."
        raise ListenerError(problem, fix) from error
