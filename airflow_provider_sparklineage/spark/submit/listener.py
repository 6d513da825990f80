"""The OpenLineage listener: the versions that fit a Spark, and checks of a listener's jar.

A listener that does not fit its Spark throws in Spark's listener thread, and so ends the user's
SparkContext. So a listener that is not known to fit is not injected. A jar with a damaged class
ends the SparkContext when the class is loaded, even if the list of the jar's entries is complete.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.submit import remembered

if TYPE_CHECKING:
    from pathlib import Path


LISTENER_CLASS = "io.openlineage.spark.agent.OpenLineageSparkListener"
GROUP = "io.openlineage"
VERSION = "1.53.0"
"""The version of the listener that this package is tested with; no earlier version works with Spark
4.2."""


class Pin(Frozen, frozen=True):
    """The SHA-256 digest and the size in bytes of a published jar of :data:`VERSION`."""

    sha256: str
    size: int


PINS = {
    "2.12": Pin("9fe28ee2e5b2cb535cd51b6572394bddeb684bf0c58650a698cf7724ce62d94d", 43_037_167),
    "2.13": Pin("5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f", 43_037_532),
}
"""The published jars of the listener, by Scala version."""

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
    """The version and the Scala version of a listener; None for one that it does not declare."""

    version: str | None
    scala: str | None


def artifact(scala: str) -> str:
    """Give the name of the listener's artifact for a Scala version."""
    return f"openlineage-spark_{scala}"


def coordinate(scala: str, version: str = VERSION) -> str:
    """Give the Maven coordinate of a listener, in the form of ``--packages``."""
    return f"{GROUP}:{artifact(scala)}:{version}"


def identity_of_coordinate(text: str) -> Identity | None:
    """Read the listener's identity from a Maven coordinate; None if it names another artifact."""
    match = _COORDINATE.fullmatch(text.strip())
    # Up to version 1.8.0 there was only one artifact, without a suffix, for Scala 2.12.
    return Identity(match["version"], match["scala"] or "2.12") if match else None


def identity_of_name(name: str) -> Identity | None:
    """Read the listener's identity from the file name of a jar; None if it names another jar."""
    match = JAR_NAME.fullmatch(name)
    return Identity(match["version"], match["scala"]) if match else None


def version_numbers(version: str) -> tuple[int, ...]:
    """Give the numbers with which a version begins: (4, 0, 1) for ``4.0.1-SNAPSHOT``; else ()."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def misfit(name: str, found: Identity, spark: str, scala: str) -> ListenerError | None:
    """Give the error for a listener that would end the SparkContext; None if the listener fits.

    :param name: the listener's name, for the message
    :param found: the versions that the listener declares
    :param spark: the version of Spark, e.g. ``4.0.1``
    :param scala: the binary version of Scala that Spark runs on, e.g. ``2.13``
    """
    if found.scala is not None and found.scala != scala:
        return ListenerError(
            f"The listener {name} is for Scala {found.scala}, but Spark {spark} runs on Scala "
            f"{scala} and would not start with it.",
            f"Use {artifact(scala)}.",
        )
    if version_numbers(spark) < _FIRST_SPARK:
        return ListenerError(
            f"The listener {name} does not work with Spark {spark}.",
            "The first that it works with is 3.2.",
        )
    for since, first in _FIRST_LISTENERS:
        if version_numbers(spark) < since:
            continue
        if found.version is not None and version_numbers(found.version) < version_numbers(first):
            return ListenerError(
                f"The listener {name} is OpenLineage {found.version}, with which Spark {spark} "
                "would not start.",
                f"Use {first} or later (`sparklineage fetch-listener` brings {VERSION}).",
            )
        break
    return None


# A submission waits while a jar is read, and lineage may delay a submission by only 100 ms in all.
# So a jar is not opened with ``zipfile``, which takes 70 ms to list the 11,000 entries. Finding
# three entries in the bytes of the zip's directory takes half a millisecond.


_LISTENER_ENTRY = LISTENER_CLASS.replace(".", "/") + ".class"
_VERSION_ENTRY = "io/openlineage/spark/agent/version.properties"
# The code of this class names Scala's converters of collections, whose names tell Scala's version.
_SCALA_ENTRY = "io/openlineage/spark/agent/util/ScalaConversionUtils.class"
_SCALA_CLASSES = (
    (b"scala/collection/convert/Decorators", "2.12"),
    (b"scala/collection/JavaConverters$As", "2.13"),
)

# The records of a zip archive that are read here (APPNOTE.TXT 4.3.7, 4.3.12, 4.3.16).
_END_RECORD = struct.Struct("<4s4HIIH")
_ENTRY_RECORD = struct.Struct("<4s6H3I5H2I")
_LOCAL_RECORD = struct.Struct("<4s5H3I2H")
_MAX_COMMENT = 0xFFFF
_ZIP64 = 0xFFFFFFFF


class ListenerJar(Frozen, frozen=True):
    """A readable jar that contains the listener's class."""

    path: Path
    identity: Identity


def read_jar(path: Path) -> ListenerJar:
    """Read the identity of a listener's jar.

    The identity comes from the jar's content, and only if that does not show a version from the
    file name, because people rename files.

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
        entries = _entries(path, (_LISTENER_ENTRY, _VERSION_ENTRY, _SCALA_ENTRY))
        entries[_LISTENER_ENTRY]  # raises a KeyError if the jar is not a listener
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error, KeyError) as error:
        problem = f"{path} is not a readable OpenLineage listener jar ({type(error).__name__})."
        fix = (
            "Fetch it again with `sparklineage fetch-listener`, or correct [sparklineage] "
            "listener_jar."
        )
        raise ListenerError(problem, fix) from error
    named = identity_of_name(path.name) or Identity(None, None)
    return ListenerJar(
        path,
        Identity(
            _declared_version(entries.get(_VERSION_ENTRY, b"")) or named.version,
            _scala_of_code(entries.get(_SCALA_ENTRY, b"")) or named.scala,
        ),
    )


def holds_listener(path: Path) -> bool:
    """Whether a file is a jar that contains the listener's class; False if it cannot be read."""
    try:
        return bool(_entries(path, (_LISTENER_ENTRY,)))
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error):
        return False


def _declared_version(properties: bytes) -> str | None:
    for line in properties.decode("latin-1").splitlines():
        key, found, value = line.partition("=")
        if found and key.strip() == "version":
            return value.strip() or None
    return None


def _scala_of_code(code: bytes) -> str | None:
    return next((scala for name, scala in _SCALA_CLASSES if name in code), None)


def _entries(path: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Read the named entries of an archive; leave out names that are not in the archive."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MAX_COMMENT - _END_RECORD.size))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0:
            msg = "no end of an archive"
            raise zipfile.BadZipFile(msg)
        *_, length, offset, _comment = _END_RECORD.unpack_from(tail, at)
        if _ZIP64 in (length, offset):  # the archive is too large for this short way
            with zipfile.ZipFile(path) as archive:
                return {n: archive.read(n) for n in names if n in archive.NameToInfo}
        file.seek(offset)
        directory = file.read(length)
        found = {}
        for name in names:
            header = _entry_header(directory, name.encode())
            if header is not None:
                file.seek(header[16])
                found[name] = _entry_content(
                    file.read(_LOCAL_RECORD.size + header[8] + _MAX_COMMENT), header
                )
        return found


def _entry_header(directory: bytes, name: bytes) -> tuple[int, ...] | None:
    at = directory.find(name)
    while at >= 0:
        start = at - _ENTRY_RECORD.size
        if start >= 0 and directory[start : start + 4] == b"PK\1\2":
            header = _ENTRY_RECORD.unpack_from(directory, start)
            if header[10] == len(name):
                return header
        at = directory.find(name, at + 1)
    return None


def _entry_content(record: bytes, header: tuple[int, ...]) -> bytes:
    method, crc, packed = header[4], header[7], header[8]
    signature, *_, name_length, extra_length = _LOCAL_RECORD.unpack_from(record)
    start = _LOCAL_RECORD.size + name_length + extra_length
    raw = record[start : start + packed]
    if signature != b"PK\3\4" or len(raw) != packed:
        msg = "an entry is not where it should be"
        raise zipfile.BadZipFile(msg)
    content = raw if method == zipfile.ZIP_STORED else zlib.decompress(raw, -zlib.MAX_WBITS)
    if zlib.crc32(content) != crc:
        msg = "an entry is damaged"
        raise zipfile.BadZipFile(msg)
    return content


# Before each job, this code checks whether the jar is whole. A published jar is recognised by its
# digest, which takes 30 ms. Of another jar all entries are unpacked, which takes 700 ms, but only
# once for each content of a jar.


# The errors that zipfile and the libraries below it raise for damaged content. OSError is not in
# the list: it is a failure of the disk, which may work the next time, and no property of the jar.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
)


class _Whole(msgspec.Struct, frozen=True):
    """A stored answer: all entries of a jar could be unpacked."""


def digest_of(jar: Path) -> str:
    """Give the SHA-256 digest of a file, in hex.

    :raise OSError: if the file cannot be read
    """
    with jar.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def damage(jar: Path, cache: Path) -> str:
    """Describe the damage of a jar, such as ``it is no archive``; empty if the jar is whole.

    :param cache: the folder in which the digests of whole jars are stored, if it can be written
    :raise OSError: if the jar cannot be read
    """
    digest = digest_of(jar)
    if digest in {pin.sha256 for pin in PINS.values()}:
        return ""
    question = f"whole {digest}"
    if remembered.recall(cache, question, _Whole, float("inf")) is not None:
        return ""
    problem = _unpacked_damage(jar)
    if not problem and digest_of(jar) == digest:  # otherwise the jar changed while it was unpacked
        remembered.remember(cache, question, _Whole())
    return problem


def _unpacked_damage(jar: Path) -> str:
    """Unpack all entries of a jar; describe the first that cannot be unpacked, or give ""."""
    what = "it is no archive"
    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.infolist():
                what = f"{entry.filename} in it cannot be read"
                archive.read(entry)
    except _DAMAGED:
        return what
    return ""
