"""A real DAG run of a real Spark job: the task's own events carry the merged lineage."""

from __future__ import annotations

import multiprocessing
import os
import select
import shutil
import signal
import sys
import time
from datetime import UTC, datetime
from multiprocessing.connection import wait

import pytest

from tests.dag_runs.conftest import end_senders
from tests.dag_runs.documents import assert_document
from tests.openlineage_spec import validate_event
from tests.record_events import APPLICATIONS

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def lake(orders_lake, tmp_path_factory):
    return str(shutil.copytree(orders_lake, tmp_path_factory.mktemp("dag") / "lake"))


@pytest.fixture
def dag(lake):
    from airflow.sdk import DAG

    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
    from airflow_provider_sparklineage.spark.submit import listener_selection

    listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")
    conf = {
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
    }
    with DAG("golden_dag", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkLineageSubmitOperator(
            task_id="revenue",
            application=f"{APPLICATIONS}/staging_chain.py",
            application_args=[lake],
            conf=conf,
            reads=[f"{lake}/targets/month={{{{ ds[:7] }}}}"],
            writes=[f"{lake}/revenue/dt={{{{ ds }}}}"],
        )
    return dag


@pytest.mark.smoke
def test_start_and_complete_carry_the_lineage_of_the_task(
    spark_on_path, dag, lake, run_dag, events_of
):
    run = run_dag(dag, datetime(2024, 5, 6, tzinfo=UTC))
    assert run.state == "success"
    start, complete = events_of("golden_dag.revenue", 2)
    assert_document(start, "start", lake)
    assert_document(complete, "complete", lake)
    for event in (start, complete):  # last, as it skips the test where the schemas are absent
        validate_event(event)


def test_a_process_of_airflow_that_hangs_ends_with_the_tests(airflow_db, stacks):
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    end_senders(stacks)
    before = {*multiprocessing.active_children()}
    get_openlineage_listener().submit_callable(time.sleep, 600)
    processes = {*multiprocessing.active_children()} - before
    assert processes
    with pytest.warns(RuntimeWarning, match=r"hung:\n.*Current thread"):
        end_senders(stacks, limit_s=0.5)
    assert all(wait([process.sentinel], 0) for process in processes)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such request to other kernels")
def test_a_process_that_is_forked_ends_with_its_parent_that_is_killed(airflow_db):
    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        try:
            if os.fork():
                os.read(read, 1)
                os.kill(os.getpid(), signal.SIGKILL)
            signal.signal(signal.SIGTERM, lambda *_: None)  # as of Airflow's task runner
            os.write(write, b".")
            time.sleep(60)
        finally:
            os._exit(1)
    os.close(write)
    os.waitpid(parent, 0)
    assert select.select([read], [], [], 10)[0]  # the other end is closed
    os.close(read)
