"""Which Spark will run, and which listener jar goes with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import (
    class_path,
    distribution,
    fetching,
    jars,
    listener,
    plain_paths,
    remembered,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import VERSION, Identity, artifact

if TYPE_CHECKING:
    from collections.abc import Mapping


def spark_of(
    spark_binary: str,
    env: Mapping[str, str] = os.environ,
    declared: tuple[str, str] | None = None,
    *,
    in_task: bool = False,
) -> SparkDistribution:
    """Find out which Spark a ``spark-submit`` is: as declared, else by its files, else ask it.

    :param env: environment that it would be submitted with
    :param declared: versions of Spark and Scala (:func:`.distribution.declared`)
    :param in_task: whether a job waits: then not for long, nor for what has just given no answer
    :raise ListenerError: if there is none, or its version is not known; names the fix
    """
    by_files = distribution.find(spark_binary, env)
    if declared is not None:
        return SparkDistribution(by_files.home if by_files else None, *declared)
    found = by_files or _asked(spark_binary, env, in_task=in_task)
    if found is None:
        problem = f"There is no {spark_binary} on the worker's PATH."
        fix = (
            "Install Spark there (`pip install 'airflow-provider-sparklineage[pyspark]'` brings "
            "one), or set SPARK_HOME and PATH."
        )
        raise ListenerError(problem, fix)
    return found


def _asked(spark_binary: str, env: Mapping[str, str], *, in_task: bool) -> SparkDistribution | None:
    from airflow_provider_sparklineage.spark.submit import version_output

    return version_output.ask(spark_binary, env, fetching.cache_folder(env), in_task=in_task)


def jar_for(
    spark: SparkDistribution,
    configured: Path | str | None,
    env: Mapping[str, str] = os.environ,
    *,
    is_remote: bool = False,
) -> str:
    """Find the listener jar to add for a Spark that has none of its own.

    That is the configured one, else the one in the cache.

    :param configured: path on this worker, or a URL, of which only the name is looked at
    :param is_remote: whether the driver runs elsewhere; ``local:`` is a path there
    :return: the path, or the URL
    :raise ListenerError: if there is none, or none that works; names the fix
    """
    if configured is None:
        return str(_cached(spark, env).absolute())
    if isinstance(configured, str):
        if is_remote or plain_paths.scheme(configured) != "local":
            named = listener.of_name(configured.rpartition("/")[2])
            class_path.require_fit(configured, named or Identity(None, None), spark)
            return configured
        configured = Path(unquote(urlsplit(configured).path))
    class_path.require_fit(configured.name, jars.read(configured).identity, spark)
    class_path.require_whole(configured, fetching.cache_folder(env))
    return str(configured.absolute())


def _cached(spark: SparkDistribution, env: Mapping[str, str]) -> Path:
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
    # It is not read to find out which one it is: its digest says that.
    class_path.require_fit(jar.name, Identity(VERSION, spark.scala), spark)
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
    """Fetch the listener for a Spark into the cache, at once if it is there.

    :param spark_binary: whose resolver is used where no ``location`` is given
    :param location: path or URL of the jar
    :param repositories: further repositories for the resolver
    :param progress: takes lines for the user who waits
    :param in_task: whether a job waits: then not for long, nor for what has just failed
    :raise ListenerError: if it cannot be had; names the fix
    """
    if fetching.is_cached(spark.scala, env):
        return fetching.cached(spark.scala, env)
    cache = fetching.cache_folder(env)
    failed = f"fetch of {artifact(spark.scala)} {VERSION} into {cache}"
    if in_task and (before := remembered.recall(cache, failed, _Failed, remembered.FAILURE_S)):
        problem = f"The listener could not be fetched a few minutes ago. {before.problem}"
        raise ListenerError(problem, before.fix)
    limit_s = fetching.TASK_LIMIT_S if in_task else fetching.LIMIT_S
    progress(f"Fetching {artifact(spark.scala)} {VERSION} for Spark {spark.version} …")
    if location is not None:
        fetcher = fetching.from_location(location, progress, limit_s=limit_s)
    else:
        here = spark_of(spark_binary, env, in_task=in_task)
        fetcher = _resolver(spark.scala, here, spark_binary, env, repositories, limit_s, progress)
    try:
        return fetching.fetch(spark.scala, fetcher, env, progress, limit_s=limit_s)
    except ListenerError as error:
        # Who waited for another process that failed does not know why; that one has kept it.
        if remembered.recall(cache, failed, _Failed, remembered.FAILURE_S) is None:
            remembered.remember(cache, failed, _Failed(error.problem, error.fix))
        raise


class _Failed(msgspec.Struct, frozen=True):
    """Why there was no listener: the sentences of a :exc:`ListenerError`."""

    problem: str
    fix: str


def _resolver(
    scala: str,
    here: SparkDistribution,
    spark_binary: str,
    env: Mapping[str, str],
    repositories: str | None,
    limit_s: float,
    progress: fetching.Progress,
) -> fetching.Fetcher:
    # Imported here, because a job waits for what is imported above.
    from airflow_provider_sparklineage.spark.submit import java, resolver

    if refusal := java.refusal(env, here):
        problem = f"The listener cannot be fetched with Spark's resolver. {refusal.problem}"
        raise ListenerError(problem, refusal.fix)
    return resolver.from_spark(
        scala,
        _command(here, spark_binary),
        here.defaults(env) if here.home or env.get("SPARK_CONF_DIR") else {},
        repositories=repositories,
        env=env,
        timeout_s=limit_s,
        progress=progress,
    )


def _command(spark: SparkDistribution, spark_binary: str) -> str:
    """Give a path for ``spark-submit``: the one on PATH may be somewhere else than SPARK_HOME."""
    if spark.home and (found := spark.home / "bin" / "spark-submit").is_file():
        return str(found)
    return spark_binary
