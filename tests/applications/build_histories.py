"""Builds the histories that a file lists, one after the other in one application."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_sparklineage.history.spark_jobs.build_history import built

work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()
counts = [built(session, **one)._asdict() for one in json.loads((work / "builds.json").read_text())]
(work / "counts.json").write_text(json.dumps(counts))
session.stop()
