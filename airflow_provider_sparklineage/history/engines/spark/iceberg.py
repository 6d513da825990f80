"""Facts and tables as tables of an Iceberg catalog, for SQL of any engine that reads one.

Each table is replaced whole and at once; which build it is of is its property
``sparklineage.build``, by which a reader that joins several can see that they belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.tables import FACTS, VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Table


class Iceberg:
    """A namespace of a catalog that the session knows.

    :param namespace: with its catalog, ``lake.history``; it is created if it is absent
    :param build: what this build is called
    """

    def __init__(self, session: SparkSession, namespace: str, build: str) -> None:
        self._session, self._build = session, build
        self._namespace = ".".join(f"`{part}`" for part in namespace.split("."))
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept; see :class:`.building.Target`."""
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
