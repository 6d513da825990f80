"""Builds the histories that a file lists in one application, and asks what another one lists."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_sparklineage.history.engines.spark import History
from airflow_provider_sparklineage.history.engines.spark.reading import facts
from airflow_provider_sparklineage.history.spark_jobs.build_history import built
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import TABLES
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.history.answers import answers

work = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()
builds = json.loads((work / "builds.json").read_text())
counts = [built(session, **one)._asdict() for one in builds]
for store in {one["store"] for one in builds if one["format_"] == "iceberg"}:
    found = {}
    for table in TABLES:
        name = f"{store}.`{table.name}`"
        files = [
            row.file_path for row in session.sql(f"SELECT file_path FROM {name}.files").collect()
        ]
        found[table.name] = files, dict(session.sql(f"SHOW TBLPROPERTIES {name}").collect())
    (work / "iceberg.json").write_text(json.dumps(found))
(work / "counts.json").write_text(json.dumps(counts))
if (work / "refused.json").exists():
    try:
        facts(session, json.loads((work / "refused.json").read_text()))
    except HistoryError as error:
        (work / "refused.txt").write_text(str(error))
if (work / "questions.json").exists():
    asked = json.loads((work / "questions.json").read_text())
    with History(session, Store.open(asked["store"])) as history:
        (work / "answers.json").write_text(json.dumps(answers(history, asked["questions"])))
session.stop()
