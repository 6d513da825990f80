"""Records what OpenLineage's listener reports about the applications in `tests/applications`.

Each application is run by a real spark-submit on a fresh copy of a small lake; the listener's
events go to a file, are freed of what belongs to the recording machine, and become
`tests/golden/spark-<version>/<case>.ndjson`; what the observer saw in the same run becomes
`observed/<case>.ndjson` next to it. Run ids and event times stay as they came. Next to
them, `versions.json` names the versions that recorded them, and how each spark-submit ended.

    python -m tests.record_events                               every case
    python -m tests.record_events staging_chain python_udf      some cases
    python -m tests.record_events --spark-submit <path>         the Spark of another environment

Exit code 1 when an application ends otherwise than planned, or when something of this machine is
left in its events; the cases that went as planned are kept nevertheless.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.spark.submit import (
    commands,
    distribution,
    listener_selection,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.injection import DELTA_TAG, OBSERVER
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

TESTS = Path(__file__).resolve().parent
APPLICATIONS = TESTS / "applications"
GOLDEN = TESTS / "golden"
OBSERVED = "observed"
"""Folder of what the observer reported, next to the events of the same run."""

# A run takes 15 to 60 seconds on two cores; the first one with --packages also downloads.
TIMEOUT_SECONDS = 600
LOG_TAIL_LINES = 60

# What was seen to work on which Spark (the newest Delta or Iceberg is not always what does). Cases
# that need a connector are skipped where it has no entry.
H2 = "com.h2database:h2:2.2.224"
CONNECTORS: Mapping[str, Mapping[str, str]] = {
    "3.5": {
        "h2": H2,
        "delta": "io.delta:delta-spark_{scala}:3.3.2",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-3.5_{scala}:1.10.1",
    },
    "4.0": {
        "h2": H2,
        "delta": "io.delta:delta-spark_{scala}:4.0.0",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_{scala}:1.10.1",
    },
    # Of Iceberg there is no release for Spark 4.2. With 1.11.0 and 1.12.0, which are for 4.1, no
    # statement about a table runs: they take ``View`` and ``CatalogManager`` for what they were.
    "4.2": {"h2": H2, "delta": "io.delta:delta-spark_4.2_{scala}:4.4.0"},
}
CONNECTOR_CONF: Mapping[str, Mapping[str, str]] = {
    "h2": {},
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.lakehouse": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lakehouse.type": "hadoop",
        "spark.sql.catalog.lakehouse.warehouse": "{lake}/iceberg",
    },
}

log = logging.getLogger("record_events")


class RecordingError(Exception):
    """Raised when an application behaves otherwise than planned, or its events cannot be kept."""


@dataclass(frozen=True)
class Case:
    """One application, what it needs, and how its spark-submit must end."""

    name: str
    exit_code: int = 0
    connector: str | None = None
    modules: tuple[str, ...] = ()
    """What Spark's Python needs in addition to PySpark; it is not in the lock of this checkout."""


CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case("staging_chain"),
        Case("partitioned_writes"),
        Case("catalog_tables"),
        Case("schema_inference"),
        Case("python_udf"),
        Case("failing_action", exit_code=1),
        Case("caught_failure"),
        Case("killed_driver", exit_code=-signal.SIGKILL),
        Case("writes_nothing"),
        Case("rdd_jobs"),
        Case("create_then_read"),
        Case("append_then_read"),
        Case("self_overwrite"),
        Case("union_diamond"),
        Case("iceberg_merge", connector="iceberg"),
        Case("iceberg_commands", connector="iceberg"),
        Case("delta_tables", connector="delta"),
        Case("delta_commands", connector="delta"),
        Case("two_sessions_threads"),
        Case("cached_view"),
        Case("sql_queries"),
        Case("frame_queries"),
        Case("jdbc_tables"),
        Case("jdbc_urls", connector="h2"),
        Case("thirty_actions"),
        Case("rewritten_staging"),
        Case("read_while_written"),
        Case("glob_reads"),
        Case("awkward_names"),
        Case("random_columns"),
        Case("lost_columns", modules=("pandas", "pyarrow")),
    )
}


@dataclass(frozen=True)
class Spark:
    """The Spark of a spark-submit, and the Python that its drivers and workers run on."""

    distribution: SparkDistribution
    python: Path

    @classmethod
    def of(cls, spark_submit: Path) -> Spark:
        """Find both; the Python is the one next to a pip-installed spark-submit, else this one."""
        spark_submit = spark_submit.absolute()
        found = distribution.find(str(spark_submit), {})
        if found is None:
            message = f"{spark_submit}: no Spark belongs to it; is pyspark installed next to it?"
            raise RecordingError(message)
        python = spark_submit.with_name("python")
        return cls(found, python if python.exists() else Path(sys.executable))

    @property
    def listener(self) -> Path:
        """The listener for it, which is fetched if it is not cached."""
        return listener_selection.fetch_for(self.distribution, "spark-submit")

    @property
    def line(self) -> str:
        """Major and minor version, as in the golden folder's name."""
        return ".".join(self.distribution.version.split(".")[:2])

    def package(self, connector: str) -> str | None:
        """Maven coordinate of a connector, if one is known to work."""
        coordinate = CONNECTORS.get(self.line, {}).get(connector)
        return coordinate and coordinate.format(scala=self.distribution.scala)


def output_of(command: Sequence[str]) -> str:
    """Run a short command; its standard output and standard error."""
    finished = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if finished.returncode != 0:
        message = f"exit code {finished.returncode}: {' '.join(command)}\n{finished.stdout}"
        raise RecordingError(message)
    return finished.stdout


def fixed_id(name: str) -> str:
    """Give the same UUID for a name each time."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"sparklineage-golden/{name}"))


def listener_conf(case: Case, events: Path) -> dict[str, str]:
    """Configure the listener as an Airflow task would; run ids depend on the case only."""
    return {
        "spark.extraListeners": LISTENER_CLASS,
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(events),
        "spark.openlineage.namespace": "golden",
        "spark.openlineage.appName": case.name,
        "spark.openlineage.applicationRunId": fixed_id(f"application/{case.name}"),
        "spark.openlineage.parentJobNamespace": "airflow",
        "spark.openlineage.parentJobName": f"golden_dag.{case.name}",
        "spark.openlineage.parentRunId": fixed_id(f"task/{case.name}"),
        "spark.openlineage.rootParentJobNamespace": "airflow",
        "spark.openlineage.rootParentJobName": "golden_dag",
        "spark.openlineage.rootParentRunId": fixed_id("dag"),
        "spark.openlineage.columnLineage.datasetLineageEnabled": "true",
        "spark.openlineage.columnLineage.descriptionsEnabled": "true",
        "spark.openlineage.capturedProperties": (
            "spark.master,spark.app.name,spark.sql.sources.partitionOverwriteMode,"
            "spark.sql.extensions"
        ),
    }


def spark_conf(lake: Path, scratch: Path) -> dict[str, str]:
    """Keep Spark small, and inside the scratch folder."""
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{lake}/warehouse",
        "spark.local.dir": str(scratch),
        "spark.ui.showConsoleProgress": "false",
    }


def environment(spark: Spark, scratch: Path) -> dict[str, str]:
    """Take this process's environment, without what configures Spark and without our names."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "OPENLINEAGE", "PYTHONPATH"))
    }
    return kept | {
        "SPARK_HOME": str(spark.distribution.home),
        "SPARK_CONF_DIR": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_USER": "spark",
        "HADOOP_USER_NAME": "spark",
        "PYSPARK_PYTHON": str(spark.python),
        # Or the log tail is mostly the listener's warnings about reflective access.
        "SPARK_SUBMIT_OPTS": (
            "--add-opens=java.base/java.security=ALL-UNNAMED "
            # A driver that lives for seconds compiles for longer than it would run uncompiled.
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
            # Then Java reserves 48 MB for compiled code, which is too little for several builds.
            "-XX:ReservedCodeCacheSize=240m"
        ),
        "TMPDIR": str(scratch),
    }


def submit(
    spark: Spark,
    application: Path,
    lake: Path,
    scratch: Path,
    options: Sequence[str],
    under: Sequence[str] = (),
) -> tuple[int, str]:
    """Run one application; its exit code (negative for a signal) and the end of its log.

    :param under: command with its options that runs spark-submit, to look at what it does

    Its process group, and no other, is ended after the timeout or an interrupt.
    """
    log_file = scratch / "spark.log"
    spark_submit = f"{spark.distribution.home}/bin/spark-submit"
    command = [*under, spark_submit, *options, str(application), str(lake)]
    with log_file.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment(spark, scratch),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code = process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            message = f"{application.stem}: not finished after {TIMEOUT_SECONDS} s"
            raise RecordingError(message) from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    lines = log_file.read_text(errors="replace").splitlines()
    return exit_code, "\n".join(lines[-LOG_TAIL_LINES:])


def conf_options(conf: Mapping[str, str]) -> list[str]:
    """Write a configuration as spark-submit arguments."""
    return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]


def prepare_lake(spark: Spark, work: Path) -> Path:
    """Make the lake that is copied for each case, without the listener."""
    lake, scratch = work / "prepared" / "lake", work / "prepared" / "scratch"
    scratch.mkdir(parents=True)
    options = conf_options(spark_conf(lake, scratch))
    exit_code, tail = submit(spark, APPLICATIONS / "prepare_lake.py", lake, scratch, options)
    if exit_code != 0:
        message = f"prepare_lake: exit code {exit_code}\n{tail}"
        raise RecordingError(message)
    return lake


def run_case(spark: Spark, case: Case, listener: Path, prepared: Path, work: Path) -> Recording:
    """Run one case on its own copy of the lake."""
    imports = "; ".join(f"import {module}" for module in case.modules)
    if subprocess.run([spark.python, "-c", imports], check=False, capture_output=True).returncode:
        needed = " and ".join(case.modules)
        message = f"{case.name}: {spark.python} cannot import {needed}; they belong next to PySpark"
        raise RecordingError(message)
    lake, scratch = work / case.name / "lake", work / case.name / "scratch"
    shutil.copytree(prepared, lake)
    scratch.mkdir()
    events = scratch / "events.ndjson"

    conf = spark_conf(lake, scratch) | listener_conf(case, events)
    options = ["--jars", str(listener)]
    observations = scratch / "observations.ndjson"
    options += ["--py-files", str(submitted_files.write_observer(scratch))]
    conf |= {f"{OBSERVER}observations": str(observations)}
    conf |= {DELTA_TAG: f"task/{case.name}", f"{OBSERVER}tag": f"task/{case.name}"}
    conf |= {f"{OBSERVER}limits": "plans=all"}  # also of writes that the listener gets right
    if case.connector is not None:
        options += ["--packages", str(spark.package(case.connector))]
        connector_conf = CONNECTOR_CONF[case.connector]
        conf |= {key: value.format(lake=lake) for key, value in connector_conf.items()}
    options += conf_options(conf)

    exit_code, tail = submit(spark, APPLICATIONS / f"{case.name}.py", lake, scratch, options)
    if exit_code != case.exit_code or not events.is_file():
        found = "no events" if exit_code == case.exit_code else f"exit code {exit_code}"
        message = f"{case.name}: {found}; expected events and exit code {case.exit_code}\n{tail}"
        raise RecordingError(message)

    roots = {
        str(lake): "/lake",
        str(scratch): "/scratch",
        str(spark.distribution.home): "/opt/spark",
        str(spark.python.parent.parent): "/opt/python",
        str(TESTS.parent): "/app",
    }
    recorded = Recording(
        normalised(events.read_text(), roots, socket.gethostname()),
        _OF_OBSERVER.sub("", normalised(observations.read_text(), roots, socket.gethostname())),
    )
    if left := [name for name in names_of_this_machine() if name in "".join(recorded)]:
        message = f"{case.name}: left of this machine in the events: {left}"
        raise RecordingError(message)
    return recorded


_OF_OBSERVER = re.compile(r',"observer":"[0-9a-f]{16}"')
"""What the observer's record of its start has of its own files: it changes with each of them."""


class Recording(NamedTuple):
    """What the listener and the observer reported about an application."""

    events: str
    observations: str


def normalised(text: str, roots: Mapping[str, str], host: str) -> str:
    """Take this machine out of recorded events: paths, host name, IP addresses, ports.

    Longer paths are replaced first, so that a folder inside of another keeps its own name. The
    text is not parsed: a torn last line stays torn.
    """
    for path, name in sorted(roots.items(), key=lambda item: -len(item[0])):
        text = text.replace(path, name)
    # Not inside of a longer word: a host may be called "vm" or "spark".
    text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])", "localhost", text)
    text = re.sub(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "127.0.0.1", text)
    return re.sub(r"\b(localhost|127\.0\.0\.1):\d+", r"\1:4040", text)


def names_of_this_machine() -> list[str]:
    """Name what must not be in the events: temporary and home folders."""
    folders = {Path(tempfile.gettempdir()), Path(tempfile.gettempdir()).resolve(), Path.home()}
    return [f"{folder}/" for folder in folders if folder != folder.parent]


def versions(spark: Spark, text: str) -> dict[str, str]:
    """Give the versions it was recorded with; those of Spark and the listener are in the events."""
    engine = json.loads(text.splitlines()[0])["run"]["facets"]["processing_engine"]
    printed = output_of([str(commands.find_java(os.environ) or "java"), "-version"])
    running = re.search(r'version "([^"]+)"', printed)
    connectors = CONNECTORS.get(spark.line, {})
    return {
        "spark": engine["version"],
        "scala": spark.distribution.scala,
        "listener": engine["openlineageAdapterVersion"],
        "java": running[1] if running else "unknown",
        **{name: coordinate.rsplit(":", 1)[1] for name, coordinate in connectors.items()},
    }


def keep(spark: Spark, recorded: Mapping[str, Recording]) -> None:
    """Write the recorded cases and `versions.json`.

    Recording some of the cases again leaves the others, which must have been recorded with the
    same versions: a folder of golden events has one set of them. The version of a connector is a
    matter of the cases that use it.
    """
    folder = GOLDEN / f"spark-{spark.line}"
    file = folder / "versions.json"
    made_with = versions(spark, next(iter(recorded.values())).events)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()

    before = json.loads(file.read_text()) if file.is_file() else {"cases": {}}
    cases = {name: of for name, of in before.pop("cases").items() if name in CASES}
    left = cases.keys() - recorded.keys()
    unused = CONNECTOR_CONF.keys() - {CASES[name].connector for name in left}
    same = all(made_with.get(n) == version for n, version in before.items() if n not in unused)
    if left and not same:
        message = f"{folder} was recorded with {before}, this is {made_with}; record every case"
        raise RecordingError(message)

    (folder / OBSERVED).mkdir(parents=True, exist_ok=True)
    for name, recording in recorded.items():
        (folder / f"{name}.ndjson").write_text(recording.events)
        (folder / OBSERVED / f"{name}.ndjson").write_text(recording.observations)
        cases[name] = {"recorded": today, "exit_code": CASES[name].exit_code}
    document = {**made_with, "cases": dict(sorted(cases.items()))}
    file.write_text(json.dumps(document, indent=2) + "\n")


def record(names: Sequence[str], spark: Spark, listener: Path) -> list[RecordingError]:
    """Record the named cases and keep what went as planned; what did not."""
    recorded: dict[str, Recording] = {}
    errors: list[RecordingError] = []
    with tempfile.TemporaryDirectory(prefix="record-events-") as folder:
        work = Path(folder).resolve()
        log.info("Spark %s, %s", spark.distribution.version, listener.name)
        log.info("preparing the lake")
        prepared = prepare_lake(spark, work)
        for number, name in enumerate(names, start=1):
            progress = f"[{number}/{len(names)}] {name}"
            connector = CASES[name].connector
            if connector is not None and spark.package(connector) is None:
                log.info("%s: skipped, no %s for this Spark", progress, connector)
                continue
            try:
                recorded[name] = run_case(spark, CASES[name], listener, prepared, work)
            except RecordingError as error:
                log.error("%s: not as planned", progress)  # noqa: TRY400 - logged at the end
                errors.append(error)
                continue
            events = recorded[name].events
            log.info("%s: %d events, %d KB", progress, events.count("\n"), len(events) // 1024)
    if recorded:
        keep(spark, recorded)
    return errors


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.record_events", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("cases", nargs="*", metavar="case", help=f"default: {' '.join(CASES)}")
    parser.add_argument(
        "--jar", type=Path, help="the listener; default: sparklineage fetch-listener"
    )
    parser.add_argument(
        "--spark-submit",
        type=Path,
        default=Path(sys.executable).with_name("spark-submit"),
        help="of the Spark to record with; default: the one of this environment",
    )
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.cases) - CASES.keys():
        parser.error(f"no such case: {', '.join(sorted(unknown))}")

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        spark = Spark.of(chosen.spark_submit)
        listener = chosen.jar or spark.listener
        errors = record(chosen.cases or list(CASES), spark, listener.resolve())
    except RecordingError as error:
        errors = [error]
    for unplanned in errors:
        log.error("%s", unplanned)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
