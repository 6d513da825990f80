"""Facts and tables as files of a store, next to DuckDB's: each reads what the other wrote.

Spark writes the files where they stay; no manifest names them before all are there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_provider_sparklineage.history.engines.spark.sql import spark_schema
from airflow_provider_sparklineage.history.tables import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table

_WRITING = {
    "compression": "zstd",
    # Groups of rows are what a query passes over by their least and greatest values: small ones.
    "parquet.block.size": str(16 * 1024 * 1024),
}
# What Airflow calls file systems otherwise than Hadoop does.
_SCHEMES = {"s3": "s3a", "local": "file"}


class Parquet:
    """What a build writes to a store."""

    def __init__(self, session: SparkSession, building: Building) -> None:
        self._session, self._building = session, building
        self._root = hadoop_url(building.store.url)
        self._parts = dict(building.before.facts)
        self._tables: dict[str, list[str]] = {}

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept; see :class:`.building.Target`."""
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
