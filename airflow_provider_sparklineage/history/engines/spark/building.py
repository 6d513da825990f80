"""Three passes from events to tables, each of which goes on from files that the one before wrote.

1. texts → facts (:mod:`.reading`);
2. facts that are not there yet → one more part of the facts;
3. all facts → the tables, step by step.

So nothing is worked out twice, and an executor that is lost costs what it was at. Nobody sees any
of it before the target publishes it. A target is a store (:class:`Parquet`) or a namespace of an
Iceberg catalog (:class:`Iceberg`); to add one, give the three methods of :class:`Target`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_provider_sparklineage.history.engines.spark.reading import SKIPPED
from airflow_provider_sparklineage.history.engines.spark.sql import (
    spark_schema,
    spark_selection,
    spark_sql,
)
from airflow_provider_sparklineage.history.facts import Reason
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table


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
