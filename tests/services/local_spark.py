"""The Spark behind a service: it runs what the service was given, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests import record_events

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.record_events import Spark


class LocalSpark:
    """Runs submissions as a service does: in the background, with nothing of the worker's.

    :param spark: the Spark
    :param work: the folder for the drivers' files
    """

    def __init__(self, spark: Spark, work: Path) -> None:
        self.version = (spark.distribution.version, spark.distribution.scala)
        """The versions of Spark and of Scala."""
        self._spark = spark
        self._work = work
        self._drivers: list[subprocess.Popen[bytes]] = []

    def start(self, words: Sequence[str]) -> Driver:
        """Start ``spark-submit`` with arguments; the properties that keep it small come first."""
        folder = self._work / f"driver-{len(self._drivers)}"
        folder.mkdir(parents=True)
        small = record_events.conf_options(
            record_events.spark_conf(folder, folder) | {"spark.ui.enabled": "false"}
        )
        log = folder / "spark.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [f"{self._spark.distribution.home}/bin/spark-submit", *small, *words],
                cwd=folder,
                env=record_events.environment(self._spark, folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._drivers.append(process)
        return Driver(process, log)

    def start_with(
        self,
        conf: Mapping[str, object],
        jars: Sequence[str],
        py_files: Sequence[str],
        application: str,
        arguments: Sequence[str],
    ) -> Driver:
        """Start what a service was given in parts."""
        words = record_events.conf_options({key: str(value) for key, value in conf.items()})
        words += ["--jars", ",".join(jars)] if jars else []
        words += ["--py-files", ",".join(py_files)] if py_files else []
        return self.start([*words, application, *arguments])

    def stop(self) -> None:
        """End the drivers that still run."""
        for process in self._drivers:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Driver:
    """A driver that runs, or has ended."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def state(self, running: str, succeeded: str, failed: str) -> str:
        """Give the driver's state, in the words of a service."""
        code = self._process.poll()
        if code is None:
            return running
        return failed if code else succeeded

    def log(self) -> str:
        """Give what spark-submit has printed."""
        return self._log.read_text(errors="replace")


@contextmanager
def local_spark(spark: Spark, work: Path) -> Iterator[LocalSpark]:
    """Give a Spark whose drivers end with the block."""
    behind = LocalSpark(spark, work)
    try:
        yield behind
    finally:
        behind.stop()
