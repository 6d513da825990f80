"""Under a real scheduler: what is left of tries that end in Airflow's own ways, and of the next."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessor

from airflow_provider_sparklineage.spark.capture import bundle
from airflow_provider_sparklineage.spark.capture import bundle as capture
from tests.dag_runs.scheduler import Airflow
from tests.observed_writes import written
from tests.spark_submit_double import FakeSparkSubmit

pytestmark = pytest.mark.airflow

DAYS = ["2024-05-05", "2024-05-06"]
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
WRITTEN = ["/lake/revenue", "/lake/staging/enriched_orders"]

DAGS = """
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

try:
    from airflow.sdk import PartitionedAtRuntime
except ImportError:  # before 3.3
    PartitionedAtRuntime = lambda: None

FOLDER = Path({folder!r})
T = "spark.openlineage.transport."
# A key, which makes that a properties file is written.
TRANSPORT = {{f"{{T}}type": "http", f"{{T}}url": "http://127.0.0.1:9", f"{{T}}auth.apiKey": "k3y"}}
revenue = Asset("file:///lake/revenue")
start = {{"start_date": datetime(2024, 5, 7, tzinfo=UTC), "is_paused_upon_creation": False}}


def submitting(dag_id, schedule=None, **arguments):
    double = FOLDER / dag_id
    path = os.pathsep.join([str(double / "bin"), os.environ["PATH"]])
    with DAG(dag_id, schedule=schedule, **start) as dag:
        SparkLineageSubmitOperator(
            task_id="task",
            application="job.py",
            conf=TRANSPORT,
            env_vars={{"PATH": path, "SPARK_HOME": str(double / "spark")}},
            retry_delay=timedelta(seconds=1),
            **arguments,
        )
    return dag


producer = submitting("producer", PartitionedAtRuntime(), outlets=[revenue])
marked = submitting("marked")
cleared = submitting("cleared")
killed = submitting("killed", retries=1)
lost = submitting("lost", retries=1)
failing = submitting("failing", retries=2)
timed_out = submitting("timed_out", execution_timeout=timedelta(seconds=3))

with DAG("consumer", schedule=PartitionedAssetTimetable(assets=revenue), **start):

    @task
    def note(partition_key=None):
        with (FOLDER / "keys").open("a") as file:
            file.write(f"{{partition_key}}\\n")

    note()
"""
DAG_IDS = ("producer", "marked", "cleared", "killed", "lost", "failing", "timed_out")


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    """Run Airflow's processes for the tests of this module."""
    home = tmp_path_factory.mktemp("airflow")
    fakes = {}
    for dag_id in DAG_IDS:
        (home / dag_id).mkdir()
        fakes[dag_id] = FakeSparkSubmit(home / dag_id)
        runs(fakes[dag_id])
    (home / "dags").mkdir()
    (home / "dags" / "all.py").write_text(DAGS.format(folder=str(home)))
    airflow = Airflow(home, fakes, next(iter(fakes.values())).jar)
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def runs(fake, **script):
    fake.does("staging_chain", observations=written(*DAYS), **script)


def is_alive(process):
    return Path(f"/proc/{process}").exists()


def parent(process):
    status = Path(f"/proc/{process}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])


def kinds(events):
    return [event["eventType"] for event in events]


def datasets(event):
    return tuple([d["name"] for d in event[side]] for side in ("inputs", "outputs"))


def outcome(bundle):
    return capture.load(bundle).manifest.outcome


def test_a_task_that_is_marked_as_failed_leaves_no_process_and_one_event_of_its_end(airflow):
    runs(airflow.fakes["marked"], sleep=90)
    given = airflow.begin("marked")
    airflow.mark("marked", "failed")
    airflow.until(lambda: not is_alive(given.ppid) and not is_alive(given.pid))
    [bundle] = airflow.bundles("marked")
    assert outcome(bundle) == "FAIL"
    assert not any(Path(file).exists() for file in given.files)
    airflow.await_state("marked", "failed")
    # Airflow's server sends the end of it, which knows no datasets.
    start, end = airflow.events("marked", 2)
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == end["run"]["runId"]


@pytest.mark.long
def test_a_task_that_is_cleared_while_it_runs_reports_both_tries(airflow):
    runs(airflow.fakes["cleared"], sleep=90)
    given = airflow.begin("cleared")
    runs(airflow.fakes["cleared"])
    airflow.clear("cleared")
    airflow.submitted("cleared")
    assert not is_alive(given.pid)
    events = airflow.events("cleared", 4)
    assert kinds(events) == ["START", "FAIL", "START", "COMPLETE"]
    assert datasets(events[1]) == datasets(events[3]) == (READ, WRITTEN)
    first, second = events[1]["run"]["runId"], events[3]["run"]["runId"]
    assert first != second
    [bundle] = airflow.bundles("cleared")
    assert outcome(bundle) == "FAIL"


@pytest.fixture(scope="module")
def dead(airflow):
    """Kill two workers while their jobs run, one with its supervisor; give what they had begun."""
    first = {}
    for dag_id in ("killed", "lost"):
        runs(airflow.fakes[dag_id], until=str(airflow.home / "never"), sleep=1)
        first[dag_id] = airflow.begin(dag_id)
        runs(airflow.fakes[dag_id])
    for dag_id, given in first.items():
        processes = [given.ppid]
        if dag_id == "lost":  # so that nobody reports the end but the scheduler
            processes.insert(0, parent(given.ppid))
        for process in processes:
            os.kill(process, signal.SIGKILL)
    yield first
    (airflow.home / "never").touch()


@pytest.mark.long
@pytest.mark.parametrize("dag_id", ["killed", "lost"])
def test_the_try_after_a_worker_that_was_killed_is_like_any_other(airflow, dead, dag_id):
    airflow.submitted(dag_id)
    airflow.await_state(dag_id, "success")
    events = airflow.events(dag_id, 4)
    # Airflow's scheduler sends the end of the first try, which knows no datasets.
    assert kinds(events) == ["START", "FAIL", "START", "COMPLETE"]
    assert datasets(events[3]) == (READ, WRITTEN)
    assert len({event["run"]["runId"] for event in events}) == 2
    [bundle] = airflow.bundles(dag_id)
    assert bundle.name.startswith(f"{dag_id}.task-try1-")
    assert outcome(bundle) == ""


@pytest.mark.long
def test_what_a_killed_worker_left_is_swept_when_its_time_has_come(airflow, dead):
    for dag_id in dead:
        airflow.await_state(dag_id, "success")
    left = [Path(file) for given in dead.values() for file in given.files]
    assert len(left) == 2
    assert set(left) == set(airflow.properties_files())
    hour, day = timedelta(hours=1), timedelta(days=1)
    now = datetime.now(UTC)
    bundle.sweep(airflow.captures, older_than=day, now=now + hour + timedelta(minutes=1))
    assert airflow.properties_files() == []
    assert all(airflow.bundles(dag_id) for dag_id in dead)
    bundle.sweep(airflow.captures, older_than=day, now=now + day + hour)
    assert not any(airflow.bundles(dag_id) for dag_id in dead)


@pytest.mark.long
def test_the_run_after_the_retry_begins_with_what_the_retry_accessed(airflow, dead):
    airflow.await_state("killed", "success")
    airflow.trigger("killed", "next")
    *_, start, complete = airflow.events("killed", 6)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert datasets(start) == datasets(complete) == (READ, WRITTEN)


@pytest.mark.long
def test_each_try_of_a_job_that_fails_has_its_event(airflow):
    fake, home = airflow.fakes["failing"], airflow.home
    gates = [home / "gate1", home / "gate2", home / "gate3"]
    runs(fake, until=str(gates[0]), exit=1)
    airflow.begin("failing")
    runs(fake, until=str(gates[1]), exit=1)
    gates[0].touch()
    airflow.submitted("failing")
    runs(fake)
    gates[1].touch()
    airflow.await_state("failing", "success")
    events = airflow.events("failing", 6)
    assert kinds(events) == ["START", "FAIL", "START", "FAIL", "START", "COMPLETE"]
    assert {datasets(event) == (READ, WRITTEN) for event in events[1::2]} == {True}
    assert len({event["run"]["runId"] for event in events}) == 3
    assert [outcome(bundle) for bundle in airflow.bundles("failing")] == ["FAIL", "FAIL"]


@pytest.mark.long
def test_a_task_that_times_out_reports_what_its_job_has_done(airflow):
    runs(airflow.fakes["timed_out"], sleep=90)
    given = airflow.begin("timed_out")
    airflow.await_state("timed_out", "failed")
    _, end = airflow.events("timed_out", 2)
    assert (end["eventType"], datasets(end)) == ("FAIL", (READ, WRITTEN))
    airflow.until(lambda: not is_alive(given.pid))
    assert not any(Path(file).exists() for file in given.files)


@pytest.mark.long
@pytest.mark.skipif(
    not hasattr(OutletEventAccessor, "add_partitions"),
    reason="Airflow records partitions of assets from 3.3 on",
)
def test_a_downstream_dag_runs_for_each_partition_that_was_written(airflow):
    airflow.trigger("producer")
    keys = airflow.home / "keys"
    airflow.until(lambda: keys.exists() and len(keys.read_text().splitlines()) == len(DAYS))
    assert sorted(keys.read_text().splitlines()) == DAYS
    airflow.await_state("producer", "success")
