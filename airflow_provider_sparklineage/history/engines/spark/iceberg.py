"""A target that is a namespace of an Iceberg catalog, for SQL of any engine.

The table property ``sparklineage.build`` has the name of the build that wrote the table, so that a
reader of several tables can check that one build wrote them all. A commit of Iceberg changes one
table. So while a merge changes a table, the property has a name that no other table has; it gets
the name of the build when all rows are there. If the property differs among the tables, readers
have to wait; and if no build runs, the next one makes the tables anew, as one was interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.affected import is_replaced, new_rows
from airflow_provider_sparklineage.history.engines.layouts import columns_of
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


class Iceberg:
    """A target that is a namespace of an Iceberg catalog; see :class:`.building.Target`.

    :param namespace: the namespace after its catalog's name, ``lake.history``; it is created if
        absent
    :param build: name of this build
    """

    def __init__(self, session: SparkSession, namespace: str, build: str) -> None:
        self._session, self._build = session, build
        self._namespace = ".".join(f"`{part}`" for part in namespace.split("."))
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")
        self._snapshot: int | None = None

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
            self._snapshot = self._latest()
            facts.writeTo(name).append()
        else:
            facts.writeTo(name).using("iceberg").tableProperty(_BUILD, self._build).create()

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Replace all rows of a table, in one commit."""
        name = self._name(table)
        writer = rows.orderBy(*table.sorted_by).writeTo(name).using("iceberg")
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
        reader = self._session.read.format("iceberg")
        if self._snapshot is not None:
            reader = reader.option("start-snapshot-id", self._snapshot)
        return reader.load(self._name(FACTS))

    def older(self, affected: DataFrame) -> DataFrame:
        """Give the facts that were there before."""
        del affected
        reader = self._session.read.format("iceberg").option("snapshot-id", str(self._snapshot))
        return reader.load(self._name(FACTS))

    def stored(self, table: Table) -> DataFrame:
        """Give the rows of a table before."""
        return self._session.table(self._name(table))

    def replace(self, table: Table) -> int:
        """Delete the rows that are replaced by others, and insert these, in one commit."""
        changes = self._changes(table).persist()
        if not changes.isEmpty():
            self._set(table, f"{self._build}/{table.name}")
            changes.createOrReplaceTempView("merged_rows")
            same = " AND ".join(f"t.`{one.name}` <=> s.`{one.name}`" for one in table.columns)
            names = ", ".join(f"`{one.name}`" for one in table.columns)
            self._session.sql(
                f"MERGE INTO {self._name(table)} AS t USING merged_rows AS s "
                f"ON s.is_deleted AND {same} WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND "
                f"NOT s.is_deleted THEN INSERT ({names}) "
                f"VALUES ({', '.join(f's.`{one.name}`' for one in table.columns)})"
            )
        changes.unpersist()
        self._set(table, self._build)
        return int(self._session.table(self._name(table)).count())

    def _changes(self, table: Table) -> DataFrame:
        """Give the rows to delete and to insert: those whose number is another one than before."""
        old, new = "old_rows", "new_rows"
        self.stored(table).createOrReplaceTempView("all_rows")
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
        return self._session.sql(
            f"SELECT {columns}, TRUE AS is_deleted FROM counted WHERE old_count > 0 UNION ALL "
            f"SELECT {columns}, FALSE AS is_deleted FROM counted "
            "LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(new_count AS INT))) copies AS copy"
        )

    def _latest(self) -> int | None:
        rows = self._session.sql(
            f"SELECT snapshot_id FROM {self._name(FACTS)}.snapshots "
            "ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        return rows[0].snapshot_id if rows else None

    def _set(self, table: Table, build: str) -> None:
        properties = f"'{_BUILD}' = '{build}'"
        self._session.sql(f"ALTER TABLE {self._name(table)} SET TBLPROPERTIES ({properties})")

    def _properties(self, table: Table) -> dict[str, str]:
        return dict(self._session.sql(f"SHOW TBLPROPERTIES {self._name(table)}").collect())

    def _is_there(self, table: Table) -> bool:
        return bool(self._session.catalog.tableExists(self._name(table)))

    def _name(self, table: Table) -> str:
        return f"{self._namespace}.`{table.name}`"

    def _sql(self, query: str) -> DataFrame:
        return self._session.sql(spark_sql(query))
