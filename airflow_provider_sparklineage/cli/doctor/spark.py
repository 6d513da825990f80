"""Checks that a worker has all that a task needs: Java, Spark, a listener, a place for captures.

Each check calls the functions that a task will call, so that a task does not refuse a set-up that
has passed. Nothing is downloaded, and no JVM is started except for ``java -version``. The trial
(:func:`run_trial`) runs a small Spark application as a task would run it, and judges the
application's lineage.
"""

from __future__ import annotations

import re
import stat
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from airflow_provider_sparklineage.event import model, pipeline
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS, Frozen
from airflow_provider_sparklineage.settings.checks import Check, Status, failed, passed, warning
from airflow_provider_sparklineage.spark import driver
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.submit import (
    commands,
    deploy_mode,
    distribution,
    fetching,
    injection,
    listener,
    listener_selection,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission, arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution


JAVA, SPARK, DEFAULTS = "Java", "spark-submit", "spark-defaults.conf"
LISTENER, EXTENSIONS, CAPTURES = "listener", "listener extension", "capture location"


class Machine(Frozen, frozen=True):
    """The facts about this machine that a trial needs.

    :param defaults: the properties in ``spark-defaults.conf``
    :param jars: jars to add: the listener, unless Spark has one already, and its extensions
    """

    spark: SparkDistribution
    spark_binary: str
    defaults: Mapping[str, str]
    jars: tuple[str, ...]


def check(
    settings: Settings, spark_binary: str, env: Mapping[str, str]
) -> tuple[list[Check], Machine | None]:
    """Check this machine for the settings of a task.

    :param spark_binary: ``spark-submit``, as the Spark connection names it
    :param env: environment of ``spark-submit``
    :return: the checks, and the machine for a trial; None for the machine if a trial could not be
        run with a listener
    """
    captures = check_captures(settings.capture_location.folder)
    try:
        spark = listener_selection.spark_of(spark_binary, env, settings.spark_version)
    except exceptions.ListenerError as error:
        return [_java(env), failed(SPARK, error), captures], None
    checks = [_java(env, spark), _spark(spark)]
    machine = None
    try:
        machine = Machine(spark, spark_binary, distribution.defaults(spark.home, env), ())
    except exceptions.ListenerError as error:
        checks.append(failed(DEFAULTS, error))
    except (OSError, ValueError) as error:
        text = f"It cannot be read ({type(error).__name__}: {error})."
        fix = "Make it a properties file in UTF-8 that the worker's user may read."
        checks.append(failed(DEFAULTS, text, fix))
    else:
        listener_checks, machine = _listener(settings, machine, env)
        checks += listener_checks
    checks.append(captures)
    if checks[0].status is Status.FAILED:
        machine = None
    return checks, machine


def _spark(spark: SparkDistribution) -> Check:
    where = f" in {spark.home}" if spark.home else ""
    text = f"Spark {spark.version} on Scala {spark.scala}{where}."
    if mixed := _mixed(spark):
        return mixed
    newest = ".".join(map(str, listener.NEWEST_SPARK))
    if listener.version_numbers(spark.version)[:2] > listener.NEWEST_SPARK:
        return warning(
            SPARK,
            f"{text} This package is tested up to {newest}.",
            "Run `sparklineage doctor --spark-submit`, and look at the lineage of a job of yours.",
        )
    return passed(SPARK, text)


def _mixed(spark: SparkDistribution) -> Check | None:
    """Warn if one folder has two versions of PySpark; None if it has only one version.

    The Spark provider brings ``pyspark-client``. pip writes it to the folder of ``pyspark``, and
    does not check that both have the same version.
    """
    if spark.home is None or spark.home.name != "pyspark":
        return None
    versions = {
        folder.name.removesuffix(".dist-info").rpartition("-")[2]
        for name in ("pyspark", "pyspark_client")
        for folder in spark.home.parent.glob(f"{name}-*.dist-info")
    }
    if len(versions) < 2:
        return None
    one = min(versions, key=listener.version_numbers)
    return warning(
        SPARK,
        f"{spark.home} has files of pyspark and pyspark-client in the versions "
        f"{' and '.join(sorted(versions))}.",
        "Install both in one version: pip install --force-reinstall --no-deps "
        f"pyspark=={one} pyspark-client=={one}",
    )


def _java(env: Mapping[str, str], spark: SparkDistribution | None = None) -> Check:
    """Check Java, and whether it fits Spark if the machine has one.

    :param env: environment of ``spark-submit``
    """
    if spark and (error := commands.java_refusal(env, spark)):
        return failed(JAVA, error)
    found = commands.find_java(env)
    if found is None:
        return failed(
            JAVA,
            "There is no Java to run Spark with.",
            "Install Java 17 or 21 and set JAVA_HOME to it, or put it on PATH.",
        )
    version = commands.java_feature_version(found)
    if version is None:
        problem = f"{found} does not run, or is no Java."
        return failed(JAVA, problem, "Set JAVA_HOME to an installed Java.")
    return passed(JAVA, f"{found} is Java {version}.")


def _listener(
    settings: Settings, machine: Machine, env: Mapping[str, str]
) -> tuple[list[Check], Machine | None]:
    """Check the listener that would be added, or the one that Spark has already.

    :param settings: the settings of a task
    :param machine: the machine without jars to add
    :param env: environment of ``spark-submit``
    :return: the checks, and the machine for a trial; None for the machine if a trial could not have
        a listener
    """
    spark, submission = machine.spark, Submission(file_properties=machine.defaults)
    jar: tuple[str, ...] = ()
    try:
        deploy_mode.refuse_connect(submission, "", env)
        found = listener_selection.job_listeners(submission, spark)
        own = listener_selection.only_listener(found, submission, spark)
        if own is not None:
            text = f"Spark has the listener {own.name} ({own.source}); none is added."
            checked = passed(LISTENER, text)
        elif is_fetched_later(settings, spark, env):
            return [FETCHED_LATER], None
        else:
            name = listener_selection.jar_for(spark, settings.listener_jar, env, is_remote=True)
            path = submitted_files.local_path(name)
            if path is None:
                text = f"It is {name}, not a file of this worker; so it is not looked at."
                checked = passed(LISTENER, text)
                if submitted_files.scheme(name) == "local":  # not for a driver of this worker
                    return [checked], None
            else:
                checked = _checked_jar(path, spark, in_cache=settings.listener_jar is None)
            jar = (name,)
    except (exceptions.ListenerError, OSError) as error:
        return [failed(LISTENER, error)], None
    usable, errors = listener_selection.checked_extensions(settings.listener_extensions, own)
    checks = [checked, *(failed(EXTENSIONS, error) for error in errors)]
    if checked.status is Status.FAILED:
        return checks, None
    return checks, replace(machine, jars=(*jar, *usable))


FETCHED_LATER = warning(
    LISTENER,
    "There is no whole one in the cache; the first task fetches it, and waits for that.",
    "Run `sparklineage fetch-listener` when the worker is made.",
)


def is_fetched_later(settings: Settings, spark: SparkDistribution, env: Mapping[str, str]) -> bool:
    """Whether the first task would fetch the listener, because there is no whole one here."""
    may = settings.fetch_listener and settings.listener_jar is None
    return may and not fetching.is_cached(spark.scala, env)


def _checked_jar(jar: Path, spark: SparkDistribution, *, in_cache: bool) -> Check:
    version = listener.read_jar(jar).version
    if version != listener.VERSION:
        return warning(
            LISTENER,
            f"{jar} is the listener {version or 'of an unknown version'}; this package is tested "
            f"with {listener.VERSION}.",
            f"Run `sparklineage fetch-listener`, which brings {listener.VERSION}, and leave "
            "[sparklineage] listener_jar empty.",
        )
    if problem := fetching.digest_problem(jar, spark.scala):
        return Check(
            LISTENER,
            Status.FAILED if in_cache else Status.WARNING,
            f"It is not the jar that was published: {problem}.",
            f"Delete {jar} and run `sparklineage fetch-listener`.",
        )
    return passed(LISTENER, f"{jar} is the listener {version}, and complete.")


def check_captures(location: Path) -> Check:
    """Make a capture bundle in the capture location as a task does, and remove the bundle."""
    is_new = not location.exists()
    try:
        bundle = capture.create(location, capture.Manifest(application_run_id="doctor"))
    except exceptions.CaptureError as error:
        return failed(CAPTURES, error)
    bundle.remove()
    if is_new:
        with suppress(OSError):  # it is not empty: a task has begun meanwhile
            location.rmdir()
        return passed(CAPTURES, f"{location} can be made for the first task.")
    if location.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return warning(
            CAPTURES,
            f"Others can list {location}: they see the names of DAGs and tasks, though not what "
            "was captured.",
            f"chmod 700 {location}",
        )
    return passed(CAPTURES, f"{location} is writable, and private.")


# --- the trial ------------------------------------------------------------------------------------


TRIAL = "trial"
TIMEOUT_S = 180
"""Seconds for the application; a driver on a busy machine takes half a minute.

Without a limit, the driver would wait forever for a master that it cannot reach.
"""

NOT_RUN = failed(
    TRIAL,
    "No application was run, because it would have no listener.",
    "Fix the failed checks above first.",
)

ORDERS = {"dt=2024-05-06/part-0.csv": "amount\n3\n4\n", "dt=2024-05-07/part-0.csv": "amount\n5\n"}
"""Files of the table that the application reads."""

# If Spark or its listener did not run, the log names a cause: its pattern, and the fix for it.
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
    (r"Connection refused.*|Failed to connect.*", "Check the addresses in spark-defaults.conf."),
    (
        r"ClassNotFoundException.*",
        "A class that spark-defaults.conf names is not on Spark's class path.",
    ),
)


def run_trial(machine: Machine, settings: Settings, env: Mapping[str, str]) -> Check:
    """Run the application on this machine with a listener and an observer, and judge its lineage.

    The application's tables and the capture bundle are removed afterwards.

    :param settings: settings of a task; the bundle is made in their capture location
    :param env: environment of ``spark-submit``
    :raise SparkLineageError: if the bundle cannot be made, or the application not be submitted
    """
    begun = time.monotonic()
    bundle = new_bundle(settings)
    links = submitted_files.Links(bundle.path)
    try:
        with tempfile.TemporaryDirectory(prefix="sparklineage-doctor-") as work:
            _write_orders(Path(work))
            code, log = _submit(machine, settings, bundle, links, Path(work), env)
            return _judged(bundle, machine, code, log, time.monotonic() - begun)
    except OSError as error:
        return failed(TRIAL, f"The application could not be started ({error}).")
    finally:
        links.remove()
        bundle.remove()


def new_bundle(settings: Settings) -> capture.CaptureBundle:
    """Make the capture bundle of a trial.

    :raise CaptureError: if it cannot be made
    """
    manifest = capture.Manifest(application_run_id=str(uuid.uuid4()))
    return capture.create(settings.capture_location.folder, manifest)


def _write_orders(work: Path) -> None:
    for name, content in ORDERS.items():
        file = work / "orders" / name
        file.parent.mkdir(parents=True)
        file.write_text(content, encoding="utf-8")


def _submit(
    machine: Machine,
    settings: Settings,
    bundle: capture.CaptureBundle,
    links: submitted_files.Links,
    work: Path,
    env: Mapping[str, str],
) -> tuple[int | None, str]:
    """Submit the application; give the exit code, None if it took too long, and the log.

    :param bundle: the bundle into which the driver writes
    :param links: makes links to files whose paths Spark would misread
    :param work: a temporary folder, which has the application's tables
    :param env: environment of ``spark-submit``
    """
    folder = links.plain(cast("Path", bundle.path))
    jars = tuple(links.entry(jar) for jar in machine.jars)
    observer = links.entry(str(submitted_files.write_observer(folder)))
    tag = bundle.manifest.application_run_id
    application = Path(str(driver.__file__)).with_name("trial_application.py")
    submission = injection.inject(
        Submission(application=str(application), file_properties=machine.defaults),
        injection.Injection(
            jars,
            str(folder / EVENTS),
            tag,
            defaults={"spark.openlineage.namespace": "sparklineage-doctor"},
            existing_transport=settings.existing_transport,
            submit_opts=env.get(injection.SUBMIT_OPTS, ""),
            observation=injection.Observation(observer, str(folder / OBSERVATIONS), tag),
        ),
    )
    submission = replace(submission, conf={**submission.conf, "spark.ui.enabled": "false"})
    if submission.new_file is not None:
        distribution.write_properties(work / "properties", submission.new_file)
        submission = replace(submission, properties_file=str(work / "properties"))
    command = [
        machine.spark.submit_command(machine.spark_binary),
        *("--master", "local[1]", "--name", "sparklineage doctor"),
        *arguments(submission),
        *(str(application), str(work)),
    ]
    environment = {**env, **submission.env_vars}
    try:
        return commands.run(command, environment, TIMEOUT_S, folder=work)
    except subprocess.TimeoutExpired as error:
        return None, str(error.output)


# --- the result -----------------------------------------------------------------------------------


def _judged(
    bundle: capture.CaptureBundle, machine: Machine, code: int | None, log: str, took: float
) -> Check:
    if code is None:
        return failed(
            TRIAL,
            f"Spark {machine.spark.version} did not end within {TIMEOUT_S} seconds.",
            explained(log, "Run `spark-submit --master local[1]` by hand and look for the cause."),
        )
    if code != 0:
        return failed(
            TRIAL,
            f"Spark {machine.spark.version} ended with {code}: {_last(log)}",
            explained(log, "Run `spark-submit --master local[1]` with any application by hand."),
        )
    manifest = replace(
        bundle.manifest, ended=datetime.now(UTC), outcome="COMPLETE", injected=("py_files",)
    )
    bundle = capture.CaptureBundle(bundle.path, manifest)
    event = pipeline.merged_event(bundle, task_lineage(bundle))
    return judged(event, machine, log, took)


def judged(
    event: Mapping[str, Any], machine: Machine, log: str, took: float, where: str = ""
) -> Check:
    """Judge the merged event of an application that has ended without an error.

    :param log: log of the driver
    :param took: seconds that the trial took
    :param where: ``in the cluster ``, or empty if the application ran on this machine
    """
    merged = model.read_document(event)
    losses = merged.capture.degradations or []
    ran = f"Spark {machine.spark.version} ran an application {where}in {took:.0f} s"
    if not merged.datasets:
        code = next((loss.code for loss in losses), "no_events")
        disabled = machine.defaults.get("spark.openlineage.disabled", "").lower() == "true"
        fix = "Take spark.openlineage.disabled out of spark-defaults.conf."
        if not disabled:
            fix = explained(log, "Look in a job's log for messages of OpenLineageSparkListener.")
        return failed(TRIAL, f"{ran}, but its lineage is empty ({code}).", fix)
    if missing := _missing(merged):
        reasons = " ".join(loss.message or "" for loss in losses)
        text = f"{ran}, but its lineage is without {', '.join(missing)}. {reasons}".rstrip()
        return warning(TRIAL, text, explained(log, "Report this with the log of a job."))
    outdated = DegradationCode.OBSERVER_OUTDATED
    if stale := [loss.message or "" for loss in losses if loss.code == outdated]:
        fix = "Take the observer of another version out of the drivers' py-files."
        return warning(TRIAL, f"{ran}. {stale[0]}", fix)
    text = f"{ran}, and its lineage is complete: tables, the partition that it read, the column."
    return passed(TRIAL, text)


def _missing(event: model.Event) -> list[str]:
    """List the parts of the application's lineage that are not in the event."""
    missing = []
    read = [one for one in event.inputs or () if one.name.endswith("/orders")]
    written = [one for one in event.outputs or () if one.name.endswith("/totals")]
    if not read or not written:
        missing.append("a table")
    if not any("2024-05-06" in str(one.of_side.subset) for one in read):
        missing.append("the partition that was read")
    totals = [(one.column_lineage.fields or {}).get("total") for one in written]
    if not any(s.field == "amount" for total in totals if total for s in total.inputFields or ()):
        missing.append("the sources of a column")
    return missing


def explained(log: str, otherwise: str) -> str:
    """Give the fix for the first known cause in a log, with the words of the log.

    :return: ``otherwise`` if the log has no known cause
    """
    for pattern, fix in _CAUSES:
        if found := re.search(pattern, log):
            return f"{fix} (The log says: {found.group()[:200].strip()})"
    return otherwise


def _last(log: str) -> str:
    """Give the line of the log that most likely names the cause.

    It is the first line with an exception, and otherwise the last line.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    causes = [line for line in lines if re.search(r"(Exception|Error)\b.*: ", line)]
    return (causes or lines or ["it printed nothing"])[-1 if not causes else 0][:300]
