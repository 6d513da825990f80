"""Which OpenLineage listener goes with which Spark.

A listener that does not fit throws in Spark's listener thread and ends the user's SparkContext, so
what is not known to fit is not injected.
"""

from __future__ import annotations

import re

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen

LISTENER_CLASS = "io.openlineage.spark.agent.OpenLineageSparkListener"
GROUP = "io.openlineage"
VERSION = "1.53.0"
"""The listener that this package is tested with, and the first that Spark 4.2 needs."""


class Pin(Frozen, frozen=True):
    """What a published jar of :data:`VERSION` is known by: SHA-256 digest, and size in bytes."""

    sha256: str
    size: int


PINS = {
    "2.12": Pin("9fe28ee2e5b2cb535cd51b6572394bddeb684bf0c58650a698cf7724ce62d94d", 43_037_167),
    "2.13": Pin("5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f", 43_037_532),
}
"""The listener's jars by Scala version; there are no others."""

JAR_NAME = re.compile(
    r"(?:io\.openlineage_)?openlineage-spark(?:_(?P<scala>\d\.\d+))?-(?P<version>\d[\w.-]*)\.jar"
)
_COORDINATE = re.compile(rf"{GROUP}:openlineage-spark(?:_(?P<scala>\d\.\d+))?:(?P<version>[^:]+)")

# Of each Spark from which on, the first listener that does not end its SparkContext
# (OpenLineage's issue 3931 and pull request 4779).
_FIRST_LISTENERS = (((4, 2), "1.53.0"), ((4, 0), "1.37.0"))
NEWEST_SPARK = (4, 2)
"""The newest Spark that this package is tested with."""
_FIRST_SPARK = (3, 2)  # OpenLineage's own matrix begins there


class Identity(Frozen, frozen=True):
    """Version and Scala version that a listener declares; None where it does not."""

    version: str | None
    scala: str | None


def artifact(scala: str) -> str:
    """Name of the listener's artifact for a Scala version."""
    return f"openlineage-spark_{scala}"


def coordinate(scala: str, version: str = VERSION) -> str:
    """Maven coordinate of a listener, as ``--packages`` takes it."""
    return f"{GROUP}:{artifact(scala)}:{version}"


def of_coordinate(text: str) -> Identity | None:
    """Find which listener a Maven coordinate names; None if it names something else."""
    match = _COORDINATE.fullmatch(text.strip())
    # Up to 1.8.0 there was one artifact without a suffix, for Scala 2.12.
    return Identity(match["version"], match["scala"] or "2.12") if match else None


def of_name(name: str) -> Identity | None:
    """Find which listener a jar's file name claims; None if it claims to be something else."""
    match = JAR_NAME.fullmatch(name)
    return Identity(match["version"], match["scala"]) if match else None


def numbers(version: str) -> tuple[int, ...]:
    """Give the leading numbers of a version: (4, 0, 1) of ``4.0.1-SNAPSHOT``."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def misfit(name: str, found: Identity, spark: str, scala: str) -> ListenerError | None:
    """Give the error of a listener that would end the SparkContext of a Spark; None if it fits.

    :param name: of the listener, for people
    :param spark: version of Spark, e.g. ``4.0.1``
    :param scala: Scala's binary version that it runs on, e.g. ``2.13``
    """
    if found.scala is not None and found.scala != scala:
        return ListenerError(
            f"The listener {name} is for Scala {found.scala}, but Spark {spark} runs on Scala "
            f"{scala} and would not start with it.",
            f"Use {artifact(scala)}.",
        )
    if numbers(spark) < _FIRST_SPARK:
        return ListenerError(
            f"The listener {name} does not work with Spark {spark}.",
            "The first that it works with is 3.2.",
        )
    for since, first in _FIRST_LISTENERS:
        if numbers(spark) < since:
            continue
        if found.version is not None and numbers(found.version) < numbers(first):
            return ListenerError(
                f"The listener {name} is OpenLineage {found.version}, with which Spark {spark} "
                "would not start.",
                f"Use {first} or later (`sparklineage fetch-listener` brings {VERSION}).",
            )
        break
    return None
