"""
Build the history of all tasks on Spark, by a task whose own lineage becomes a part of it.

Run any task with lineage first, e.g. ``example_report_flight_delays`` for 2013-01-07. Then unpause
this, and run it twice, the second time for 2013-01-09:
``airflow dags trigger example_build_history --logical-date 2013-01-08``.

What you will see: the task reads the archive and writes the tables of the history, which
``sparklineage history show``, the questions and the page read as they read those that DuckDB makes.
What it read and wrote is an event of the archive, too, in which each table has one name, whichever
build wrote it: after the second run the first one is in the tables that it built.

DuckDB is quick enough for a year of a middle-sized Airflow; this is for more. The job needs Java,
``spark-submit`` on the worker's PATH, and an archive where Spark can read it: that of Airflow's
configuration, unless a run is given another one. In a cluster the executors need this package in
their Python.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Param

from airflow_provider_sparklineage.history.spark_jobs import BUILD_HISTORY
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

# With executors on other machines there is none until [sparklineage] archive_url names it.
ARCHIVE = sources.archive_url() or "file:///tmp/nyc/archive"
STORE = sources.history_url() if sources.archive_url() else "file:///tmp/nyc/history"

# What a build's own folders add to the names of tables.
NUMBERED = r"(?<remove>/generations/\d+-\w+|(?<=/facts)/\d+-\w+)"

with DAG(
    dag_id="example_build_history",
    description="The history of what all tasks read and wrote, built on Spark",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    # A store has one writer at a time.
    max_active_runs=1,
    params={
        "archive": Param(
            ARCHIVE,
            type="string",
            minLength=1,
            title="Archive",
            description="Folder, or URI that Spark can read, of what tasks have reported.",
        ),
        "store": Param(
            STORE,
            type="string",
            minLength=1,
            title="Store",
            description="Folder, or URI that Spark and Airflow can write to, of the history.",
        ),
    },
    tags=["example"],
) as dag:
    # An option and its value stay on one line.
    # fmt: off
    build_history = SparkLineageSubmitOperator(
        task_id="build_history",
        application=str(BUILD_HISTORY),
        application_args=[
            "{{ params.archive }}",
            "--store", "{{ params.store }}",
        ],
        conf={
            # Each build has folders of its own; in lineage a table is one dataset.
            "spark.openlineage.dataset.removePath.pattern": NUMBERED,
            "spark.log.level": "WARN",
            "spark.ui.enabled": "false",
        },
    )
    # fmt: on
