"""Builds histories from chunks of events, each by the engine that a file names for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.spark_jobs.build_history import built
from airflow_provider_sparklineage.history.store import Store

work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()
for one in json.loads((work / "merges.json").read_text()):
    for engine, file in one["chunks"]:
        sizes = Sizes(*one["sizes"])
        if engine == "duckdb":
            build(Store(one["store"]), [source_of(file)], sizes=sizes)
        else:
            built(session, [file], one["store"], engine, sizes)
session.stop()
