"""Listeners and connectors that a job would have without us, and whether they go together.

There is one listener in a driver. If the user brings one it is that; two, or one that does not fit
its Spark, end the SparkContext. One on the driver's own class path is loaded by another loader than
connectors in ``--jars`` (Delta, Iceberg), does not see their classes, and leaves their datasets out
silently.
"""

from __future__ import annotations

import re
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import jars, listener, plain_paths, verification
from airflow_provider_sparklineage.spark.submit.listener import Identity
from airflow_provider_sparklineage.spark.submit.plain_paths import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.submission import Submission


class ListenerSource(StrEnum):
    """Where a listener would come from."""

    JARS = "--jars"
    PACKAGES = "--packages"
    DRIVER = "the driver's class path"
    SPARK = "Spark's own jars"

    @property
    def is_of_jvm(self) -> bool:
        """Whether the JVM's own loader has it, which does not see what ``--jars`` brings."""
        return self in (ListenerSource.DRIVER, ListenerSource.SPARK)


class JobListener(NamedTuple):
    """A listener that the job has.

    :param name: path or coordinate, as the user wrote it
    :param path: where it is on this machine; None if it is on another one
    """

    source: ListenerSource
    name: str
    identity: Identity
    path: Path | None = None


# Connectors whose classes the listener looks into; a JDBC driver, for one, it does not.
_CONNECTOR = (
    r"(?:^|[/_:-])(delta-(?:core|spark|iceberg|hudi)|iceberg-spark|hudi-spark|paimon-spark|"
    r"spark(?:-\d[\d.]*)?-bigquery|spark-snowflake|spark-mssql|spark-redshift|spark-cassandra|"
    r"azure-cosmos-spark|kafka-clients|spark-sql-kafka)"
)


def listeners(submission: Submission, distribution: SparkDistribution) -> tuple[JobListener, ...]:
    """Find all listeners that a submission would have, without reading more than their names.

    A jar of another name is looked into if it is on this machine: people rename jars.
    """
    found = [*_in_files(ListenerSource.JARS, submission.listed_jars())]
    found += _in_files(ListenerSource.DRIVER, _class_path(submission.class_path()))
    for package in submission.listed_packages():
        if (identity := listener.of_coordinate(package)) is not None:
            found.append(JobListener(ListenerSource.PACKAGES, package, identity))
    for name in distribution.own_jars:
        if distribution.home and (identity := listener.of_name(name)) is not None:
            jar = distribution.home / "jars" / name
            found.append(JobListener(ListenerSource.SPARK, str(jar), identity, jar))
    return tuple({entry.name: entry for entry in reversed(found)}.values())


def only_listener(
    found: tuple[JobListener, ...],
    submission: Submission,
    distribution: SparkDistribution,
    cache: Path,
) -> JobListener | None:
    """Give the only listener among those found, None if there is none.

    :param cache: where it is kept that a jar is whole
    :raise ListenerError: if there are several, it does not fit this Spark, it is damaged, or it
        would not see connectors of the job; names the fix
    """
    if not found:
        return None
    if len(found) > 1:
        named = " and ".join(f"{entry.name} ({entry.source})" for entry in found)
        problem = (
            f"The job has {len(found)} OpenLineage listeners, {named}, and its SparkContext could "
            "end for that."
        )
        fix = "Leave one, or none, and this package adds its own."
        raise ListenerError(problem, fix)
    [only] = found
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
    identity = only.identity
    if only.path is not None:
        identity = jars.read(only.path).identity
    require_fit(only.name, identity, distribution)
    if only.path is not None:
        require_whole(only.path, cache)
    return only


def require_fit(name: str, identity: Identity, distribution: SparkDistribution) -> None:
    """Refuse a listener that would end the SparkContext.

    :raise ListenerError: names the fix
    """
    error = listener.misfit(name, identity, distribution.version, distribution.scala)
    if error is not None:
        raise error


def require_whole(jar: Path, cache: Path) -> None:
    """Refuse a listener with a damaged class, which would end the SparkContext when it is loaded.

    :param cache: where it is kept that a jar is whole
    :raise ListenerError: names the fix
    """
    if problem := _damage(jar, cache):
        problem = f"The listener jar {jar} is damaged ({problem})."
        fix = "Copy it there again, or `sparklineage fetch-listener` and name no jar."
        raise ListenerError(problem, fix)


def _damage(jar: Path, cache: Path) -> str:
    try:
        return verification.verified(jar, cache).problem
    except OSError as error:
        return error.strerror or str(error)


def extensions(
    given: Iterable[str], own: JobListener | None, cache: Path, *, is_remote: bool = False
) -> tuple[tuple[str, ...], tuple[ListenerError, ...]]:
    """Check which jars that extend the listener can be added to ``--jars``.

    A jar that is not there would end the job, and one that is a listener would be a second one.

    :param given: paths on this machine, or URLs that Spark knows
    :param own: the job's own listener, if it has one
    :param cache: where it is kept that a jar is whole
    :param is_remote: whether the driver runs elsewhere; ``local:`` is a path there
    :return: those that can, and for each of the others an error
    """
    usable, errors = [], []
    for name in given:
        found = _extension_problem(name, own, cache, is_remote=is_remote)
        if found is None:
            usable.append(name)
        else:
            problem, fix = found
            errors.append(ListenerError(f"The listener's extension {name} {problem}.", fix))
    return tuple(usable), tuple(errors)


def _extension_problem(
    name: str, own: JobListener | None, cache: Path, *, is_remote: bool
) -> tuple[str, str] | None:
    if own is not None and own.source.is_of_jvm:
        problem = f"would not be seen by a listener on {own.source}"
        return problem, f"Take {own.name} away from there."
    if scrub(name) != name:  # what is added is an argument, which every user of the machine reads
        return "has a user or a key in its URL", "Put the jar on the worker and give its path."
    is_there = is_remote and plain_paths.scheme(name) == "local"
    path = None if is_there else local_path(name)
    if path is None:
        return _url_problem(name, is_there=is_there)
    if jars.holds_listener(path):
        return "is a listener itself", "Give it as listener_jar."
    if not zipfile.is_zipfile(path):
        return "is no readable jar", "Build it again."
    if problem := _damage(path, cache):
        return f"is damaged ({problem})", "Copy it there again."
    return None


def _url_problem(name: str, *, is_there: bool) -> tuple[str, str] | None:
    if not is_there and plain_paths.scheme(name) in ("", "file", "local"):
        return "does not exist", "Correct listener_extensions."
    if not plain_paths.is_plain_url(name):
        return "is no URL that Spark takes as it is", "Write what is not ASCII, and commas, as %2C."
    return None


def _connectors(submission: Submission) -> list[str]:
    given = (*submission.listed_jars(), *submission.listed_packages())
    return [name for name in given if re.search(_CONNECTOR, name)]


def _in_files(source: ListenerSource, names: Iterable[str]) -> Iterable[JobListener]:
    for name in names:
        path = local_path(name)
        identity = listener.of_name(name.rpartition("/")[2])
        if identity is not None:
            yield JobListener(source, name, identity, path)
        elif path is not None and path.suffix == ".jar" and jars.holds_listener(path):
            yield JobListener(source, name, Identity(None, None), path)


def _class_path(text: str | None) -> Iterable[str]:
    for entry in (text or "").split(":"):
        if entry.endswith("/*"):
            yield from (str(jar) for jar in sorted(Path(entry[:-1]).glob("*.jar")))
        elif entry:
            yield entry
