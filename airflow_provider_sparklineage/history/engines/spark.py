"""Building the tables on Spark, from 3.5 on: the same steps and the same files as DuckDB's.

A job for spark-submit (:mod:`airflow_provider_sparklineage.history.spark_jobs.build_history`) leads
through it: texts become facts on the executors (:func:`facts`), the steps become Spark's SQL
(:func:`spark_sql`) and run, and the tables become files of a store or tables of a catalog
(:func:`build`). The queries can be asked there, too (:class:`History`).

Nothing here imports PySpark before a job calls it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter, defaultdict
from datetime import datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, cast
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from airflow_provider_sparklineage.history.facts import Reason, Skipped, Try, facts_of
from airflow_provider_sparklineage.history.sources import (
    LEFT_OUT,
    MAX_BYTES,
    Documents,
    Skip,
    is_bundle,
    try_of,
)
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, TABLES, VERSION, Column, Table
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, MANIFEST, OBSERVATIONS
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.store import Building, Store


# --- DuckDB's SQL in the words of Spark -----------------------------------------------------------
#
# sqlglot knows both; what it would hand on word for word, or translate to something else than
# DuckDB does, is refused here, so that it is a failing test and not another answer on another
# engine.


_READ, _WRITE = "duckdb", "spark"
_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Anonymous, "a function that sqlglot does not know"),
    (exp.GroupConcat, "string_agg(), which Spark has from 4.0 on"),
    (exp.Qualify, "QUALIFY, whose condition becomes a column in Spark"),
)


def spark_sql(sql: str, parameters: Mapping[str, str] = _NO_PARAMETERS) -> str:
    """Translate a query of DuckDB for Spark 3.5 and newer.

    Zones: a ``TIMESTAMP`` becomes ``TIMESTAMP_NTZ``, which has none either. Parameters: ``$name``
    becomes ``:name``.

    :param parameters: what is written for some of these, with ``{}`` where ``:name`` goes
    :raise HistoryError: if it is no SQL, or uses what the two do not have in common
    """
    try:
        query = sqlglot.parse_one(sql, read=_READ)
        _check(query)
        query = query.transform(_rewritten)
        for one in [*query.find_all(exp.Placeholder)]:
            if written := parameters.get(one.name):
                one.replace(sqlglot.parse_one(written.format(f":{one.name}"), read=_WRITE))
        return query.sql(_WRITE, unsupported_level=ErrorLevel.RAISE, identify=True)
    except SqlglotError as error:
        problem = f"A query of the history cannot be translated for Spark: {error}"
        raise HistoryError(problem, "Report it; DuckDB answers it.") from error


def spark_schema(columns: tuple[Column, ...]) -> str:
    """Give the schema of columns as Spark's readers take it: ``a STRING, b ARRAY<…>``."""
    return ", ".join(f"`{one.name}` {spark_type(one.type)}" for one in columns)


def spark_type(type_: str) -> str:
    """Give the type that Spark has for one of DuckDB's."""
    return exp.DataType.build(type_, dialect=_READ).sql(_WRITE, identify=True)


def spark_selection(table: Table) -> list[str]:
    """Give what selects the columns of a table, by name and in its types."""
    return [
        f"CAST(`{one.name}` AS {spark_type(one.type)}) AS `{one.name}`" for one in table.columns
    ]


def _check(query: exp.Expr) -> None:
    for kind, what in _REFUSED:
        for found in query.find_all(kind):
            msg = f"{what} ({found.sql(_READ)})"
            raise SqlglotError(msg)
    for star in query.find_all(exp.Star):
        if any(star.args.get(key) for key in ("except_", "replace", "rename")):
            msg = "a star with EXCLUDE, REPLACE or RENAME, which Spark 3.5 does not have"
            raise SqlglotError(msg)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Write in other words what sqlglot would hand on as it is, and Spark does not take."""
    match node:
        case exp.CTE():
            node.set("materialized", None)
        case exp.Select() if len([*filter(_is_unnested, node.expressions)]) > 1:
            return _inlined(node)
        case exp.ArrayAgg():
            return _sorted_list(node)
    return node


def _is_unnested(column: exp.Expr) -> bool:
    return isinstance(column.unalias(), exp.Explode)


def _inlined(select: exp.Select) -> exp.Expr:
    """Make rows of several lists at once: a SELECT of Spark may unnest but one."""
    if select.args.get("from_") or not all(map(_is_unnested, select.expressions)):
        msg = f"several lists to rows next to other columns ({select.sql(_READ)})"
        raise SqlglotError(msg)
    lists = ", ".join(column.unalias().this.sql(_WRITE) for column in select.expressions)
    names = ", ".join(f"`{column.alias}`" for column in select.expressions)
    return sqlglot.parse_one(f"SELECT INLINE(ARRAYS_ZIP({lists})) AS ({names})", read=_WRITE)


def _sorted_list(found: exp.ArrayAgg) -> exp.Expr:
    """Sort what was collected, nulls included, which Spark collects in no order and leaves out."""
    order = found.this
    keys = order.expressions if isinstance(order, exp.Order) else []
    if not keys or any(key.args.get("desc") for key in keys):
        msg = f"list() without an ascending ORDER BY: Spark keeps none ({found.sql(_READ)})"
        raise SqlglotError(msg)
    parts = []
    for key in keys:  # fields of a struct are compared one by one, nulls first
        text = key.this.sql(_WRITE, identify=True)
        parts += [text] if key.args.get("nulls_first") else [f"{text} IS NULL", text]
    value = order.this.sql(_WRITE, identify=True)
    rows = f"ARRAY_SORT(COLLECT_LIST(STRUCT({', '.join(parts)}, {value} AS own)))"
    return sqlglot.parse_one(f"TRANSFORM({rows}, each -> each.own)", read=_WRITE)


# --- texts of events to facts ---------------------------------------------------------------------
#
# The pure function of :mod:`..facts` runs on the executors, text by text.
#
# Spark's file systems read, so that a source may be whatever they can: ``hdfs:``, ``s3a:``,
# ``abfss:`` or a folder that all nodes have. What a file has, its name says: ``.ndjson`` and
# ``.jsonl`` have lines, which Spark splits among its tasks, ``.json`` is read as a whole, and each
# may end in ``.gz``. Capture bundles are refused: their files belong together, while files here are
# read one by one; ``sparklineage history build`` merges them. All of a source is read by each
# build: there are no marks here, and what is not new is found by its checksum. The executors need
# this package in their Python, as they do for any module that a job imports.


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


# --- building -------------------------------------------------------------------------------------
#
# Three passes lead from events to tables; each goes on from files that the one before wrote.
#
# 1. texts → facts;
# 2. facts that are not there yet → one more part of the facts;
# 3. all facts → the tables, step by step.
#
# So nothing is worked out twice, and an executor that is lost costs what it was at. Nobody sees any
# of it before the target publishes it. A target is a store (:class:`Parquet`) or a namespace of an
# Iceberg catalog (:class:`Iceberg`); to add one, give the three methods of :class:`Target`.


SESSION = {
    # Times have no zone; whatever of Spark's knows one shall not move them.
    "spark.sql.session.timeZone": "UTC",
    # The default of Spark 4, and DuckDB's way; 3.5 would give null where these two raise.
    "spark.sql.ansi.enabled": "true",
}

# Of one event in several files the first by name, or the tables would differ from build to build.
_NEW = """
SELECT {columns}
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY source) AS place
  FROM read_facts
  WHERE skipped IS NULL
) AS r
WHERE place = 1 AND NOT EXISTS (SELECT 1 FROM facts AS f WHERE f.event_id = r.event_id)
"""


class Counts(NamedTuple):
    """What a build did.

    :param events: documents of all sources, those among them that were no event
    :param new: events that were not there before
    :param skipped: what has no facts, by reason
    :param rows: how many rows each table has now
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]


class Target(Protocol):
    """Where facts and tables are kept."""

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept, those just added too; None while there are none."""

    def add(self, facts: DataFrame) -> None:
        """Keep more facts."""

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Keep the rows of a table, in its order; give them as they are kept."""


def session_of(session: SparkSession) -> SparkSession:
    """Give a session of the same application whose settings and views are the build's own."""
    own = session.newSession()
    for key, value in SESSION.items():
        own.conf.set(key, value)
    return own


def build(session: SparkSession, read: DataFrame, target: Target) -> Counts:
    """Add what was read to the facts of a target, and make its tables anew.

    :param session: of :func:`session_of`
    :param read: what :func:`.reading.facts` gives
    """
    read = read.persist()
    skipped = {r[SKIPPED]: r["count"] for r in read.groupBy(SKIPPED).count().collect()}
    accepted = skipped.pop(None, 0)
    new = _new(session, read, target.facts()).persist()
    count = new.count()
    if count:
        target.add(new)
    for done in (new, read):
        done.unpersist()
    rows = _tables(session, target)
    refused = sum(skipped.get(reason, 0) for reason in Reason)
    return Counts(accepted + refused, count, skipped, rows)


def _new(session: SparkSession, read: DataFrame, known: DataFrame | None) -> DataFrame:
    if known is None:
        known = _no_facts(session)
    read.createOrReplaceTempView("read_facts")
    known.createOrReplaceTempView("facts")
    columns = ", ".join(f"`{column.name}`" for column in FACTS.columns)
    return session.sql(_NEW.format(columns=columns))


def _tables(session: SparkSession, target: Target) -> dict[str, int]:
    facts = target.facts()
    (_no_facts(session) if facts is None else facts).createOrReplaceTempView("facts")
    counts, between = {}, []
    for step in STEPS:
        rows = session.sql(spark_sql(step.sql))
        if step.table is None:
            rows = rows.persist()
            between.append(rows)
        else:
            rows = target.save(step.table, rows.selectExpr(*spark_selection(step.table)))
            counts[step.name] = rows.count()
        rows.createOrReplaceTempView(step.name)
    for rows in between:
        rows.unpersist()
    return counts


def _no_facts(session: SparkSession) -> DataFrame:
    return session.createDataFrame([], spark_schema(FACTS.columns))


_WRITING = {
    "compression": "zstd",
    # Groups of rows are what a query passes over by their least and greatest values: small ones.
    "parquet.block.size": str(16 * 1024 * 1024),
}
# What Airflow calls file systems otherwise than Hadoop does.
_SCHEMES = {"s3": "s3a", "local": "file"}


class Parquet:
    """What a build writes to a store of files, next to DuckDB's: each reads what the other wrote.

    Spark writes the files where they stay; no manifest names them before all are there.
    """

    def __init__(self, session: SparkSession, building: Building) -> None:
        self._session, self._building = session, building
        self._root = hadoop_url(building.store.url)
        self._parts = dict(building.before.facts)
        self._tables: dict[str, list[str]] = {}

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept; see :class:`Target`."""
        names = [name for files in self._parts.values() for name in files]
        if not names:
            return None
        found, since = self._read(FACTS, names), self._building.before.since
        if since is None:
            return found
        start = since.replace(tzinfo=None).isoformat(" ")
        return found.where(f"event_time >= TIMESTAMP_NTZ '{start}'")

    def add(self, facts: DataFrame) -> None:
        """Keep more facts, as one part."""
        folder = self._building.facts_folder
        self._parts[self._building.facts_part] = self._write(facts, folder)

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write the rows of a table in its order."""
        folder = f"{self._building.tables_folder}/{table.name}"
        self._tables[table.name] = self._write(rows.orderBy(*table.sorted_by), folder)
        return self._read(table, self._tables[table.name])

    def publish(self, rows: Mapping[str, int], skipped: Mapping[str, int]) -> None:
        """Put what was written in force; raises as :meth:`.Building.publish` does."""
        facts = self.facts()
        events = 0 if facts is None else facts.count()
        counted = {"events": events, **rows}
        self._building.publish(self._parts, self._tables, counted, skipped)

    def _write(self, rows: DataFrame, folder: str) -> list[str]:
        target = f"{self._root}/{folder}"
        rows.write.options(**_WRITING).parquet(target)
        found = self._session.read.schema(rows.schema).parquet(target).inputFiles()
        return sorted(f"{folder}/{file.rpartition('/')[2]}" for file in found)

    def _read(self, table: Table, names: list[str]) -> DataFrame:
        return table_of(self._session, self._building.store.url, table, names)


def table_of(session: SparkSession, url: str, table: Table, names: Sequence[str]) -> DataFrame:
    """Read files of a store; a column that an older version did not have is null.

    :param url: of the store
    """
    schema = spark_schema(table.columns)
    if not names:
        return session.createDataFrame([], schema)
    root = hadoop_url(url)
    # By folder, of which a build fills each alone: a file would be a dataset in lineage.
    folders = sorted({name.rpartition("/")[0] for name in names})
    return session.read.schema(schema).parquet(*(f"{root}/{folder}" for folder in folders))


def hadoop_url(url: str) -> str:
    """Name the place of a store as Spark's file systems do.

    A connection of Airflow's in the URL is left out: Spark has its own credentials.
    """
    if "://" not in url:
        return f"file://{Path(url).absolute()}"
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    if scheme == "file":
        return f"file://{unquote(parts.path)}".rstrip("/")
    host = parts.netloc.rpartition("@")[2] if scheme == "s3a" else parts.netloc
    return urlunsplit((scheme, host, parts.path.rstrip("/"), "", ""))


class Iceberg:
    """A namespace of an Iceberg catalog that the session knows, for SQL of any engine.

    Each table is replaced whole and at once; which build it is of is its property
    ``sparklineage.build``, by which a reader that joins several can see that they belong together.

    :param namespace: with its catalog, ``lake.history``; it is created if it is absent
    :param build: what this build is called
    """

    def __init__(self, session: SparkSession, namespace: str, build: str) -> None:
        self._session, self._build = session, build
        self._namespace = ".".join(f"`{part}`" for part in namespace.split("."))
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept; see :class:`Target`."""
        name = self._name(FACTS)
        return self._session.table(name) if self._session.catalog.tableExists(name) else None

    def add(self, facts: DataFrame) -> None:
        """Keep more facts."""
        if self.facts() is None:
            facts.writeTo(self._name(FACTS)).using("iceberg").create()
        else:
            facts.writeTo(self._name(FACTS)).append()

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Replace the rows of a table."""
        name = self._name(table)
        writer = rows.orderBy(*table.sorted_by).writeTo(name).using("iceberg")
        writer = writer.tableProperty("sparklineage.version", str(VERSION))
        writer.tableProperty("sparklineage.build", self._build).createOrReplace()
        return self._session.table(name)

    def _name(self, table: Table) -> str:
        return f"{self._namespace}.`{table.name}`"


# --- asking ---------------------------------------------------------------------------------------
#
# The queries run on Spark where tables are too large to be asked from one machine.
#
# The functions of :mod:`airflow_provider_sparklineage.history.queries` answer as they do with
# DuckDB: they ask whatever gives rows. A question takes seconds here instead of milliseconds, as
# each of its queries is a job.


_LIST, _TIME = "FROM_JSON({}, 'ARRAY<STRING>')", "CAST({} AS TIMESTAMP_NTZ)"


class History:
    """A generation of a store, to ask it; a context, and the twin of DuckDB's.

    ::

        with History(session, Store.open("s3://lake/history")) as history:
            hops = trace(history, dataset_of(history, "revenue"), "dt=2024-10-15")

    :param session: its settings and views stay as they are
    :param store: where Spark can read it, too
    """

    def __init__(self, session: SparkSession, store: Store) -> None:
        self.manifest = store.manifest
        self._session = session_of(session)
        for table in TABLES:
            names = self.manifest.tables.get(table.name, ())
            rows = table_of(self._session, store.url, table, names)
            rows.createOrReplaceTempView(table.name)

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Give the rows of a query of the tables, each by the names of its columns.

        :param sql: in DuckDB's dialect
        :param parameters: of ``$name`` in the query; lists are lists of SQL
        :raise HistoryError: if the query is none for Spark, or a file cannot be read
        """
        from pyspark.errors import PySparkException

        given = dict(parameters or {})
        try:
            text = spark_sql(sql, {name: written for name, value in given.items()
                                   if (written := _written(value))})  # fmt: skip
            found = self._session.sql(text, {name: _bound(one) for name, one in given.items()})
            return [row.asDict() for row in found.collect()]
        except PySparkException as error:
            problem = f"The history could not be asked ({reason(error)})."
            raise HistoryError(problem) from error

    def close(self) -> None:
        """Forget the tables."""
        for table in TABLES:
            self._session.catalog.dropTempView(table.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _written(value: object) -> str:
    """Say what makes a parameter of a type again from what is bound; empty if it is that."""
    if isinstance(value, list | tuple):
        return _LIST
    return _TIME if isinstance(value, datetime) else ""


def _bound(value: object) -> object:
    """Give what is bound: one text for a whole list, where Spark would take each of its elements.

    Times are texts too: Spark gives those of Python the zone of the machine.
    """
    if isinstance(value, list | tuple):
        return json.dumps([None if one is None else str(one) for one in value])
    return str(value) if isinstance(value, datetime) else value
