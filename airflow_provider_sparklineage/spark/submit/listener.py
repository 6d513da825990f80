"""The OpenLineage listener: the versions that fit a Spark, and checks of a listener's jar.

A listener that does not fit its Spark throws in Spark's listener thread, and so ends the user's
SparkContext. So a listener that is not known to fit is not injected. A jar with a damaged class
ends the SparkContext when the class is loaded, even if the list of the jar's entries is complete.
"""

from __future__ import annotations

import lzma
import os
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.files import digest_of, open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from pathlib import Path


LISTENER_CLASS = "io.openlineage.spark.agent.OpenLineageSparkListener"
GROUP = "io.openlineage"
VERSION = "1.53.0"
"""The version of the listener that this package is tested with; no earlier version works with Spark
4.2."""


PINS = {
    "2.12": "9fe28ee2e5b2cb535cd51b6572394bddeb684bf0c58650a698cf7724ce62d94d",
    "2.13": "5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f",
}
"""The SHA-256 digests of the published jars of :data:`VERSION`, by Scala version."""

JAR_NAME = re.compile(
    r"(?:io\.openlineage_)?openlineage-spark(?:_(?P<scala>\d\.\d+))?-(?P<version>\d[\w.-]*)\.jar"
)
_COORDINATE = re.compile(rf"{GROUP}:openlineage-spark(?:_(?P<scala>\d\.\d+))?:(?P<version>[^:]+)")

# Pairs (a version of Spark, the first version of the listener that does not end the SparkContext of
# this Spark or a later one); see OpenLineage's issue 3931 and pull request 4779.
_FIRST_LISTENERS = (((4, 2), "1.53.0"), ((4, 0), "1.37.0"))
NEWEST_SPARK = (4, 2)
"""The newest Spark that this package is tested with."""
_FIRST_SPARK = (3, 2)  # the first version in OpenLineage's own test matrix


class Identity(Frozen, frozen=True):
    """The version and the Scala version of a listener; each is None if it is not declared."""

    version: str | None
    scala: str | None


def artifact(scala: str) -> str:
    """Give the name of the listener's artifact for a Scala version: ``openlineage-spark_2.13``."""
    return f"openlineage-spark_{scala}"


def coordinate(scala: str, version: str = VERSION) -> str:
    """Give the Maven coordinate of a listener, in the form of ``--packages``.

    :param scala: the Scala version of the listener, e.g. ``2.13``
    :param version: the version of the listener
    :return: such as ``io.openlineage:openlineage-spark_2.13:1.53.0``
    """
    return f"{GROUP}:{artifact(scala)}:{version}"


def identity_of_coordinate(text: str) -> Identity | None:
    """Read the listener's identity from a Maven coordinate; None if it names another artifact.

    :param text: the coordinate, such as ``io.openlineage:openlineage-spark_2.13:1.53.0``
    """
    match = _COORDINATE.fullmatch(text.strip())
    # Up to version 1.8.0 there was only one artifact, without a suffix, for Scala 2.12.
    return Identity(match["version"], match["scala"] or "2.12") if match else None


def identity_of_name(name: str) -> Identity | None:
    """Read the listener's identity from the file name of a jar; None if it names another jar.

    :param name: the file name, such as ``openlineage-spark_2.13-1.53.0.jar``
    """
    match = JAR_NAME.fullmatch(name)
    return Identity(match["version"], match["scala"]) if match else None


def version_numbers(version: str) -> tuple[int, ...]:
    """Give the numbers with which a version begins: (4, 0, 1) for ``4.0.1-SNAPSHOT``; else ()."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def require_fit(name: str, identity: Identity, spark: str, scala: str) -> None:
    """Refuse a listener that does not fit the Spark, and so would end the SparkContext.

    :param name: the listener's name, for the message
    :param identity: the versions that the listener declares
    :param spark: the version of Spark, e.g. ``4.0.1``
    :param scala: the binary version of Scala that Spark runs on, e.g. ``2.13``
    :raise ListenerError: if the listener does not fit; the message names the fix
    """
    if identity.scala is not None and identity.scala != scala:
        problem = (
            f"The listener {name} is for Scala {identity.scala}, but Spark {spark} runs on Scala "
            f"{scala} and would not start with it."
        )
        raise ListenerError(problem, f"Use {artifact(scala)}.")
    numbers = version_numbers(spark)
    if numbers < _FIRST_SPARK:
        problem = f"The listener {name} does not work with Spark {spark}."
        raise ListenerError(problem, "The first that it works with is 3.2.")
    first = next((first for since, first in _FIRST_LISTENERS if numbers >= since), "")
    if identity.version and version_numbers(identity.version) < version_numbers(first):
        problem = (
            f"The listener {name} is OpenLineage {identity.version}, with which Spark {spark} "
            "would not start."
        )
        fix = f"Use {first} or later (`sparklineage fetch-listener` brings {VERSION})."
        raise ListenerError(problem, fix)


# --- jars -----------------------------------------------------------------------------------------


_LISTENER_ENTRY = LISTENER_CLASS.replace(".", "/") + ".class"
_VERSION_ENTRY = "io/openlineage/spark/agent/version.properties"
# Not by a reader of properties, which refuses the file for a wrong escape in any line.
_VERSION_LINE = re.compile(rb"(?:^|[\r\n])[ \t]*version[ \t]*[=:][ \t]*(\S+)")
# The code of this class names Scala's converters of collections, whose names tell Scala's version.
_SCALA_ENTRY = "io/openlineage/spark/agent/util/ScalaConversionUtils.class"
_SCALA_CLASSES = (
    (b"scala/collection/convert/Decorators", "2.12"),
    (b"scala/collection/JavaConverters$As", "2.13"),
)
# The errors that zipfile and the libraries below it raise for damaged content.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
)


def read_jar(path: Path) -> Identity:
    """Read the identity of a listener's jar, and check that the jar is whole.

    A published jar is recognised by its digest, in 30 ms. All entries of any other jar are
    unpacked, in 700 ms, because its first damaged class would end the SparkContext. The identity
    comes from the jar's content; the file name counts only if the content does not show a version,
    because users rename files.

    :raise ListenerError: if the jar is missing, damaged or not a listener; the message names the
        fix
    """
    if not path.is_file():
        problem = f"The listener jar {path} does not exist."
        fix = (
            "Correct [sparklineage] listener_jar, or run `sparklineage fetch-listener` and leave "
            "it empty."
        )
        raise ListenerError(problem, fix)
    try:
        digest = digest_of(path)
        for scala, published in PINS.items():
            if digest == published:
                return Identity(VERSION, scala)
        with zipfile.ZipFile(path) as archive:
            archive.read(_LISTENER_ENTRY)  # raises a KeyError if the jar is not a listener
            names = archive.NameToInfo
            properties = archive.read(_VERSION_ENTRY) if _VERSION_ENTRY in names else b""
            line = _VERSION_LINE.search(properties)
            code = archive.read(_SCALA_ENTRY) if _SCALA_ENTRY in names else b""
    except (*_DAMAGED, OSError, KeyError) as error:
        problem = f"{path} is not a readable OpenLineage listener jar ({type(error).__name__})."
        fix = (
            "Fetch it again with `sparklineage fetch-listener`, or correct [sparklineage] "
            "listener_jar."
        )
        raise ListenerError(problem, fix) from error
    if problem := damage(path):
        problem = f"The listener jar {path} is damaged ({problem})."
        fix = "Copy it there again, or `sparklineage fetch-listener` and name no jar."
        raise ListenerError(problem, fix)
    named = identity_of_name(path.name) or Identity(None, None)
    scala_of_code = next((scala for name, scala in _SCALA_CLASSES if name in code), None)
    version = line[1].decode("latin-1") if line else named.version
    return Identity(version, scala_of_code or named.scala)


def damage(jar: Path) -> str:
    """Unpack all entries of a jar, and describe its damage; empty if the jar is not damaged."""
    problem = "it is no archive"
    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.infolist():
                problem = f"{entry.filename} in it cannot be read"
                archive.read(entry)
    except _DAMAGED:
        return problem
    except OSError as error:
        return error.strerror or str(error)
    return ""


# A job may have hundreds of jars, and zipfile takes 70 ms to list 11,000 entries. To find one name
# in the archive's directory takes half a millisecond. The records are those of APPNOTE.TXT 4.3.12
# and 4.3.16.
_END_RECORD = struct.Struct("<4s4HIIH")
_MAX_COMMENT = 0xFFFF
_ENTRY = re.compile(rb"PK\x01\x02.{42}" + re.escape(_LISTENER_ENTRY.encode()), re.DOTALL)


def holds_listener(path: Path) -> bool:
    """Whether a file is a jar that contains the listener's class; False if it cannot be read."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MAX_COMMENT - _END_RECORD.size))
            tail = file.read()
            *_, length, offset, _comment = _END_RECORD.unpack_from(tail, tail.rindex(b"PK\5\6"))
            file.seek(offset)
            return _ENTRY.search(file.read(length)) is not None
    except (OSError, ValueError, struct.error):
        return False
