"""Tasks whose Spark runs on YARN and whose data is in HDFS: their lineage as if it were here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from airflow import sdk

from tests import spark_submit_double
from tests.cluster.conftest import move_worker
from tests.cluster.documents import differences, document
from tests.cluster.submitting import TaskStateStore, until

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.mark.smoke
def test_a_driver_in_the_cluster_reports_what_one_here_would(submit, captures, lake):
    ran = submit("staging_chain", lake)
    assert ran.error is None
    assert ran.degradations == {}
    assert ran.inputs == [f"{lake}/customers", f"{lake}/orders", f"{lake}/rates"]
    assert ran.outputs == [f"{lake}/revenue", f"{lake}/staging/enriched_orders"]
    revenue = next(d for d in ran.lineage.outputs if d.name.endswith("/revenue"))
    fields = revenue.facets["columnLineage"].fields["revenue"]["inputFields"]
    assert [f["field"] for f in fields] == ["amount", "rate"]
    assert captures.files() == []  # nothing is wrong, so nothing is kept


def test_once_a_driver_has_delivered_the_next_job_uploads_nothing_of_ours(submit, captures, lake):
    first, second = submit("staging_chain", lake), submit("staging_chain", lake)
    names = {name.rpartition("/")[2]: f"/.tools/{name}" for name in captures.tools()}
    for flag in ("--jars", "--py-files"):
        uploaded, named = (argument(ran, flag) for ran in (first, second))
        assert Path(uploaded).is_absolute()
        assert named == f"{captures.url}{names[Path(uploaded).name]}"
    assert first.degradations == second.degradations == {}
    assert differences(document(first, {}), document(second, {})) == []


def argument(ran, flag):
    """Give what spark-submit was given for a flag."""
    argv = ran.operator._hook._submit_sp.args
    return argv[argv.index(flag) + 1]


def test_a_driver_on_the_worker_delivers_nothing(submit, captures, lake):
    ran = submit("staging_chain", lake, deploy_mode="client")
    assert ran.error is None
    assert ran.degradations == {}
    assert ran.outputs == [f"{lake}/revenue", f"{lake}/staging/enriched_orders"]
    assert captures.files() == [*captures.tools()] == []


def test_a_job_that_fails_reports_what_it_had_written(submit, captures, lake):
    ran = submit("failing_action", lake)
    assert ran.error is not None
    assert ran.outputs == [f"{lake}/checked_orders", f"{lake}/good_orders"]
    assert "action_failed" in ran.degradations
    assert "delivery_incomplete" not in ran.degradations


def test_a_job_that_is_killed_reports_what_it_had_delivered(
    between_writes, captures, cluster, lake
):
    def kill():
        [application] = [a for a in cluster.applications() if a["name"] == "killed task"]
        cluster.kill(application["id"])
        until(lambda: cluster.application(application["id"])["finalStatus"] == "KILLED")

    ran = between_writes(captures, kill, name="killed task")
    assert ran.error is not None
    assert ran.outputs == [f"{lake}/before"]
    assert "it was killed" in ran.degradations["delivery_incomplete"]


def test_what_only_an_earlier_attempt_did_is_marked(submit, captures, lake):
    ran = submit("fails_at_first", lake, conf={"spark.yarn.maxAppAttempts": "2"})
    assert ran.error is None
    assert ran.inputs == [f"{lake}/customers", f"{lake}/orders"]
    assert ran.outputs == [f"{lake}/after", f"{lake}/before"]
    facet = ran.lineage.run_facets["sparkLineage_capture"]
    assert facet.attempts == 2
    marks = {d["dataset"]["name"].rpartition("/")[2]: d.get("attempt") for d in facet.datasets}
    assert marks == {"after": None, "customers": None, "before": 1, "orders": 1}


@pytest.mark.parametrize("waits", ["true", "false"])
def test_an_application_that_is_not_there_is_no_job_that_runs(submit, captures, lake, waits):
    conf = {"spark.yarn.submit.waitAppCompletion": waits}
    ran = submit(f"{lake}/nowhere.py", conf=conf)
    assert ran.error is not None
    assert not {"application_unfinished", "driver_elsewhere"} & {*ran.degradations}
    assert "spark-submit failed (exit code 1)" in ran.degradations["no_events"]


def test_two_tasks_at_the_same_time_have_their_own_lineage(submit, captures, lake):
    with ThreadPoolExecutor(2) as threads:
        jobs = {"staging_chain": "first", "union_diamond": "second"}
        first, second = threads.map(lambda name: submit(name, lake, task_id=jobs[name]), jobs)
    assert first.outputs == [f"{lake}/revenue", f"{lake}/staging/enriched_orders"]
    assert second.outputs == [
        *(f"{lake}/{name}" for name in ("audience", "staging/buyers", "staging/members")),
    ]
    assert first.degradations == second.degradations == {}
    assert captures.files() == []


def test_the_next_try_on_another_worker_reports_what_a_killed_one_had_submitted(
    submit, on_yarn, captures, lake, let_go, spark, tmp_path, monkeypatch
):
    if not hasattr(sdk, "ResumableJobMixin"):
        pytest.skip("Airflow resumes submissions from 3.3 on")
    store = TaskStateStore(tmp_path / "store.json")
    conf = on_yarn.spark_conf(spark.distribution.home)
    given = json.dumps({"conf": conf, "environment": dict(os.environ)})
    (tmp_path / "first.json").write_text(given)
    command = [sys.executable, "-m", "tests.cluster.first_try", str(tmp_path)]
    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(
            [*command, "waits_between", lake],
            cwd=Path(__file__).parents[2],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: "/before" in captures.delivered("events") or first.poll() is not None)
        assert first.poll() is None, (tmp_path / "first.log").read_text()[-3000:]
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    let_go()

    move_worker(tmp_path / "another", monkeypatch)
    context = spark_submit_double.task_context()
    context["ti"].try_number = 2
    context["task_state_store"] = store
    task = submit.operator("waits_between", lake, durable=True, yarn_track_via_rm_api=True)
    ran = submit.execute(task, context)
    assert ran.error is None
    assert ran.outputs == [f"{lake}/after", f"{lake}/before"]
    assert "submitted by try 1" in ran.degradations["submission_resumed"]
