"""Whether a listener jar is whole: checked when its file has changed, and once a day.

A jar with a damaged class in it ends the SparkContext when the class is loaded, however complete
its directory looks. A published jar is known by its digest, which takes 30 ms; of another one every
entry is unpacked, which takes 700 ms, once for a content.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.spark.submit import remembered
from airflow_provider_sparklineage.spark.submit.listener import PINS

if TYPE_CHECKING:
    from pathlib import Path


# What zipfile and the libraries below it raise of content that is none of an archive's. A disk that
# fails now may do better the next time, so an OSError is nothing to remember.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
)


class Verified(msgspec.Struct, frozen=True):
    """What was found of a file.

    :param file: its size, times and place, by which a change is recognised
    :param problem: what is wrong with it; empty if it is whole
    """

    file: tuple[int, ...]
    sha256: str
    problem: str = ""


def verified(jar: Path, cache: Path) -> Verified:
    """Check a jar, or recall what was found of it.

    :param cache: folder in which that is kept, if it can be
    :raise OSError: if it cannot be read
    """
    question = f"jar {jar.absolute()}"
    file = _identity(jar.stat())
    known = remembered.recall(cache, question, Verified)
    if known is not None and known.file == file:
        return known
    found = _found(jar, remembered.recall(cache, question, Verified, float("inf")))
    remembered.remember(cache, question, found)
    return found


def _found(jar: Path, before: Verified | None) -> Verified:
    with jar.open("rb") as content:
        file = _identity(os.fstat(content.fileno()))  # as it was before it is read
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    if before is not None and before.sha256 == sha256 and not before.problem:
        return Verified(file, sha256)
    if sha256 in {pin.sha256 for pin in PINS.values()}:
        return Verified(file, sha256)
    return Verified(file, sha256, _damage(jar))


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # The time of the last change of its state, too: copying tools set that of the content.
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_size, *times)


def _damage(jar: Path) -> str:
    """Unpack all entries, and give what is wrong with the first that cannot be."""
    what = "it is no archive"
    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.infolist():
                what = f"{entry.filename} in it cannot be read"
                archive.read(entry)
    except _DAMAGED:
        return what
    return ""
