"""Which Spark will run, and which listener jar goes with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import class_path, distribution, fetching, jars
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import VERSION, artifact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def spark_of(
    spark_binary: str, env: Mapping[str, str] = os.environ, declared: tuple[str, str] | None = None
) -> SparkDistribution:
    """Find out which Spark a ``spark-submit`` is: as declared, else by its files, else ask it.

    :param env: environment that it would be submitted with
    :param declared: versions of Spark and Scala (:func:`.distribution.declared`)
    :raise ListenerError: if there is none, or its version is not known; names the fix
    """
    by_files = distribution.find(spark_binary, env)
    if declared is not None:
        return SparkDistribution(by_files.home if by_files else None, *declared)
    found = by_files or _asked(spark_binary, env)
    if found is None:
        problem = f"There is no {spark_binary} on the worker's PATH."
        fix = (
            "Install Spark there (`pip install 'airflow-provider-sparklineage[pyspark]'` brings "
            "one), or set SPARK_HOME and PATH."
        )
        raise ListenerError(problem, fix)
    return found


def _asked(spark_binary: str, env: Mapping[str, str]) -> SparkDistribution | None:
    from airflow_provider_sparklineage.spark.submit import version_output

    return version_output.ask(spark_binary, env, fetching.cache_folder(env))


def jar_for(
    spark: SparkDistribution, configured: Path | None, env: Mapping[str, str] = os.environ
) -> Path:
    """Find the listener jar to add for a Spark that has none of its own.

    That is the configured one, else the one in the cache.

    :raise ListenerError: if there is none, or none that works; names the fix
    """
    if configured is None and not fetching.is_cached(spark.scala, env):
        problem = (
            f"There is no OpenLineage listener for Spark {spark.version} (Scala {spark.scala}) in "
            f"the cache {fetching.cache_folder(env)}."
        )
        fix = "Run `sparklineage fetch-listener` on the worker, or set [sparklineage] listener_jar."
        raise ListenerError(problem, fix)
    jar = configured if configured is not None else fetching.cached(spark.scala, env)
    class_path.require_fit(jar.name, jars.read(jar).identity, spark)
    return jar


def fetch_for(
    spark: SparkDistribution,
    spark_binary: str,
    env: Mapping[str, str] = os.environ,
    *,
    location: str | None = None,
    repositories: str | None = None,
    progress: fetching.Progress = lambda _: None,
) -> Path:
    """Fetch the listener for a Spark into the cache, at once if it is there.

    :param spark_binary: whose resolver is used where no ``location`` is given
    :param location: path or URL of the jar
    :param repositories: further repositories for the resolver
    :param progress: takes lines for the user who waits
    :raise ListenerError: if it cannot be had; names the fix
    """
    if fetching.is_cached(spark.scala, env):
        return fetching.cached(spark.scala, env)
    # Imported here, because a job waits for what is imported above.
    from airflow_provider_sparklineage.spark.submit import java, resolver

    progress(f"Fetching {artifact(spark.scala)} {VERSION} for Spark {spark.version} …")
    if location is not None:
        given = fetching.from_location(location, progress)
        return fetching.fetch(spark.scala, given, env, progress)
    here = spark_of(spark_binary, env)
    if refusal := java.refusal(env, here):
        problem = f"The listener cannot be fetched with Spark's resolver. {refusal.problem}"
        raise ListenerError(problem, refusal.fix)
    fetcher = resolver.from_spark(
        spark.scala,
        _command(here, spark_binary),
        here.defaults(env) if here.home or env.get("SPARK_CONF_DIR") else {},
        repositories=repositories,
        env=env,
        progress=progress,
    )
    return fetching.fetch(spark.scala, fetcher, env, progress)


def _command(spark: SparkDistribution, spark_binary: str) -> str:
    """Give a path for ``spark-submit``: the one on PATH may be somewhere else than SPARK_HOME."""
    if spark.home and (found := spark.home / "bin" / "spark-submit").is_file():
        return str(found)
    return spark_binary
