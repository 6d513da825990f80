"""
Stop a run that wrote the wrong partition, although its Spark job succeeded.

Run ``example_report_flight_delays`` for a day of January 2013 first, which lays out the flights.
Then unpause this, and run it:
``airflow dags trigger example_catch_wrong_partition --logical-date 2013-01-08``.

What you will see: the job is given 2013-01-08 and, because of an old mistake in it, reads and
writes 2013-01-07. Spark is content; the task fails with what was written and what was expected, and
is not retried. Its lineage event is a FAIL that has both.

The jobs need Java, ``spark-submit`` on the worker's PATH, and the lake of the other example.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

JOBS = Path(__file__).parent / "spark_jobs"

# Short, as Marquez shows fifteen characters of a name; another one if another user has that.
LAKE = Path("/tmp/nyc")  # noqa: S108 — an example's tables
if LAKE.exists() and LAKE.stat().st_uid != os.getuid():
    LAKE = Path(f"/tmp/nyc-{os.getuid()}")  # noqa: S108

with DAG(
    dag_id="example_catch_wrong_partition",
    description="A job that is off by one day, caught",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    params={
        "lake": Param(
            str(LAKE),
            type="string",
            minLength=1,
            title="Lake",
            description="Folder, or URI that Spark can write to, under which all tables are.",
        )
    },
    tags=["example"],
) as dag:
    carrier_delays = SparkLineageSubmitOperator(
        task_id="carrier_delays",
        application=f"{JOBS}/carrier_delays.py",
        application_args=[
            "--flights",
            "{{ params.lake }}/flights",
            "--date",
            "{{ ds }}",
            "--output",
            "{{ params.lake }}/carrier_delays",
        ],
        conf={
            "spark.log.level": "WARN",
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
        },
        writes=[DatasetSubset("{{ params.lake }}/carrier_delays", {"flight_date": "{{ ds }}"})],
        on_partition_mismatch="fail",
    )
