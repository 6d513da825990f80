"""Runs jobs of `make truth`, or plants what they find; what fails is in `failed.json`."""

import json
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.truth.job import Lake
from tests.truth.jobs import load

spark = SparkSession.builder.appName("truth_jobs").getOrCreate()
root = Path(sys.argv[1])
plan = json.loads((root / "plan.json").read_text())
failed = {}
for name, job in load(plan["jobs"]).items():
    print(f"{name}: {plan['phase']}", flush=True)
    lake = Lake(spark, root, plan["format"], name)
    if plan["format"] == "iceberg":
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lakehouse.{name}")
    else:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
    try:
        if plan["phase"] == "plant":
            job.plant(lake)
            continue
        for key, value in job.conf.items():
            spark.conf.set(key, value)
        try:
            job.run(lake)
        finally:
            for key in job.conf:
                spark.conf.unset(key)
            for table in spark.catalog.listTables("default"):
                if table.isTemporary:
                    spark.catalog.dropTempView(table.name)
    except Exception:  # the other jobs run all the same
        failed[name] = traceback.format_exc()
(root / "failed.json").write_text(json.dumps(failed))
spark.stop()
