"""Converts texts of events to facts: the executors call :func:`..facts.facts_of` for each text.

Spark's file systems read the sources: ``hdfs:``, ``s3a:``, ``abfss:``, or a folder that all nodes
have. A file's name tells its format: a ``.ndjson`` or ``.jsonl`` file has lines, which Spark
splits among its tasks; a ``.json`` file is read whole; each may end in ``.gz``. Capture bundles
are refused: the files of a bundle belong together, but here each file is read alone;
``sparklineage history build`` merges them. Each build reads the whole of its sources: there are
no marks here, and events that the store has are recognised by their checksum. The executors need
this package in their Python, as they do for any module that a job imports.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from airflow_provider_sparklineage.history.engines.spark.sql import spark_schema
from airflow_provider_sparklineage.history.facts import Reason, Try, facts_of
from airflow_provider_sparklineage.history.sources import (
    LEFT_OUT,
    MAX_BYTES,
    Documents,
    Reading,
    Skip,
    is_bundle,
    try_of,
)
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST, OBSERVATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.sources import Delivered

SKIPPED = "skipped"
"""A column of :func:`facts` that the tables lack: the reason if a text has no facts, else null."""

_OF_LINES = "*.{ndjson,jsonl,ndjson.gz,jsonl.gz}"
_WHOLE = "*.{json,json.gz}"
# When Spark plans tasks, it counts this many bytes more for each file. With Spark's default of
# 4 MB, a task would have only 30 files of one event each.
_OPENING = "spark.sql.files.openCostInBytes", "65536"


def facts(
    session: SparkSession, sources: Sequence[str], delivered: Delivered | None = None
) -> DataFrame:
    """Read the facts of all events in files and folders.

    :param session: a session from :func:`session_of`
    :param sources: paths or URLs for Spark
    :param delivered: events that tasks have delivered to the store; the driver reads them
    :return: rows with the columns of :data:`.tables.FACTS` and :data:`SKIPPED`
    :raise HistoryError: if there is a capture bundle in the sources
    """
    session.conf.set(*_OPENING)
    for source in sources:
        _refuse_bundles(session, source)
    parts = [part for source in sources for part in _parts(session, source.rstrip("/"))]
    if delivered is not None:
        parts.append(session.sparkContext.parallelize([*_facts_of_delivered(delivered)]))
    schema = f"{spark_schema(FACTS.columns)}, {SKIPPED} STRING"
    return session.read.schema(schema).json(session.sparkContext.union(parts))


def _facts_of_delivered(delivered: Delivered) -> Iterator[str]:
    reading = Reading()
    for line in reading.lines([delivered]):
        yield line.text.decode()
    yield from map(_skipped, reading.skipped.elements())


def _refuse_bundles(session: SparkSession, source: str) -> None:
    reader = session.read.option("recursiveFileLookup", True).format("binaryFile")
    glob = f"{{{MANIFEST},{EVENTS},{OBSERVATIONS}}}"
    files = defaultdict(list)
    for place in reader.option("pathGlobFilter", glob).load(source).inputFiles():
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
    """Convert lines of events to lines of facts, each as a JSON text.

    :param rows: pairs of a file's path, percent-encoded as Spark gives it, and a line of the file
    :param source: the path or URL of the source, as the user gave it
    """
    for place, line in rows:
        if line and not line.isspace():
            yield from _line(line.encode(), named(unquote(place), source), None)


def facts_of_files(rows: Iterable[tuple[str, bytes | None]], source: str) -> Iterator[str]:
    """Convert whole files of events to lines of facts, each as a JSON text.

    :param rows: pairs of a file's path and its content; the content is None if it is too large
    :param source: the path or URL of the source, as the user gave it
    """
    for place, content in rows:
        skipped: Counter[str] = Counter()
        if content is None:
            skipped[Skip.TOO_LARGE] += 1
        else:
            name, of = named(place, source), try_of(place)
            for text in Documents(BytesIO(content), place, skipped):
                yield from _line(text, name, of)
        yield from map(_skipped, skipped.elements())


def named(place: str, source: str) -> str:
    """Give the name of a file in the tables, which begins with its source as the user gave it.

    E.g. ``hdfs:///x/a`` for the place ``hdfs://lake:9000/x/a`` and the source ``hdfs:///x``.
    """
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
    # The content of a file that is too large is not even loaded.
    files = files.selectExpr("path", f"IF(length > {MAX_BYTES}, NULL, content) AS content")
    yield files.rdd.mapPartitions(partial(facts_of_files, source=source))


def _line(text: bytes, source: str, of: Try | None) -> Iterator[str]:
    line = facts_of(text, source, of)
    if isinstance(line, Reason):
        yield _skipped(line)
        return
    yield line.text.decode()
    for _ in range(line.left_out):
        yield _skipped(LEFT_OUT)


def _skipped(reason: str) -> str:
    return msgspec.json.encode({SKIPPED: reason}).decode()
