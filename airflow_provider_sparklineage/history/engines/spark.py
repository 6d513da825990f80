"""Builds the tables on Spark 3.5 and newer, with the same steps and the same files as DuckDB.

A job for spark-submit (:mod:`airflow_provider_sparklineage.history.spark_jobs.build_history`) calls
this module. The executors convert events to facts (:func:`facts`). The steps are translated to
Spark's SQL (:func:`spark_sql`), and Spark runs them. The tables become files of a store or tables
of a catalog (:func:`build`). The queries can run on Spark, too (:class:`History`).

The module imports PySpark only inside functions, when a job calls them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from airflow_provider_sparklineage.history.facts import Reason, Try, facts_of
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
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST, OBSERVATIONS
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.store import Building, Store


# --- DuckDB's SQL translated for Spark ------------------------------------------------------------
#
# sqlglot knows both dialects. Constructs that it would copy unchanged, or translate to SQL that
# gives other rows than DuckDB, are refused here: then a test fails, and the two engines never give
# different answers.


_READ, _WRITE = "duckdb", "spark"

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Anonymous, "a function that sqlglot does not know"),
    (exp.GroupConcat, "string_agg(), which Spark has from 4.0 on"),
    (exp.Qualify, "QUALIFY, whose condition becomes a column in Spark"),
)


def spark_sql(sql: str, parameters: Mapping[str, str] | None = None) -> str:
    """Translate a query from DuckDB's dialect to the SQL of Spark 3.5 and newer.

    A ``TIMESTAMP`` becomes ``TIMESTAMP_NTZ``, which has no zone either. A parameter ``$name``
    becomes ``:name``.

    :param parameters: SQL expressions that replace parameters, by name of the parameter; ``{}`` in
        an expression stands for ``:name``
    :raise HistoryError: if the query is not valid SQL, or uses a construct of :data:`_REFUSED`
    """
    try:
        query = sqlglot.parse_one(sql, read=_READ)
        _check(query)
        query = query.transform(_rewritten)
        for one in [*query.find_all(exp.Placeholder)]:
            if written := (parameters or {}).get(one.name):
                one.replace(sqlglot.parse_one(written.format(f":{one.name}"), read=_WRITE))
        return query.sql(_WRITE, unsupported_level=ErrorLevel.RAISE, identify=True)
    except SqlglotError as error:
        problem = f"A query of the history cannot be translated for Spark: {error}"
        raise HistoryError(problem, "Report it; DuckDB answers it.") from error


def spark_schema(columns: tuple[Column, ...]) -> str:
    """Give the schema of some columns as DDL for Spark's readers: ``a STRING, b ARRAY<…>``."""
    return ", ".join(f"`{one.name}` {spark_type(one.type)}" for one in columns)


def spark_type(type_: str) -> str:
    """Translate a column type from DuckDB's SQL to Spark's."""
    return exp.DataType.build(type_, dialect=_READ).sql(_WRITE, identify=True)


def spark_selection(table: Table) -> list[str]:
    """Give the expressions for ``selectExpr`` that cast a table's columns to their types."""
    return [
        f"CAST(`{one.name}` AS {spark_type(one.type)}) AS `{one.name}`" for one in table.columns
    ]


def _check(query: exp.Expr) -> None:
    for kind, what in _REFUSED:
        for refused in query.find_all(kind):
            msg = f"{what} ({refused.sql(_READ)})"
            raise SqlglotError(msg)
    for unsorted in query.find_all(exp.ArrayAgg):
        if not isinstance(unsorted.parent, exp.ArraySort):
            msg = f"list() outside of list_sort(): Spark keeps no order ({unsorted.sql(_READ)})"
            raise SqlglotError(msg)
    for star in query.find_all(exp.Star):
        if any(star.args.get(key) for key in ("except_", "replace", "rename")):
            msg = "a star with EXCLUDE, REPLACE or RENAME, which Spark 3.5 does not have"
            raise SqlglotError(msg)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Rewrite a node that Spark would refuse if sqlglot copied it; return other nodes unchanged."""
    match node:
        case exp.CTE():
            node.set("materialized", None)
        case exp.Select() if len([*filter(_is_unnested, node.expressions)]) > 1:
            return _inlined(node)
    return node


def _is_unnested(column: exp.Expr) -> bool:
    return isinstance(column.unalias(), exp.Explode)


def _inlined(select: exp.Select) -> exp.Expr:
    """Rewrite a SELECT that unnests several lists, as Spark can unnest only one list in a SELECT.

    The new SELECT has one call of ``INLINE``.

    :raise SqlglotError: if the SELECT has other columns, or a FROM
    """
    if select.args.get("from_") or not all(map(_is_unnested, select.expressions)):
        msg = f"several lists to rows next to other columns ({select.sql(_READ)})"
        raise SqlglotError(msg)
    lists = ", ".join(column.unalias().this.sql(_WRITE) for column in select.expressions)
    names = ", ".join(f"`{column.alias}`" for column in select.expressions)
    return sqlglot.parse_one(f"SELECT INLINE(ARRAYS_ZIP({lists})) AS ({names})", read=_WRITE)


# --- texts of events to facts ---------------------------------------------------------------------
#
# The executors call :func:`..facts.facts_of` for each text.
#
# Spark's file systems read the sources: ``hdfs:``, ``s3a:``, ``abfss:``, or a folder that all nodes
# have. A file's name tells its format: a ``.ndjson`` or ``.jsonl`` file has lines, which Spark
# splits among its tasks; a ``.json`` file is read whole; each may end in ``.gz``. Capture bundles
# are refused: the files of a bundle belong together, but here each file is read alone;
# ``sparklineage history build`` merges them. Each build reads the whole of its sources: there are
# no marks here, and events that the store has are recognised by their checksum. The executors need
# this package in their Python, as they do for any module that a job imports.


SKIPPED = "skipped"
"""A column of :func:`facts` that the tables lack: the reason if a text has no facts, else null."""

_OF_LINES = "*.{ndjson,jsonl,ndjson.gz,jsonl.gz}"
_WHOLE = "*.{json,json.gz}"
# When Spark plans tasks, it counts this many bytes more for each file. With Spark's default of
# 4 MB, a task would have only 30 files of one event each.
_OPENING = "spark.sql.files.openCostInBytes", "65536"


def facts(session: SparkSession, sources: Sequence[str]) -> DataFrame:
    """Read the facts of all events in files and folders.

    :param session: a session from :func:`session_of`
    :param sources: paths or URLs for Spark
    :return: rows with the columns of :data:`.tables.FACTS` and :data:`SKIPPED`
    :raise HistoryError: if there is a capture bundle in the sources
    """
    session.conf.set(*_OPENING)
    for source in sources:
        _refuse_bundles(session, source)
    parts = [part for source in sources for part in _parts(session, source.rstrip("/"))]
    schema = f"{spark_schema(FACTS.columns)}, {SKIPPED} STRING"
    return session.read.schema(schema).json(session.sparkContext.union(parts))


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


# --- building -------------------------------------------------------------------------------------
#
# Three passes lead from events to tables; each reads the files that the pass before wrote.
#
# 1. texts → facts;
# 2. facts that are new to the target → one more part of the facts;
# 3. all facts → the tables, step by step.
#
# So no pass runs twice, and a lost executor costs only its current tasks. Readers of a store see
# the new tables only when the target publishes them. A target is a store (:class:`Parquet`) or a
# namespace of an Iceberg catalog (:class:`Iceberg`). A new kind of target needs the three methods
# of :class:`Target`.


SESSION = {
    # Times in the tables have no zone; a session zone other than UTC could shift them.
    "spark.sql.session.timeZone": "UTC",
    # Errors in a query raise, as in DuckDB and by default in Spark 4; else Spark 3.5 gives null.
    "spark.sql.ansi.enabled": "true",
}

# Of several files with the same event, the first by name is used: else builds would differ.
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
    """The result of a build.

    :param events: number of documents in all sources, including those that are not events
    :param new: number of events that the target did not have
    :param skipped: number of texts and files without facts, by reason
    :param rows: number of rows that each table has now
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]


class Target(Protocol):
    """A place to which a build writes facts and tables."""

    def facts(self) -> DataFrame:
        """Give all facts of the target, including those just added."""

    def add(self, facts: DataFrame) -> None:
        """Add facts to the target."""

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write the rows of a table, sorted, and give the rows as they are read from the target."""


def session_of(session: SparkSession) -> SparkSession:
    """Give a new session of the same application, with views of its own and :data:`SESSION` set."""
    own = session.newSession()
    for key, value in SESSION.items():
        own.conf.set(key, value)
    return own


def build(session: SparkSession, read: DataFrame, target: Target) -> Counts:
    """Add the facts of new events to a target, and make its tables from all of its facts.

    An event is new if :meth:`Target.facts` does not have it. An event that several files have is
    added once. The tables are made anew even if no event is new.

    :param session: a session from :func:`session_of`
    :param read: the rows from :func:`facts`
    :return: the numbers of documents, new events, skipped texts, and rows of the tables
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


def _new(session: SparkSession, read: DataFrame, known: DataFrame) -> DataFrame:
    read.createOrReplaceTempView("read_facts")
    known.createOrReplaceTempView("facts")
    columns = ", ".join(f"`{column.name}`" for column in FACTS.columns)
    return session.sql(_NEW.format(columns=columns))


def _tables(session: SparkSession, target: Target) -> dict[str, int]:
    target.facts().createOrReplaceTempView("facts")
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


_WRITING = {
    "compression": "zstd",
    # Row groups are small, because a query skips a group by the group's least and greatest values.
    "parquet.block.size": str(16 * 1024 * 1024),
}
# File systems that have one name in Airflow and another one in Hadoop.
_SCHEMES = {"s3": "s3a", "local": "file"}


class Parquet:
    """A target that is a store of files; DuckDB and Spark read each other's files.

    Spark writes the files to their final place; the manifest names them after all are written.
    """

    def __init__(self, session: SparkSession, building: Building) -> None:
        self._session, self._building = session, building
        self._root = hadoop_url(building.store.url)
        self._parts = dict(building.before.facts)
        self._tables: dict[str, list[str]] = {}

    def facts(self) -> DataFrame:
        """Give all facts, except those of forgotten events; see :meth:`Target.facts`."""
        names = [name for files in self._parts.values() for name in files]
        facts, since = self._read(FACTS, names), self._building.before.since
        if since is None:
            return facts
        start = since.replace(tzinfo=None).isoformat(" ")
        return facts.where(f"event_time >= TIMESTAMP_NTZ '{start}'")

    def add(self, facts: DataFrame) -> None:
        """Add facts to the store as one part: a part is the files that one build wrote."""
        folder = self._building.facts_folder
        self._parts[self._building.facts_part] = self._write(facts, folder)

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write the rows of a table, sorted; see :meth:`Target.save`."""
        folder = f"{self._building.tables_folder}/{table.name}"
        self._tables[table.name] = self._write(rows.orderBy(*table.sorted_by), folder)
        return self._read(table, self._tables[table.name])

    def publish(self, rows: Mapping[str, int], skipped: Mapping[str, int]) -> None:
        """Publish the written files as a new generation (version of all tables) of the store.

        The errors are those of :meth:`.Building.publish`.

        :param rows: number of rows of each table, by name of the table
        :param skipped: number of texts and files that this build has skipped, by reason
        """
        counted = {"events": self.facts().count(), **rows}
        self._building.publish(self._parts, self._tables, counted, skipped)

    def _write(self, rows: DataFrame, folder: str) -> list[str]:
        target = f"{self._root}/{folder}"
        rows.write.options(**_WRITING).parquet(target)
        files = self._session.read.schema(rows.schema).parquet(target).inputFiles()
        return sorted(f"{folder}/{file.rpartition('/')[2]}" for file in files)

    def _read(self, table: Table, names: list[str]) -> DataFrame:
        return table_of(self._session, self._building.store.url, table, names)


def table_of(session: SparkSession, url: str, table: Table, names: Sequence[str]) -> DataFrame:
    """Read files of a store; a column that the files lack is null.

    :param url: the URL of the store
    :param table: the table whose rows the files have
    :param names: the names of the files in the store; if there are none, there are no rows
    """
    schema = spark_schema(table.columns)
    if not names:
        return session.createDataFrame([], schema)
    root = hadoop_url(url)
    # Whole folders are read, each written by one build: in lineage, each path read is a dataset.
    # But a build by DuckDB writes files of all tables into one folder, and later builds name some.
    file = f"/{table.name}."
    places = {name if file in name else name.rpartition("/")[0] for name in names}
    return session.read.schema(schema).parquet(*(f"{root}/{place}" for place in sorted(places)))


def hadoop_url(url: str) -> str:
    """Convert the URL of a store to one for Spark's file systems.

    An Airflow connection in an S3 URL is dropped: Spark has its own credentials.
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
    """A target that is a namespace of an Iceberg catalog, for SQL of any engine.

    Each table is replaced as a whole, in one commit. The table property ``sparklineage.build`` has
    the name of the build that wrote the table, so that a reader of several tables can check that
    one build wrote them all.

    :param namespace: the namespace after its catalog's name, ``lake.history``; it is created if
        absent
    :param build: name of this build
    """

    def __init__(self, session: SparkSession, namespace: str, build: str) -> None:
        self._session, self._build = session, build
        self._namespace = ".".join(f"`{part}`" for part in namespace.split("."))
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")

    def facts(self) -> DataFrame:
        """Give all facts; see :meth:`Target.facts`."""
        if self._has_facts():
            return self._session.table(self._name(FACTS))
        return self._session.createDataFrame([], spark_schema(FACTS.columns))

    def _has_facts(self) -> bool:
        return bool(self._session.catalog.tableExists(self._name(FACTS)))

    def add(self, facts: DataFrame) -> None:
        """Add facts to their table; the first call creates the table."""
        writer = facts.writeTo(self._name(FACTS))
        if self._has_facts():
            writer.append()
        else:
            writer.using("iceberg").create()

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Replace the rows of a table; see :meth:`Target.save`."""
        name = self._name(table)
        writer = rows.orderBy(*table.sorted_by).writeTo(name).using("iceberg")
        writer = writer.tableProperty("sparklineage.version", str(VERSION))
        writer.tableProperty("sparklineage.build", self._build).createOrReplace()
        return self._session.table(name)

    def _name(self, table: Table) -> str:
        return f"{self._namespace}.`{table.name}`"


# --- asking ---------------------------------------------------------------------------------------
#
# The queries can run on Spark if the tables are too large for one machine.
#
# The functions of :mod:`airflow_provider_sparklineage.history.queries` give the same answers as
# with DuckDB: they take any object with the method ``rows``. A question takes seconds here instead
# of milliseconds, because each of its queries is a job.


_LIST, _TIME = "FROM_JSON({}, 'ARRAY<STRING>')", "CAST({} AS TIMESTAMP_NTZ)"


class History:
    """A generation of a store (a version of all its tables), open for queries that run on Spark.

    It is a context manager, and is used like :class:`.duckdb.History`:

    ::

        with History(session, Store.open("s3://lake/history")) as history:
            hops = trace(history, dataset_of(history, "revenue"), "dt=2024-10-15")

    :param session: a Spark session, whose settings and views are not changed
    :param store: a store whose files Spark can read
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
        """Run a query on the tables; give each row as a mapping from column names to values.

        :param sql: in DuckDB's dialect
        :param parameters: values of ``$name`` in the query; a list becomes an array of strings
        :raise HistoryError: if Spark cannot run the query, or a file cannot be read
        """
        from pyspark.errors import PySparkException

        values = dict(parameters or {})
        try:
            text = spark_sql(sql, {name: written for name, value in values.items()
                                   if (written := _written(value))})  # fmt: skip
            rows = self._session.sql(text, {name: _bound(one) for name, one in values.items()})
            return [row.asDict() for row in rows.collect()]
        except PySparkException as error:
            problem = f"The history could not be asked ({reason(error)})."
            raise HistoryError(problem) from error

    def close(self) -> None:
        """Drop the views of the tables."""
        for table in TABLES:
            self._session.catalog.dropTempView(table.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _written(value: object) -> str:
    """Give the SQL that casts a parameter to its type; empty if its value needs no cast.

    :return: ``CAST({} AS …)``, in which ``{}`` stands for the parameter
    """
    if isinstance(value, list | tuple):
        return _LIST
    return _TIME if isinstance(value, datetime) else ""


def _bound(value: object) -> object:
    """Give the value to bind for a parameter.

    A list is bound as one JSON text, because Spark would bind each of its elements. A time is bound
    as a text, because Spark reads Python's times in the zone of the machine.
    """
    if isinstance(value, list | tuple):
        return json.dumps([None if one is None else str(one) for one in value])
    return str(value) if isinstance(value, datetime) else value
