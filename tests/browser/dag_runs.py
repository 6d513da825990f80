"""Run the DAGs whose lineage the tests look at: ``python -m tests.browser.dag_runs FOLDER``.

In a process of its own, because Airflow forks to send events, which a process that drives a browser
does not survive. The environment selects the Airflow; the result is a file with the run of
each DAG.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.browser import recorded_flights
from tests.browser.auth_manager import DENIED_DAG

SHOWN_DAG = "lineage_shown"
RESULT = "runs.json"
OTHER_CONN_ID = "other_marquez"
"""A connection that a task has, and that the API server does not know."""
OTHER_WEB_URL = "http://other-marquez.example:3000"
DAY = datetime(2024, 5, 6, tzinfo=UTC)


def main(folder: Path) -> None:
    """Run the operator itself, around a spark-submit that replays a recorded job."""
    given = dict(os.environ)
    from tests.spark_submit_double import FakeSparkSubmit

    os.environ.update(given)  # the tests' own Airflow home is the one that was given
    from airflow.utils.db import initdb

    from tests.dag_runs.conftest import run_as_dags_test

    initdb()
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    DagBundlesManager().sync_bundles_to_db()
    recorded_flights.write_runs()
    other = {"conn_type": "sparklineage", "extra": {"web_url": OTHER_WEB_URL}}
    os.environ[f"AIRFLOW_CONN_{OTHER_CONN_ID.upper()}"] = json.dumps(other)
    fake = FakeSparkSubmit(folder)
    with pytest.MonkeyPatch.context() as patch:
        fake.install(patch)
        # The first try of the first task fails, its second one and all others do not.
        fake.does(events="staging_chain", exit=1)
        dags = (shown_dag(lambda _context: fake.does(events="staging_chain")), denied_dag())
        runs = [run_as_dags_test(dag, DAY) for dag in dags]
    (folder / RESULT).write_text(json.dumps({run.dag_id: [run.run_id, run.state] for run in runs}))


def shown_dag(on_retry):
    """Make a DAG with a task that is tried twice, a mapped one, and one without lineage."""
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    with DAG(SHOWN_DAG, schedule=None, start_date=DAY) as dag:
        revenue = SparkLineageSubmitOperator(
            task_id="revenue",
            application="staging_chain.py",
            writes=["/lake/revenue/dt={{ ds }}"],
            retries=1,
            retry_delay=timedelta(0),
            on_retry_callback=on_retry,
        )
        mapped = SparkLineageSubmitOperator.partial(
            task_id="mapped", application="staging_chain.py", lineage_conn_id=OTHER_CONN_ID
        ).expand(application_args=[["a"], ["b"]])
        plain = SparkLineageSubmitOperator(task_id="plain", application="job.py", lineage=False)
        revenue >> mapped >> plain
    return dag


def denied_dag():
    """Make a DAG that one user may not see."""
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    with DAG(DENIED_DAG, schedule=None, start_date=DAY) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="staging_chain.py")
    return dag


if __name__ == "__main__":
    main(Path(sys.argv[1]))
