"""Texts of events → facts: the pure function of :mod:`.facts`, on the executors, text by text.

Spark's file systems read, so that a source may be whatever they can: ``hdfs:``, ``s3a:``,
``abfss:`` or a folder that all nodes have. What a file has, its name says: ``.ndjson`` and
``.jsonl`` have lines, which Spark splits among its tasks, ``.json`` is read as a whole, and each
may end in ``.gz``. Capture bundles are refused: their files belong together, while files here are
read one by one; ``sparklineage history build`` merges them. All of a source is read by each build:
there are no marks here, and what is not new is found by its checksum. The executors need this
package in their Python, as they do for any module that a job imports.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter, defaultdict
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from airflow_provider_sparklineage.history.engines.spark.sql import spark_schema
from airflow_provider_sparklineage.history.facts import Skipped, facts_of
from airflow_provider_sparklineage.history.sources import (
    LEFT_OUT,
    MAX_BYTES,
    Documents,
    Skip,
    is_bundle,
    try_of,
)
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, MANIFEST, OBSERVATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.facts import Try

SKIPPED = "skipped"
"""Column of what was read that no table has: why there are none; null where there are."""

_OF_LINES = "*.{ndjson,jsonl,ndjson.gz,jsonl.gz}"
_WHOLE = "*.{json,json.gz}"
# What a file is taken to cost on top of its bytes; Spark's own 4 MB would make a task of 30 events.
_OPENING = {"spark.sql.files.openCostInBytes": "65536"}


def facts(session: SparkSession, sources: Sequence[str]) -> DataFrame:
    """Read the facts of all events of files and folders.

    :param session: of :func:`.building.session_of`
    :param sources: paths or URLs as Spark takes them
    :return: columns of :data:`.tables.FACTS`, and :data:`SKIPPED`
    :raise HistoryError: if there is a capture bundle among them
    """
    for key, value in _OPENING.items():
        session.conf.set(key, value)
    for source in sources:
        _refuse_bundles(session, source)
    parts = [part for source in sources for part in _parts(session, source.rstrip("/"))]
    schema = f"{spark_schema(FACTS.columns)}, {SKIPPED} STRING"
    return session.read.schema(schema).json(session.sparkContext.union(parts))


def _refuse_bundles(session: SparkSession, source: str) -> None:
    reader = session.read.option("recursiveFileLookup", True).format("binaryFile")
    found = reader.option("pathGlobFilter", f"{{{MANIFEST},{EVENTS},{OBSERVATIONS}}}").load(source)
    files = defaultdict(list)
    for place in found.inputFiles():
        folder, _, name = unquote(place).rpartition("/")
        files[folder].append(name)
    bundles = sorted(folder for folder, names in files.items() if is_bundle(names))
    if bundles:
        problem = (
            f"Spark merges no capture bundles: there are {len(bundles):,}, {bundles[0]} first."
        )
        fix = "Add them by `sparklineage history build`, or give Spark the archive alone."
        raise HistoryError(problem, fix)


def facts_of_lines(rows: Iterable[tuple[str, str]], source: str) -> Iterator[str]:
    """Give the facts of lines, as texts of JSON.

    :param rows: where each line is from, percent-encoded as Spark says it, and the line
    """
    for place, line in rows:
        if line and not line.isspace():
            yield from _line(line.encode(), named(unquote(place), source), None)


def facts_of_files(rows: Iterable[tuple[str, bytes | None]], source: str) -> Iterator[str]:
    """Give the facts of whole files, as texts of JSON.

    :param rows: the path of each file and what it holds; None if it is too large
    """
    for place, content in rows:
        skipped: Counter[str] = Counter()
        if content is None:
            skipped[Skip.TOO_LARGE] += 1
        else:
            name, of = named(place, source), try_of(place)
            for text in _documents(place, bytes(content), skipped):
                yield from _line(text, name, of)
        yield from map(_skipped, skipped.elements())


def named(place: str, source: str) -> str:
    """Name a file below a source as the user did: ``hdfs://lake:9000/x/a`` as ``hdfs:///x/a``."""
    root = urlsplit(source).path if "://" in source else source
    _, found, below = place.partition(root)
    return f"{source}{below}" if found else place


def _parts(session: SparkSession, source: str) -> Iterator[Any]:
    reader = session.read.option("recursiveFileLookup", True).option("lineSep", "\n")
    lines = reader.option("pathGlobFilter", _OF_LINES).text(source)
    rows = lines.selectExpr("input_file_name() AS place", "value").rdd
    yield rows.mapPartitions(partial(facts_of_lines, source=source))
    reader = session.read.option("recursiveFileLookup", True).format("binaryFile")
    files = reader.option("pathGlobFilter", _WHOLE).load(source)
    # Of a file that is too large, not even the bytes are held.
    files = files.selectExpr("path", f"IF(length > {MAX_BYTES}, NULL, content) AS content")
    yield files.rdd.mapPartitions(partial(facts_of_files, source=source))


def _documents(place: str, content: bytes, skipped: Counter[str]) -> Iterator[bytes]:
    stream: IO[bytes] = BytesIO(content)
    if place.endswith(".gz"):
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    try:
        yield from Documents(stream, skipped, is_of_lines=False)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        skipped[Skip.TORN_FILE] += 1


def _line(text: bytes, source: str, of: Try | None) -> Iterator[str]:
    found = facts_of(text, source, of)
    if isinstance(found, Skipped):
        yield _skipped(found.reason)
        return
    yield found.text.decode()
    for _ in range(found.left_out):
        yield _skipped(LEFT_OUT)


def _skipped(reason: str) -> str:
    return msgspec.json.encode({SKIPPED: reason}).decode()
