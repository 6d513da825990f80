"""Checks of what a task needs on its worker: Java, Spark, the listener, a place for captures.

Each asks what a task will ask, by the same functions, so that a set-up which passes is not refused
later. Nothing is downloaded, and no JVM is started but for ``java -version``.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.checks import Check, Status, failed
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit import (
    commands,
    fetching,
    listener,
    listener_selection,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.injection import refuse_connect
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution


JAVA, SPARK, DEFAULTS = "Java", "spark-submit", "spark-defaults.conf"
LISTENER, EXTENSIONS, CAPTURES = "listener", "listener extension", "capture location"


class Machine(Frozen, frozen=True):
    """What was found on this machine, as far as a trial needs it.

    :param jars: to add: the listener, unless Spark has one already, and what extends it
    """

    spark: SparkDistribution
    spark_binary: str
    defaults: Mapping[str, str]
    jars: tuple[str, ...]


def check(
    settings: Settings, spark_binary: str, env: Mapping[str, str]
) -> tuple[list[Check], Machine | None]:
    """Check this machine for the settings of a task.

    :param spark_binary: as the Spark connection names it
    :param env: environment of ``spark-submit``
    :return: and what a trial can be run with; None if it could not be submitted with a listener
    """
    try:
        spark = listener_selection.spark_of(spark_binary, env, settings.spark_version)
    except exceptions.ListenerError as error:
        found = [_java_alone(env), failed(SPARK, error)]
        return [*found, check_captures(settings.capture_location.folder)], None
    checks = [_java(env, spark), _spark(spark)]
    machine = None
    try:
        defaults = spark.defaults(env)
    except exceptions.ListenerError as error:
        checks.append(failed(DEFAULTS, error))
    except (OSError, ValueError) as error:
        text = f"It cannot be read ({type(error).__name__}: {error})."
        fix = "Make it a properties file in UTF-8 that the worker's user may read."
        checks.append(Check(DEFAULTS, Status.FAILED, text, fix))
    else:
        listener_checks, machine = _listener(settings, spark, spark_binary, defaults, env)
        checks += listener_checks
    checks.append(check_captures(settings.capture_location.folder))
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
        return Check(
            SPARK,
            Status.WARNING,
            f"{text} This package is tested up to {newest}.",
            "Run `sparklineage doctor --spark-submit`, and look at the lineage of a job of yours.",
        )
    return Check(SPARK, Status.OK, text)


def _mixed(spark: SparkDistribution) -> Check | None:
    """Find two versions of PySpark in one folder: the Spark provider brings ``pyspark-client``.

    pip writes both packages to the same place, and asks nobody whether they are the same.
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
    return Check(
        SPARK,
        Status.WARNING,
        f"{spark.home} has files of pyspark and pyspark-client in the versions "
        f"{' and '.join(sorted(versions))}.",
        "Install both in one version: pip install --force-reinstall --no-deps "
        f"pyspark=={one} pyspark-client=={one}",
    )


def _java_alone(env: Mapping[str, str]) -> Check:
    found = commands.find_java(env)
    if found is None:
        return Check(
            JAVA,
            Status.FAILED,
            "There is no Java to run Spark with.",
            "Install Java 17 or 21 and set JAVA_HOME to it, or put it on PATH.",
        )
    version = commands.java_feature_version(found)
    if version is None:
        return Check(
            JAVA,
            Status.FAILED,
            f"{found} does not run, or is no Java.",
            "Set JAVA_HOME to an installed Java.",
        )
    return Check(JAVA, Status.OK, f"{found} is Java {version}.")


def _java(env: Mapping[str, str], spark: SparkDistribution) -> Check:
    if error := commands.java_refusal(env, spark):
        return failed(JAVA, error)
    return _java_alone(env)


def _listener(
    settings: Settings,
    spark: SparkDistribution,
    spark_binary: str,
    defaults: Mapping[str, str],
    env: Mapping[str, str],
) -> tuple[list[Check], Machine | None]:
    """Check that a listener would be added, or that the one that Spark has will do."""
    submission = Submission(file_properties=defaults)
    jar: tuple[str, ...] = ()
    cache = fetching.cache_folder(env)
    try:
        refuse_connect(submission, "", env)
        found = listener_selection.job_listeners(submission, spark)
        own = listener_selection.only_listener(found, submission, spark, cache)
        if own is not None:
            text = f"Spark has the listener {own.name} ({own.source}); none is added."
            checked = Check(LISTENER, Status.OK, text)
        elif _is_fetched_later(settings, spark, env):
            return [_FETCHED_LATER], None
        else:
            name = listener_selection.jar_for(spark, settings.listener_jar, env, is_remote=True)
            path = submitted_files.local_path(name)
            if path is None:
                text = f"It is {name}, not a file of this worker; so it is not looked at."
                checked = Check(LISTENER, Status.OK, text)
                if (
                    submitted_files.scheme(name) == "local"
                ):  # a driver of this worker cannot have it
                    return [checked], None
            else:
                checked = _checked_jar(path, spark, in_cache=settings.listener_jar is None)
            jar = (name,)
    except (exceptions.ListenerError, OSError) as error:
        return [failed(LISTENER, error)], None
    usable, errors = listener_selection.checked_extensions(settings.listener_extensions, own, cache)
    checks = [checked, *(failed(EXTENSIONS, error) for error in errors)]
    if checked.status is Status.FAILED:
        return checks, None
    return checks, Machine(spark, spark_binary, defaults, (*jar, *usable))


_FETCHED_LATER = Check(
    LISTENER,
    Status.WARNING,
    "There is no whole one in the cache; the first task fetches it, and waits for that.",
    "Run `sparklineage fetch-listener` when the worker is made.",
)


def _is_fetched_later(settings: Settings, spark: SparkDistribution, env: Mapping[str, str]) -> bool:
    may = settings.fetch_listener and settings.listener_jar is None
    return may and not fetching.is_cached(spark.scala, env)


def _checked_jar(jar: Path, spark: SparkDistribution, *, in_cache: bool) -> Check:
    version = listener.read_jar(jar).identity.version
    if version != listener.VERSION:
        return Check(
            LISTENER,
            Status.WARNING,
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
    return Check(LISTENER, Status.OK, f"{jar} is the listener {version}, and complete.")


def check_captures(location: Path) -> Check:
    """Make a capture bundle as a task does, and remove it."""
    is_new = not location.exists()
    try:
        bundle = capture.create(location, Manifest(application_run_id="doctor"))
    except exceptions.CaptureError as error:
        return failed(CAPTURES, error)
    bundle.remove()
    if is_new:
        with suppress(OSError):  # a task has begun meanwhile
            location.rmdir()
        return Check(CAPTURES, Status.OK, f"{location} can be made for the first task.")
    if location.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return Check(
            CAPTURES,
            Status.WARNING,
            f"Others can list {location}: they see the names of DAGs and tasks, though not what "
            "was captured.",
            f"chmod 700 {location}",
        )
    return Check(CAPTURES, Status.OK, f"{location} is writable, and private.")


def with_job(machine: Machine, submission: Submission) -> Submission:
    """Give a submission what Spark's own file says."""
    return replace(submission, file_properties=machine.defaults)
