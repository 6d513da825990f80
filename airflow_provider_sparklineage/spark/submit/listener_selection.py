"""Selection of a job's listener: the job's own, the configured jar, or the jar in the cache.

A driver must have only one listener. So a job's own listener is used if it has one; two listeners,
or a listener that does not fit the Spark, would end the SparkContext. A listener on the driver's
own class path is loaded by another class loader than the connectors in ``--jars`` (Delta, Iceberg).
Such a listener does not see the connectors' classes, and silently leaves out their datasets. A job
without a listener gets the configured jar, or else the jar in the cache.
"""

from __future__ import annotations

import os
import re
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.credentials import logger, scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError, SparkLineageError
from airflow_provider_sparklineage.spark.submit import (
    distribution,
    fetching,
    listener,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import VERSION, Identity, artifact
from airflow_provider_sparklineage.spark.submit.submitted_files import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions
    from airflow_provider_sparklineage.spark.submit.submission import Submission


log = logger(__name__)


class ListenerSource(StrEnum):
    """The place from which a job gets a listener."""

    JARS = "--jars"
    PACKAGES = "--packages"
    DRIVER = "the driver's class path"
    SPARK = "Spark's own jars"
    SERVICE = "the service's Spark"
    """A service has its jars and those of the job on one class path."""

    @property
    def is_of_jvm(self) -> bool:
        """Whether the JVM's own class loader loads the listener.

        Such a listener sees no class of ``--jars``.
        """
        return self in (ListenerSource.DRIVER, ListenerSource.SPARK)


class JobListener(NamedTuple):
    """A listener that the job has without this package.

    :param source: the place from which the job gets the listener
    :param name: the path or coordinate, as the user wrote it
    :param identity: the versions of the listener, as far as they are known
    :param path: the path of the jar; None if this machine does not have the jar, as for a Maven
        package
    """

    source: ListenerSource
    name: str
    identity: Identity
    path: Path | None = None


# The connectors whose classes the listener uses; JDBC drivers, for example, are not among them.
_CONNECTOR = (
    r"(?:^|[/_:-])(delta-(?:core|spark|iceberg|hudi)|iceberg-spark|hudi-spark|paimon-spark|"
    r"spark(?:-\d[\d.]*)?-bigquery|spark-snowflake|spark-mssql|spark-redshift|spark-cassandra|"
    r"azure-cosmos-spark|kafka-clients|spark-sql-kafka)"
)


def job_listeners(
    submission: Submission, distribution: SparkDistribution, of_service: str = ""
) -> tuple[JobListener, ...]:
    """Find all listeners that a submission would have.

    A listener is recognised by the name of its jar or Maven artifact. If this machine has a jar of
    another name in ``--jars`` or on the driver's class path, the content of the jar is searched,
    because people rename jars.

    :param distribution: the Spark whose own jars may have a listener
    :param of_service: the name of the listener that the service's Spark brings; empty for none
    :return: each listener once
    """
    listeners = [*_in_files(ListenerSource.JARS, submission.listed_jars())]
    listeners += _in_files(ListenerSource.DRIVER, _class_path_entries(submission.class_path()))
    for package in submission.listed_packages():
        if (identity := listener.identity_of_coordinate(package)) is not None:
            listeners.append(JobListener(ListenerSource.PACKAGES, package, identity))
    if of_service:
        unknown = Identity(None, None)
        listeners.append(JobListener(ListenerSource.SERVICE, of_service, unknown))
    for jar in distribution.own_jars:
        if (identity := listener.identity_of_name(jar.name)) is not None:
            listeners.append(JobListener(ListenerSource.SPARK, str(jar), identity, jar))
    return tuple({entry.name: entry for entry in reversed(listeners)}.values())


def only_listener(
    listeners: tuple[JobListener, ...],
    submission: Submission,
    distribution: SparkDistribution,
) -> JobListener | None:
    """Give the listener that a job has; check that there is only one, and that it works.

    :param listeners: the listeners that the job has
    :param distribution: the Spark that the listener has to fit
    :return: None if the job has no listener
    :raise ListenerError: if there are several listeners, or the only one does not fit this Spark,
        is damaged, or would not see connectors of the job; the message names the fix
    """
    if not listeners:
        return None
    if len(listeners) > 1:
        named = " and ".join(f"{entry.name} ({entry.source})" for entry in listeners)
        problem = (
            f"The job has {len(listeners)} OpenLineage listeners, {named}, and its SparkContext "
            "could end for that."
        )
        fix = "Leave one, or none, and this package adds its own."
        raise ListenerError(problem, fix)
    [only] = listeners
    if only.source.is_of_jvm and (connectors := _connectors(submission)):
        problem = (
            f"The listener {only.name} is on {only.source} and would not see {connectors[0]} in "
            "--jars or --packages: its datasets would silently be missing."
        )
        fix = (
            "Put both in the same place, or take the listener away and this package adds its own "
            "to --jars."
        )
        raise ListenerError(problem, fix)
    identity = only.identity if only.path is None else listener.read_jar(only.path)
    listener.require_fit(only.name, identity, distribution.version, distribution.scala)
    return only


def checked_extensions(
    names: Iterable[str],
    own: JobListener | None,
    entry: Callable[[str], str] = str,
    *,
    is_remote: bool = False,
) -> tuple[tuple[str, ...], tuple[SparkLineageError, ...]]:
    """Check which jars that extend the listener can be added to ``--jars``.

    A jar that does not exist would end the job, and a jar that is a listener itself would be a
    second listener.

    :param names: the jars, as paths on this machine or as URLs that Spark can read
    :param own: the job's own listener; None if it has none
    :param entry: a function that gives the entry of ``--jars`` for a jar, or raises a
        SparkLineageError if the jar cannot be added
    :param is_remote: whether the driver runs on another machine, so that ``local:`` means a path on
        that machine
    :return: the entries of the jars that can be added, and an error for each other jar
    """
    entries: list[str] = []
    errors: list[SparkLineageError] = []
    for name in names:
        if problem_and_fix := _extension_problem(name, own, is_remote=is_remote):
            problem, fix = problem_and_fix
            errors.append(ListenerError(f"The listener's extension {name} {problem}.", fix))
            continue
        try:
            entries.append(entry(name))
        except SparkLineageError as error:
            errors.append(error)
    return tuple(entries), tuple(errors)


def _extension_problem(
    name: str, own: JobListener | None, *, is_remote: bool
) -> tuple[str, str] | None:
    if own is not None and own.source.is_of_jvm:
        problem = f"would not be seen by a listener on {own.source}"
        return problem, f"Take {own.name} away from there."
    if scrub(name) != name:  # every user of the machine could read the URL in the arguments
        return "has a user or a key in its URL", "Put the jar on the worker and give its path."
    is_there = is_remote and submitted_files.scheme(name) == "local"
    path = None if is_there else local_path(name)
    if path is None:
        return _url_problem(name, is_there=is_there)
    if listener.holds_listener(path):
        return "is a listener itself", "Give it as listener_jar."
    if not zipfile.is_zipfile(path):
        return "is no readable jar", "Build it again."
    if problem := listener.damage(path):
        return f"is damaged ({problem})", "Copy it there again."
    return None


def _url_problem(name: str, *, is_there: bool) -> tuple[str, str] | None:
    if not is_there and submitted_files.scheme(name) in ("", "file", "local"):
        return "does not exist", "Correct listener_extensions."
    if not submitted_files.is_plain_url(name):
        return (
            "is no URL that Spark takes as it is",
            "Write commas, and characters that are not ASCII, as %2C.",
        )
    return None


def _connectors(submission: Submission) -> list[str]:
    entries = (*submission.listed_jars(), *submission.listed_packages())
    return [name for name in entries if re.search(_CONNECTOR, name)]


def _in_files(source: ListenerSource, names: Iterable[str]) -> Iterable[JobListener]:
    for name in names:
        path = local_path(name)
        identity = listener.identity_of_name(name.rpartition("/")[2])
        if identity is not None:
            yield JobListener(source, name, identity, path)
        elif path is not None and path.suffix == ".jar" and listener.holds_listener(path):
            yield JobListener(source, name, Identity(None, None), path)


def _class_path_entries(text: str | None) -> Iterable[str]:
    for entry in (text or "").split(":"):
        if entry.endswith("/*"):
            yield from (str(jar) for jar in sorted(Path(entry[:-1]).glob("*.jar")))
        elif entry:
            yield entry


def spark_of(
    spark_binary: str,
    env: Mapping[str, str] = os.environ,
    declared: tuple[str, str] | None = None,
    *,
    in_task: bool = False,
) -> SparkDistribution:
    """Find the Spark to which a ``spark-submit`` belongs.

    The versions are the declared ones, or else are read from Spark's files, or else are printed by
    ``spark-submit --version``.

    :param spark_binary: the command, a path or a name on PATH
    :param env: the environment with which the job would be submitted
    :param declared: the declared versions of Spark and Scala (:func:`.distribution.declared`); None
        if none are declared
    :param in_task: whether a job waits; then the time limit is shorter
    :raise ListenerError: if there is no Spark, or its version is not known; the message names the
        fix
    """
    by_files = distribution.find(spark_binary, env)
    if declared is not None:
        return SparkDistribution(by_files.home if by_files else None, *declared)
    if by_files is not None:
        return by_files
    # Imported here, because a job waits for the imports of this module.
    from airflow_provider_sparklineage.spark.submit import commands

    printed = commands.ask_version(spark_binary, env, in_task=in_task)
    if printed is None:
        problem = f"There is no {spark_binary} on the worker's PATH."
        fix = (
            "Install Spark there (`pip install 'airflow-provider-sparklineage[pyspark]'` brings "
            "one), or set SPARK_HOME and PATH."
        )
        raise ListenerError(problem, fix)
    return printed


def jar_in_task(
    spark: SparkDistribution,
    spark_binary: str,
    options: CaptureOptions,
    env: Mapping[str, str],
    *,
    is_remote: bool = False,
) -> str:
    """Find the listener's jar while a job waits; fetch it first if the options allow it.

    :param spark: the Spark that will get the listener
    :param spark_binary: the command whose resolver is used to fetch the jar
    :param options: the settings, of which ``fetch_listener`` and ``listener_jar`` are looked at
    :param env: the environment with which the job would be submitted
    :param is_remote: whether the driver runs on another machine, see :func:`jar_for`
    :return: the path or the URL of the jar
    :raise ListenerError: if there is no jar, or the jar would not work; the message names the fix
    """
    if options.fetch_listener and options.listener_jar is None:
        jar = fetch_for(spark, spark_binary, env, progress=log.info, in_task=True)
        return str(jar.absolute())
    return jar_for(spark, options.listener_jar, env, is_remote=is_remote)


def jar_for(
    spark: SparkDistribution,
    configured: Path | str | None,
    env: Mapping[str, str] = os.environ,
    *,
    is_remote: bool = False,
) -> str:
    """Find the listener's jar for a job without a listener.

    This is the configured jar or, if none is configured, the jar in the cache.

    :param spark: the Spark that will get the listener
    :param configured: the path of the configured jar on this worker, or a URL, of which only the
        file name is checked; None if no jar is configured
    :param env: the environment with which the job would be submitted; it names the folder of the
        cache
    :param is_remote: whether the driver runs on another machine, so that ``local:`` means a path on
        that machine
    :return: the path or the URL of the jar
    :raise ListenerError: if there is no jar, or the jar would not work; the message names the fix
    """
    if configured is None:
        return str(_cached_jar(spark, env).absolute())
    if isinstance(configured, str):
        if is_remote or submitted_files.scheme(configured) != "local":
            named = listener.identity_of_name(configured.rpartition("/")[2])
            identity = named or Identity(None, None)
            listener.require_fit(configured, identity, spark.version, spark.scala)
            return configured
        configured = Path(unquote(urlsplit(configured).path))
    identity = listener.read_jar(configured)
    listener.require_fit(configured.name, identity, spark.version, spark.scala)
    return str(configured.absolute())


def _cached_jar(spark: SparkDistribution, env: Mapping[str, str]) -> Path:
    jar = fetching.cached(spark.scala, env)
    if not fetching.is_cached(spark.scala, env):
        problem = (
            f"There is no OpenLineage listener for Spark {spark.version} (Scala {spark.scala}) in "
            f"the cache {jar.parent}."
        )
        fix = "Run `sparklineage fetch-listener` on the worker, or set [sparklineage] listener_jar."
        if jar.exists() and (damage := fetching.cache_problem(spark.scala, env)):
            problem = f"The listener {jar} is damaged: it {damage}."
            fix = "Run `sparklineage fetch-listener` on the worker, which replaces it."
        raise ListenerError(problem, fix)
    return _fitting(jar, spark)


def _fitting(jar: Path, spark: SparkDistribution) -> Path:
    """Check that a jar with the pinned digest fits a Spark; return its path.

    The digest shows the version, so the jar is not opened.

    :raise ListenerError: if the jar does not fit
    """
    identity = Identity(VERSION, spark.scala)
    listener.require_fit(jar.name, identity, spark.version, spark.scala)
    return jar


def fetch_for(
    spark: SparkDistribution,
    spark_binary: str,
    env: Mapping[str, str] = os.environ,
    *,
    location: str | None = None,
    repositories: str | None = None,
    progress: fetching.Progress = lambda _: None,
    in_task: bool = False,
) -> Path:
    """Fetch the listener for a Spark into the cache, unless the cache has it already.

    :param spark: the Spark that will get the listener
    :param spark_binary: the command whose resolver is used if ``location`` is None
    :param env: the environment with which the job would be submitted; it names the folder of the
        cache
    :param location: the path or URL of the jar; None for Spark's own resolver
    :param repositories: further repositories for the resolver, separated by commas; None for no
        others
    :param progress: is called with lines of text for the user who waits
    :param in_task: whether a job waits; then the time limit is shorter, and a fetch that failed a
        few minutes ago is not tried again
    :return: the path of the jar in the cache
    :raise ListenerError: if no listener fits the Spark, there is no file at the location, or the
        jar cannot be fetched; the message names the fix
    """
    _fitting(fetching.cached(spark.scala, env), spark)
    if location is not None:
        fetching.check_location(location)
    if fetching.is_cached(spark.scala, env):
        return fetching.cached(spark.scala, env)
    if in_task and (failure := fetching.recent_failure(spark.scala, env)):
        problem = f"The listener could not be fetched a few minutes ago. {failure.problem}"
        raise ListenerError(problem, failure.fix)
    limit_s = fetching.TASK_LIMIT_S if in_task else fetching.LIMIT_S
    progress(f"Fetching {artifact(spark.scala)} {VERSION} for Spark {spark.version} …")
    if location is not None:
        fetcher = fetching.from_location(location, progress, limit_s=limit_s)
    else:
        # Imported here, because a job waits for the imports of this module.
        from airflow_provider_sparklineage.spark.submit import commands

        here = spark_of(spark_binary, env, in_task=in_task)
        if refusal := commands.java_refusal(env, here):
            problem = f"The listener cannot be fetched with Spark's resolver. {refusal.problem}"
            raise ListenerError(problem, refusal.fix)
        fetcher = commands.from_spark(
            spark.scala,
            here.submit_command(spark_binary),
            distribution.defaults(here.home, env) if here.home or env.get("SPARK_CONF_DIR") else {},
            repositories=repositories,
            env=env,
            timeout_s=limit_s,
            progress=progress,
        )
    try:
        return fetching.fetch(spark.scala, fetcher, env, progress, limit_s=limit_s)
    except fetching.BusyCacheError:  # no failure: the next task may find the jar, or fetch it
        raise
    except ListenerError as error:
        # A process that waited for another process's fetch does not know why that fetch failed. The
        # other process has noted the reason already, so it is not replaced.
        if fetching.recent_failure(spark.scala, env) is None:
            fetching.note_failure(spark.scala, env, error)
        raise
