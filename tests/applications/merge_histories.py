"""Builds histories from chunks of events, each by the engine that a file names for it.

Of tables of Iceberg, the rows are written to files in the end, and the builds that the tables name
after each chunk. A *killed* build ends while it merges.
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
from airflow_provider_sparklineage.history.engines.spark import files
from airflow_provider_sparklineage.history.engines.spark.iceberg import Iceberg
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.spark_jobs.build_history import built
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import CHANGES, FACTS, TABLES

files.MAX_PARTS = 2  # so that parts of the facts are joined, too
work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()


def killed(session, file, store):
    """Begin a build of tables of Iceberg, and end in the midst of the merge."""
    replace = Iceberg.replace

    def call(target, table):
        if table is CHANGES:
            raise KeyboardInterrupt
        return replace(target, table)

    with patch.object(Iceberg, "replace", call), suppress(KeyboardInterrupt):
        built(session, [file], store, "iceberg")


def builds_of(store):
    """Give the builds that tables name."""
    tables, fresh = {}, session.newSession()  # as a session remembers tables for a while
    for table in (FACTS, *TABLES):
        found = fresh.sql(f"SHOW TBLPROPERTIES {store}.`{table.name}`").collect()
        tables[table.name] = dict(found).get("sparklineage.build")
    return tables


named = []
for one in json.loads((work / "merges.json").read_text()):
    for engine, file in one["chunks"]:
        sizes = Sizes(*one["sizes"])
        if engine == "duckdb":
            build(Store(one["store"]), [source_of(file)], sizes=sizes)
        elif engine == "killed":
            killed(session, file, one["store"])
        else:
            built(session, [file], one["store"], engine, sizes)
        if engine in ("iceberg", "killed"):
            named.append(builds_of(one["store"]))
    if engine == "iceberg":
        for table in TABLES:
            rows = session.newSession().table(f"{one['store']}.`{table.name}`")
            rows.coalesce(1).write.parquet(str(work / "lakehouse" / table.name))
(work / "named.json").write_text(json.dumps(named))
session.stop()
