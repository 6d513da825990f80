"""Listener jars as files: whether one is complete, which listener it is, and what it is named.

A submission waits for this, 30 ms at most for all of lineage, so a jar is not opened with
``zipfile``: that lists its 11,000 entries first, which takes 70 ms. To find three of them in the
bytes of the directory takes half a millisecond.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS, Identity, of_name

if TYPE_CHECKING:
    from pathlib import Path

_LISTENER = LISTENER_CLASS.replace(".", "/") + ".class"
_VERSION = "io/openlineage/spark/agent/version.properties"
# A class whose code names the collections' converters, which differ between Scala's versions.
_SCALA = "io/openlineage/spark/agent/util/ScalaConversionUtils.class"
_SCALA_CLASSES = (
    (b"scala/collection/convert/Decorators", "2.12"),
    (b"scala/collection/JavaConverters$As", "2.13"),
)

# The records of a zip archive that are read here (APPNOTE.TXT 4.3.7, 4.3.12, 4.3.16).
_END = struct.Struct("<4s4HIIH")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_MAX_COMMENT = 0xFFFF
_ZIP64 = 0xFFFFFFFF


class ListenerJar(Frozen, frozen=True):
    """A readable jar with the listener's class in it."""

    path: Path
    identity: Identity


def read(path: Path) -> ListenerJar:
    """Read which listener a jar is.

    What is inside it counts for more than its name, which people change.

    :raise ListenerError: if it is missing, damaged or not a listener; names the fix
    """
    if not path.is_file():
        problem = f"The listener jar {path} does not exist."
        fix = (
            "Correct [sparklineage] listener_jar, or run `sparklineage fetch-listener` and leave "
            "it empty."
        )
        raise ListenerError(problem, fix)
    try:
        entries = _entries(path, (_LISTENER, _VERSION, _SCALA))
        entries[_LISTENER]  # it may be another jar
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error, KeyError) as error:
        problem = f"{path} is not a readable OpenLineage listener jar ({type(error).__name__})."
        fix = (
            "Fetch it again with `sparklineage fetch-listener`, or correct [sparklineage] "
            "listener_jar."
        )
        raise ListenerError(problem, fix) from error
    named = of_name(path.name) or Identity(None, None)
    return ListenerJar(
        path,
        Identity(
            _version(entries.get(_VERSION, b"")) or named.version,
            _scala(entries.get(_SCALA, b"")) or named.scala,
        ),
    )


def holds_listener(path: Path) -> bool:
    """Whether a file is a jar with the listener's class in it; False if it cannot be read."""
    try:
        return bool(_entries(path, (_LISTENER,)))
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error):
        return False


def _version(properties: bytes) -> str | None:
    for line in properties.decode("latin-1").splitlines():
        key, found, value = line.partition("=")
        if found and key.strip() == "version":
            return value.strip() or None
    return None


def _scala(code: bytes) -> str | None:
    return next((scala for name, scala in _SCALA_CLASSES if name in code), None)


def _entries(path: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Read those of the named entries that an archive has."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MAX_COMMENT - _END.size))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0:
            msg = "no end of an archive"
            raise zipfile.BadZipFile(msg)
        *_, length, offset, _comment = _END.unpack_from(tail, at)
        if _ZIP64 in (length, offset):  # too many entries for this short way
            with zipfile.ZipFile(path) as archive:
                return {n: archive.read(n) for n in names if n in archive.NameToInfo}
        file.seek(offset)
        directory = file.read(length)
        found = {}
        for name in names:
            header = _header(directory, name.encode())
            if header is not None:
                file.seek(header[16])
                found[name] = _content(file.read(_LOCAL.size + header[8] + _MAX_COMMENT), header)
        return found


def _header(directory: bytes, name: bytes) -> tuple[int, ...] | None:
    at = directory.find(name)
    while at >= 0:
        start = at - _ENTRY.size
        if start >= 0 and directory[start : start + 4] == b"PK\1\2":
            header = _ENTRY.unpack_from(directory, start)
            if header[10] == len(name):
                return header
        at = directory.find(name, at + 1)
    return None


def _content(record: bytes, header: tuple[int, ...]) -> bytes:
    method, crc, packed = header[4], header[7], header[8]
    signature, *_, name_length, extra_length = _LOCAL.unpack_from(record)
    start = _LOCAL.size + name_length + extra_length
    raw = record[start : start + packed]
    if signature != b"PK\3\4" or len(raw) != packed:
        msg = "an entry is not where it should be"
        raise zipfile.BadZipFile(msg)
    content = raw if method == zipfile.ZIP_STORED else zlib.decompress(raw, -zlib.MAX_WBITS)
    if zlib.crc32(content) != crc:
        msg = "an entry is damaged"
        raise zipfile.BadZipFile(msg)
    return content
