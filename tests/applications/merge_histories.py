"""Builds histories from chunks of events, each by the engine that a file names for it.

Of tables of Iceberg and Delta, the rows are written to files in the end, with the number of files
of each table, and the builds that the tables name after each chunk. A *killed* build ends while it
merges.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.engines.spark import files, lakehouse
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.spark_jobs.build_history import LAKEHOUSES, built
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import CHANGES, FACTS, TABLES

files.MAX_PARTS = lakehouse.MAX_FILES = 2  # so that parts of the facts and small files are joined
work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()


def killed(session, file, store, format_):
    """Begin a build of tables, and end in the midst of the merge."""
    target = LAKEHOUSES[format_]
    replace = target.replace

    def call(self, table):
        if table is CHANGES:
            raise KeyboardInterrupt
        return replace(self, table)

    with patch.object(target, "replace", call), suppress(KeyboardInterrupt):
        built(session, [file], store, format_)


def table_of(store, format_, table):
    """Name a table in SQL."""
    return f"delta.`{store}/{table.name}`" if format_ == "delta" else f"{store}.`{table.name}`"


def builds_of(store, format_):
    """Give the builds that tables name."""
    tables, fresh = {}, session.newSession()  # as a session remembers tables for a while
    for table in (FACTS, *TABLES):
        found = fresh.sql(f"SHOW TBLPROPERTIES {table_of(store, format_, table)}").collect()
        tables[table.name] = dict(found).get("sparklineage.build")
    return tables


def files_of(store, format_, table):
    """Give the number of files that a table has now."""
    name = table_of(store, format_, table)
    if format_ == "delta":
        return session.sql(f"DESCRIBE DETAIL {name}").collect()[0].numFiles
    return session.newSession().table(f"{name}.files").count()


named, files_left = {}, {}
for one in json.loads((work / "merges.json").read_text()):
    format_ = one["format"]
    for engine, file in one["chunks"]:
        sizes = Sizes(*one["sizes"])
        if engine == "duckdb":
            build(Store(one["store"]), [source_of(file)], sizes=sizes)
        elif engine == "killed":
            killed(session, file, one["store"], format_)
        else:
            built(session, [file], one["store"], format_, sizes)
        if format_ in LAKEHOUSES:
            named.setdefault(format_, []).append(builds_of(one["store"], format_))
    if format_ in LAKEHOUSES:
        for table in TABLES:
            rows = session.newSession().table(table_of(one["store"], format_, table))
            rows.coalesce(1).write.parquet(str(work / f"rows-{format_}" / table.name))
        files_left[format_] = {
            table.name: files_of(one["store"], format_, table) for table in (FACTS, *TABLES)
        }
(work / "named.json").write_text(json.dumps(named))
(work / "files.json").write_text(json.dumps(files_left))
session.stop()
