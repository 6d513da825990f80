"""A small Spark application, run as a task would run it, and what came of its lineage."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.cli.doctor.spark import with_job
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.settings.checks import Check, Status, failed
from airflow_provider_sparklineage.spark import driver
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit import distribution, injection, submitted_files
from airflow_provider_sparklineage.spark.submit.submission import Submission
from airflow_provider_sparklineage.spark.submit.submitted_files import Links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.cli.doctor.spark import Machine
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle


TRIAL = "trial"
TIMEOUT_S = 180
"""A driver on a busy machine takes half a minute; a master that is out of reach, for ever."""

NOT_RUN = Check(
    TRIAL,
    Status.FAILED,
    "No application was run, because it would have no listener.",
    "Fix what failed above first.",
)

ORDERS = {
    "dt=2024-05-06/part-0.csv": "amount\n3\n4\n",
    "dt=2024-05-07/part-0.csv": "amount\n5\n",
}
"""Files of the table that the application reads."""

# What a log says of why Spark did not run, or its listener did not, and the fix.
_CAUSES = (
    (r"UnsupportedClassVersionError.*", "Set JAVA_HOME to a newer Java."),
    (r"JAVA_HOME is not set", "Install Java 17 or 21 and set JAVA_HOME to it."),
    (
        r"ClassNotFoundException: io\.openlineage.*",
        "Spark did not load the listener: look for spark.jars or a wrapper around spark-submit "
        "that replaces --jars.",
    ),
    (
        r"(?:NoSuchMethodError|NoClassDefFoundError|IncompatibleClassChangeError).*",
        "Classes of other versions are in the way: look at the jars in $SPARK_HOME/jars and in "
        "spark-defaults.conf.",
    ),
    (r"Cannot run program \"python3?\".*", "Set PYSPARK_PYTHON to a Python on this machine."),
    (r"UnknownHostException.*", "Set SPARK_LOCAL_IP to an IP address of this machine."),
    (r"Connection refused.*|Failed to connect.*", "Check what spark-defaults.conf connects to."),
    (
        r"ClassNotFoundException.*",
        "A class that spark-defaults.conf names is not on Spark's class path.",
    ),
)


def run(machine: Machine, settings: Settings, env: Mapping[str, str]) -> Check:
    """Run the application on this machine with a listener and an observer, and merge its lineage.

    Tables and the capture bundle are removed again.

    :param settings: of a task; the bundle is made in its capture location
    :param env: environment of ``spark-submit``
    """
    begun = time.monotonic()
    try:
        manifest = Manifest(application_run_id=str(uuid.uuid4()))
        bundle = capture.create(settings.capture_location.folder, manifest)
        links = Links(bundle.path)
    except SparkLineageError as error:
        return failed(TRIAL, error)
    try:
        with tempfile.TemporaryDirectory(prefix="sparklineage-doctor-") as work:
            _write_orders(Path(work))
            code, log = _submit(machine, settings, bundle, links, Path(work), env)
            took = time.monotonic() - begun
            return _judged(bundle, machine, code, log, took)
    except SparkLineageError as error:
        return failed(TRIAL, error)
    except OSError as error:
        return Check(TRIAL, Status.FAILED, f"The application could not be started ({error}).")
    finally:
        links.remove()
        bundle.remove()


def _write_orders(work: Path) -> None:
    for name, content in ORDERS.items():
        file = work / "orders" / name
        file.parent.mkdir(parents=True)
        file.write_text(content, encoding="utf-8")


def _submit(
    machine: Machine,
    settings: Settings,
    bundle: CaptureBundle,
    links: Links,
    work: Path,
    env: Mapping[str, str],
) -> tuple[int | None, str]:
    """Submit; give the exit code (None: it took too long) and the log."""
    assert bundle.path is not None  # noqa: S101  (it was made)
    bundle = replace(bundle, path=links.plain(bundle.path))
    assert bundle.path is not None  # noqa: S101
    assert bundle.events_path is not None  # noqa: S101
    assert bundle.observations_path is not None  # noqa: S101
    tag = bundle.manifest.application_run_id
    application = Path(str(driver.__file__)).with_name("trial_application.py")
    submission = injection.inject(
        with_job(machine, Submission(application=str(application))),
        injection.Injection(
            tuple(links.entry(jar) for jar in machine.jars),
            str(bundle.events_path),
            tag,
            defaults={"spark.openlineage.namespace": "sparklineage-doctor"},
            existing_transport=settings.existing_transport,
            submit_opts=env.get(injection.SUBMIT_OPTS, ""),
            observation=injection.Observation(
                links.entry(str(submitted_files.write_observer(bundle.path))),
                str(bundle.observations_path),
                tag,
            ),
        ),
    )
    home = machine.spark.home
    binary = home / "bin" / "spark-submit" if home else Path(machine.spark_binary)
    command = [str(binary) if binary.is_file() else machine.spark_binary]
    command += ["--master", "local[1]", "--name", "sparklineage doctor"]
    conf = {**submission.conf, "spark.ui.enabled": "false"}
    if submission.new_file is not None:
        properties = work / "properties"
        distribution.write_properties(properties, submission.new_file)
        command += ["--properties-file", str(properties)]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    for flag, text in (("--jars", submission.jars), ("--py-files", submission.py_files)):
        command += [flag, text] if text else []
    command += [str(application), str(work)]
    return _run(command, {**env, **submission.env_vars}, work)


def _run(command: list[str], env: Mapping[str, str], work: Path) -> tuple[int | None, str]:
    log = work / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (the command that a task starts)
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=work,
            start_new_session=True,  # spark-submit is a script that starts a JVM that starts Python
        )
        code: int | None
        try:
            code = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return code, log.read_text(encoding="utf-8", errors="replace")


# --- what came of it ------------------------------------------------------------------------------


def _judged(
    bundle: CaptureBundle, machine: Machine, code: int | None, log: str, took: float
) -> Check:
    if code is None:
        return Check(
            TRIAL,
            Status.FAILED,
            f"Spark {machine.spark.version} did not end within {TIMEOUT_S} seconds.",
            explained(
                log, "Run `spark-submit --master local[1]` by hand and see what it waits for."
            ),
        )
    if code != 0:
        return Check(
            TRIAL,
            Status.FAILED,
            f"Spark {machine.spark.version} ended with {code}: {_last(log)}",
            explained(log, "Run `spark-submit --master local[1]` with any application by hand."),
        )
    manifest = msgspec.structs.replace(
        bundle.manifest, ended=datetime.now(UTC), outcome="COMPLETE", injected=("py_files",)
    )
    bundle = capture.CaptureBundle(bundle.path, manifest)
    event = merged_event(bundle, task_lineage(bundle))
    return judged(event, machine, log, took)


def judged(
    event: Mapping[str, Any], machine: Machine, log: str, took: float, where: str = ""
) -> Check:
    """Judge the merged event of the application that has ended well.

    :param log: of its driver
    :param took: seconds
    :param where: it ran, if that is not this machine
    """
    ran = f"Spark {machine.spark.version} ran an application {where}in {took:.0f} s"
    if not event["inputs"] and not event["outputs"]:
        code = next((d["code"] for d in model.degradations(event)), "no_events")
        disabled = machine.defaults.get("spark.openlineage.disabled", "").lower() == "true"
        fix = "Take spark.openlineage.disabled out of spark-defaults.conf."
        if not disabled:
            fix = explained(log, "Look in a job's log for messages of OpenLineageSparkListener.")
        return Check(TRIAL, Status.FAILED, f"{ran}, but its lineage is empty ({code}).", fix)
    missing = _missing(event)
    if missing:
        reasons = " ".join(d["message"] for d in model.degradations(event))
        text = f"{ran}, but its lineage is without {', '.join(missing)}. {reasons}".rstrip()
        return Check(
            TRIAL, Status.WARNING, text, explained(log, "Report this with the log of a job.")
        )
    text = f"{ran}, and its lineage is complete: tables, the partition that it read, the column."
    return Check(TRIAL, Status.OK, text)


def _missing(event: Mapping[str, Any]) -> list[str]:
    """List what the event ought to have and does not."""
    missing = []
    read = [d for d in event["inputs"] if d["name"].endswith("/orders")]
    written = [d for d in event["outputs"] if d["name"].endswith("/totals")]
    if not read or not written:
        missing.append("a table")
    if not any("2024-05-06" in str((d.get("inputFacets") or {}).get("subset")) for d in read):
        missing.append("the partition that was read")
    fields = [
        (d["facets"].get("columnLineage") or {}).get("fields", {}).get("total", {}) for d in written
    ]
    if not any(s["field"] == "amount" for f in fields for s in f.get("inputFields", ())):
        missing.append("the sources of a column")
    return missing


def explained(log: str, otherwise: str) -> str:
    """Give the fix for what a log says of why Spark did not run, with what it says."""
    for pattern, fix in _CAUSES:
        if found := re.search(pattern, log):
            return f"{fix} (The log says: {found.group()[:200].strip()})"
    return otherwise


def _last(log: str) -> str:
    """Give the line that most likely says why: an exception's, else the last."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    causes = [line for line in lines if re.search(r"(Exception|Error)\b.*: ", line)]
    return (causes or lines or ["it printed nothing"])[-1 if not causes else 0][:300]
