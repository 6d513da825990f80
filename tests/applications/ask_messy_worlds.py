"""Builds many messy worlds as one store, and asks Spark about each of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_sparklineage.history.spark_jobs.build_history import built
from airflow_provider_sparklineage.history.store import Store
from tests.history.messy import on_spark

work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()
asked = json.loads((work / "worlds.json").read_text())
(work / "events").mkdir()
for seed in asked["seeds"]:
    on_spark.write(seed, work / "events")
built(session, [str(work / "events")], str(work / "store"), "parquet")
session.conf.set("spark.sql.shuffle.partitions", 1)
store = Store.open(str(work / "store"))
found = {}
for seed in asked["seeds"]:
    found[seed] = on_spark.asked(session, store, seed, asked["questions"])
    (work / "found.json").write_text(json.dumps(found))
session.stop()
