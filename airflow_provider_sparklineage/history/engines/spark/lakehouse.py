"""Targets that are tables of Iceberg or of Delta Lake, for SQL of any engine.

The table property ``sparklineage.build`` has the name of the build that wrote the table, so that a
reader of several tables can check that one build wrote them all. A commit changes one table. So
while a merge changes a table, the property has a name that no other table has; it gets the name of
the build when all rows are there. If the property differs among the tables, readers have to wait;
and if no build runs, the next one makes the tables anew, as one was interrupted.

Rows are written in the order of their dataset, or of their time. Both formats note the least and
the greatest value of each column for each file, so a merge reads few files if it asks for names
and times by literals (:func:`_between`, :meth:`Lakehouse._named`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.affected import BY_RUN, is_replaced, new_rows
from airflow_provider_sparklineage.history.engines.layouts import DATASET, columns_of
from airflow_provider_sparklineage.history.engines.spark.sql import (
    spark_schema,
    spark_selection,
    spark_sql,
)
from airflow_provider_sparklineage.history.tables import FACTS, TABLES, VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Table

_BUILD, _VERSION = "sparklineage.build", "sparklineage.version"
_MAX_NAMES = 200
"""Number of datasets up to which their names are written into a query, to skip files."""
MAX_FILES = 64
"""Number of files of a table above which a merge joins them, if they are small."""
_SMALL = 16 * 2**20  # bytes of a file on average


class Lakehouse(ABC):
    """A target of tables that have transactions, each for itself; see :class:`.building.Target`.

    :param build: name of this build
    """

    format: str
    """Name of the format in Spark."""
    properties: dict[str, str] = {}  # noqa: RUF012 - nothing changes it
    """Properties of the table of facts that this format needs."""

    def __init__(self, session: SparkSession, build: str) -> None:
        self._session, self._build = session, build
        self._snapshot: int | None = None
        self._changed: dict[Table, DataFrame] = {}

    @abstractmethod
    def _name(self, table: Table) -> str:
        """Give the name of a table in SQL."""

    @abstractmethod
    def _is_there(self, table: Table) -> bool:
        """Whether a table exists."""

    @abstractmethod
    def _latest(self) -> int | None:
        """Give the latest snapshot of the facts; None if there is none."""

    @abstractmethod
    def _facts_at(self, snapshot: int | None) -> DataFrame:
        """Give the facts of a snapshot."""

    @abstractmethod
    def _facts_since(self, snapshot: int | None) -> DataFrame:
        """Give the facts that were added after a snapshot."""

    @abstractmethod
    def _file_sizes(self, table: Table) -> tuple[int, int]:
        """Give the number of the files of a table, and of their bytes."""

    @abstractmethod
    def _join_files(self, table: Table, order: tuple[str, ...]) -> None:
        """Write the rows of small files to large ones, in some order."""

    def facts(self) -> DataFrame:
        """Give all facts."""
        if self._is_there(FACTS):
            return self._session.table(self._name(FACTS))
        return self._session.createDataFrame([], spark_schema(FACTS.columns))

    def not_forgotten(self, facts: DataFrame) -> DataFrame:
        """Give all of the facts: nothing is forgotten."""
        return facts

    def add(self, facts: DataFrame) -> None:
        """Add facts to their table; the first call creates the table.

        The property is set before, so that a build that ends here does not look whole.
        """
        name = self._name(FACTS)
        if self._is_there(FACTS):
            self._set(FACTS, self._build)
            self._compact(FACTS)
            self._snapshot = self._latest()
            facts.writeTo(name).append()
        else:
            writer = facts.writeTo(name).using(self.format).tableProperty(_BUILD, self._build)
            for key, value in self.properties.items():
                writer = writer.tableProperty(key, value)
            writer.create()

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Replace all rows of a table, in one commit."""
        name = self._name(table)
        writer = rows.orderBy(*_order(table)).writeTo(name).using(self.format)
        writer = writer.tableProperty(_VERSION, str(VERSION))
        writer.tableProperty(_BUILD, self._build).createOrReplace()
        return self._session.table(name)

    def is_mergeable(self, new: int) -> bool:
        """Whether one build has written all tables, and the facts, with no other one since."""
        del new
        if not all(map(self._is_there, (FACTS, *TABLES))):
            return False
        found = [self._properties(table) for table in (FACTS, *TABLES)]
        builds = {properties.get(_BUILD) for properties in found}
        versions = {properties.get(_VERSION) for properties in found[1:]}
        return len(builds) == 1 and None not in builds and versions == {str(VERSION)}

    def added(self) -> DataFrame:
        """Give the facts that this build has added."""
        return self._facts_since(self._snapshot)

    def older(self, affected: DataFrame) -> DataFrame:
        """Give the facts that were there before, of the times of the affected runs."""
        facts = self._facts_at(self._snapshot)
        times = facts.select("run_id", "event_time").join(affected, "run_id", "left_semi")
        return facts.where(_between("event_time", times))

    def stored(self, table: Table) -> DataFrame:
        """Give the rows of a table before; if it has a dataset, those of the affected datasets."""
        rows = self._session.table(self._name(table))
        return rows.where(self._named("datasets")) if table.is_by_dataset else rows

    def replace(self, table: Table) -> int:
        """Delete the rows that are replaced by others, and insert these, in one commit."""
        changes = self._changes(table)
        deleted = changes.where("is_deleted")
        if not changes.isEmpty():
            self._set(table, f"{self._build}/{table.name}")
            if deleted.isEmpty():
                changes.drop("is_deleted").writeTo(self._name(table)).append()
            else:
                self._merge(table, changes, deleted)
            self._compact(table)
        self._set(table, self._build)
        return int(self._session.table(self._name(table)).count())

    def _merge(self, table: Table, changes: DataFrame, deleted: DataFrame) -> None:
        changes.createOrReplaceTempView("merged_rows")
        deleted.createOrReplaceTempView("deleted_rows")
        skipping = (
            self._named("deleted_rows", "t.")
            if table.is_by_dataset
            else _between(table.time, deleted, "t.")
        )
        same = " AND ".join(f"t.`{one.name}` <=> s.`{one.name}`" for one in table.columns)
        names = ", ".join(f"`{one.name}`" for one in table.columns)
        self._session.sql(
            f"MERGE INTO {self._name(table)} AS t USING merged_rows AS s "
            f"ON s.is_deleted AND {same} AND ({skipping}) WHEN MATCHED THEN DELETE "
            f"WHEN NOT MATCHED AND NOT s.is_deleted THEN INSERT ({names}) "
            f"VALUES ({', '.join(f's.`{one.name}`' for one in table.columns)})"
        )

    def _changes(self, table: Table) -> DataFrame:
        """Give the rows to delete and to insert: those whose number is another one than before."""
        if table in BY_RUN:
            return self._changed[BY_RUN[table]]
        old, new = "old_rows", "new_rows"
        if table.is_by_dataset:
            rows = self.stored(table)
        else:
            times = self._sql("SELECT ended FROM old_runs SEMI JOIN affected USING (run_id)")
            rows = self._session.table(self._name(table)).where(_between("ended", times))
        rows.createOrReplaceTempView("all_rows")
        query = f"SELECT {columns_of(table, 'r')} FROM all_rows AS r WHERE {is_replaced(table)}"
        self._sql(query).createOrReplaceTempView(old)
        rows = self._sql(new_rows(table)).selectExpr(*spark_selection(table))
        rows.createOrReplaceTempView(new)
        columns = columns_of(table)
        counted = (
            f"SELECT {columns}, SUM(CASE WHEN is_new THEN 0 ELSE 1 END) AS old_count, "
            "SUM(CASE WHEN is_new THEN 1 ELSE 0 END) AS new_count FROM "
            f"(SELECT {columns}, FALSE AS is_new FROM {old} "
            f"UNION ALL SELECT {columns}, TRUE AS is_new FROM {new}) AS r GROUP BY {columns}"
        )
        self._sql(counted).where("old_count <> new_count").createOrReplaceTempView("counted")
        columns = columns.replace('"', "`")
        changes = self._session.sql(
            f"SELECT {columns}, TRUE AS is_deleted FROM counted WHERE old_count > 0 UNION ALL "
            f"SELECT {columns}, FALSE AS is_deleted FROM counted "
            "LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(new_count AS INT))) copies AS copy"
        )
        changes = changes.localCheckpoint()
        if table in BY_RUN.values():
            self._changed[table] = changes
        return changes

    def _named(self, view: str, row: str = "") -> str:
        """Give the condition that a row is of a dataset of a view, or may be, if it has many."""
        found = self._session.table(view).select("name").distinct().limit(_MAX_NAMES + 1).collect()
        if len(found) > _MAX_NAMES or any(one.name is None for one in found):
            return "TRUE"
        names = ", ".join(map(_literal, sorted(one.name for one in found)))
        return f"{row}`name` IN ({names})" if names else "FALSE"

    def _compact(self, table: Table) -> None:
        files, size = self._file_sizes(table)
        if files > MAX_FILES and size < files * _SMALL:
            self._join_files(table, _order(table))

    def _set(self, table: Table, build: str) -> None:
        properties = f"'{_BUILD}' = '{build}'"
        self._session.sql(f"ALTER TABLE {self._name(table)} SET TBLPROPERTIES ({properties})")

    def _properties(self, table: Table) -> dict[str, str]:
        return dict(self._session.sql(f"SHOW TBLPROPERTIES {self._name(table)}").collect())

    def _sql(self, query: str) -> DataFrame:
        return self._session.sql(spark_sql(query))


def _order(table: Table) -> tuple[str, ...]:
    """Give the columns by which the rows of a table are divided among files."""
    if table.is_by_dataset:
        return tuple(dict.fromkeys((*DATASET, *table.sorted_by)))
    return table.sorted_by or ("event_time",)


def _between(column: str, rows: DataFrame, row: str = "") -> str:
    """Give a condition on a column of times that some rows fulfil, from their first to their last.

    :param row: name of the row that the condition is for, with a dot
    """
    first, last, nulls = rows.selectExpr(
        f"CAST(MIN({column}) AS STRING)",
        f"CAST(MAX({column}) AS STRING)",
        f"COUNT_IF({column} IS NULL)",
    ).collect()[0]
    ranges = f"{row}{column} BETWEEN TIMESTAMP_NTZ'{first}' AND TIMESTAMP_NTZ'{last}'"
    conditions = [ranges] * bool(first) + [f"{row}{column} IS NULL"] * bool(nulls)
    return " OR ".join(conditions) or "FALSE"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class Iceberg(Lakehouse):
    """Tables of a namespace of an Iceberg catalog.

    :param namespace: the namespace after its catalog's name, ``lake.history``; it is created if
        absent
    """

    format = "iceberg"

    def __init__(self, session: SparkSession, namespace: str, build: str) -> None:
        super().__init__(session, build)
        self._catalog, *_ = namespace.split(".")
        self._namespace = ".".join(f"`{part}`" for part in namespace.split("."))
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")

    def _name(self, table: Table) -> str:
        return f"{self._namespace}.`{table.name}`"

    def _is_there(self, table: Table) -> bool:
        return bool(self._session.catalog.tableExists(self._name(table)))

    def _latest(self) -> int | None:
        rows = self._session.sql(
            f"SELECT snapshot_id FROM {self._name(FACTS)}.snapshots "
            "ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        return rows[0].snapshot_id if rows else None

    def _facts_at(self, snapshot: int | None) -> DataFrame:
        reader = self._session.read.format("iceberg").option("snapshot-id", str(snapshot))
        return reader.load(self._name(FACTS))

    def _facts_since(self, snapshot: int | None) -> DataFrame:
        reader = self._session.read.format("iceberg")
        if snapshot is not None:
            reader = reader.option("start-snapshot-id", snapshot)
        return reader.load(self._name(FACTS))

    def _file_sizes(self, table: Table) -> tuple[int, int]:
        query = f"SELECT COUNT(*), SUM(file_size_in_bytes) FROM {self._name(table)}.files"
        files, size = self._session.sql(query).collect()[0]
        return files, size or 0

    def _join_files(self, table: Table, order: tuple[str, ...]) -> None:
        # Iceberg cannot parse an order in the call if Delta's parser is around its own.
        name, columns = self._name(table), ", ".join(f"`{column}`" for column in order)
        self._session.sql(f"ALTER TABLE {name} WRITE LOCALLY ORDERED BY {columns}")
        self._session.sql(
            f"CALL `{self._catalog}`.system.rewrite_data_files(table => {_literal(name)}, "
            "strategy => 'sort', options => map('min-input-files', '2'))"
        )


class Delta(Lakehouse):
    """Tables of Delta Lake, in a folder or in a schema.

    :param place: URL of the folder, ``s3a://lake/history``, or the schema, ``lake.history``, which
        is created if absent
    """

    format = "delta"
    properties = {"delta.enableChangeDataFeed": "true"}  # noqa: RUF012 - nothing changes it

    def __init__(self, session: SparkSession, place: str, build: str) -> None:
        super().__init__(session, build)
        self._folder = place.rstrip("/") if "/" in place else ""
        self._schema = ".".join(f"`{part}`" for part in place.split("."))
        if not self._folder:
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")

    def _name(self, table: Table) -> str:
        if self._folder:
            return f"delta.`{self._folder}/{table.name}`"
        return f"{self._schema}.`{table.name}`"

    def _is_there(self, table: Table) -> bool:
        from pyspark.errors import AnalysisException

        try:
            return bool(self._session.catalog.tableExists(self._name(table)))
        except AnalysisException as error:  # Delta raises it for a folder that has no table
            if "DELTA_MISSING_DELTA_TABLE" not in str(error):
                raise
            return False

    def _latest(self) -> int | None:
        return int(
            self._session.sql(f"DESCRIBE HISTORY {self._name(FACTS)} LIMIT 1").collect()[0].version
        )

    def _facts_at(self, snapshot: int | None) -> DataFrame:
        return self._session.read.option("versionAsOf", snapshot).table(self._name(FACTS))

    def _facts_since(self, snapshot: int | None) -> DataFrame:
        reader = self._session.read.option("readChangeFeed", "true")
        reader = reader.option("startingVersion", (snapshot or 0) + 1)
        rows = reader.table(self._name(FACTS))
        return rows.select(*(f"`{column.name}`" for column in FACTS.columns))

    def _file_sizes(self, table: Table) -> tuple[int, int]:
        detail = self._session.sql(f"DESCRIBE DETAIL {self._name(table)}").collect()[0]
        return detail.numFiles, detail.sizeInBytes

    def _join_files(self, table: Table, order: tuple[str, ...]) -> None:
        columns = ", ".join(f"`{one}`" for one in order[:2])
        self._session.sql(f"OPTIMIZE {self._name(table)} ZORDER BY ({columns})")
