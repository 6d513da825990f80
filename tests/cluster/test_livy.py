"""Batches of a real Livy, whose drivers run on YARN: listener and observer come from HDFS."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.common.compat.sdk import TaskDeferred
from airflow.sdk.bases.operator import ExecutorSafeguard

from airflow_provider_sparklineage.operators.adoption import policy
from airflow_provider_sparklineage.spark.submit.submitted_files import OBSERVER_ZIP
from tests import spark_submit_double
from tests.cluster.documents import differences, document
from tests.cluster.submitting import WORKER_USER, Ran
from tests.lineage_backend import send_by

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

SECRET = "pl4nted-s3cr3t"
OL = "spark.openlineage.transport."


@pytest.fixture
def submit(submit_to_livy):
    """Let all that is submitted here be posted to Livy."""
    return submit_to_livy


@pytest.fixture
def batch(livy):
    """Give what Livy says of a task's batch."""

    def batch(ran):
        [found] = [b for b in livy.batches() if b["id"] == ran.operator._batch_id]
        return found

    return batch


def outputs(lake, *names):
    return [f"{lake}/{name}" for name in names]


def test_listener_and_observer_are_put_into_the_tools_folder_once(submit, captures, lake, livy):
    logged = len(livy.log)
    first = submit("staging_chain", lake)
    tools = captures.tools()
    second = submit("union_diamond", lake)
    assert (first.error, second.error) == (None, None)
    assert first.degradations == second.degradations == {}
    assert first.outputs == outputs(lake, "revenue", "staging/enriched_orders")
    assert second.outputs == outputs(lake, "audience", "staging/buyers", "staging/members")
    assert captures.files() == []
    assert captures.tools() == tools
    kinds = sorted(name.partition("/")[2].partition("-")[0] for name in tools)
    # Two files, each with the day of its last use, and the drivers that were known to come.
    assert kinds == ["openlineage", "reached", "reached", OBSERVER_ZIP, "used", "used"]
    # Spark reads both where they are, as spark-submit's output says; neither comes from here.
    files = [name for name in tools if name.endswith((".jar", ".zip"))]
    log = livy.log[logged:]
    assert sorted(re.findall(r"Not copying (\S+)", log)) == sorted(
        [f"{captures.url}/.tools/{name}" for name in files] * 2
    )
    uploaded = {Path(path).name for path in re.findall(r"Uploading resource file:(\S+)", log)}
    assert uploaded >= {"staging_chain.py", "union_diamond.py"}
    assert uploaded.isdisjoint(Path(name).name for name in files)


def test_a_batch_that_fails_reports_what_it_had_written(submit, captures, lake, batch):
    ran = submit("failing_action", lake)
    assert ran.error is not None
    assert batch(ran)["state"] == "dead"
    assert ran.outputs == outputs(lake, "checked_orders", "good_orders")
    assert "action_failed" in ran.degradations
    assert "delivery_incomplete" not in ran.degradations


def test_a_batch_that_somebody_deletes_reports_what_it_had_delivered(
    between_writes, captures, lake, livy
):
    def delete():
        [running] = [b for b in livy.batches() if b["name"] == "deleted batch"]
        livy.delete(running["id"])

    ran = between_writes(captures, delete, name="deleted batch")
    assert ran.error is not None
    assert ran.outputs == outputs(lake, "before")
    assert "it was killed" in ran.degradations["delivery_incomplete"]


def test_a_batch_that_is_not_awaited_is_reported_as_unfinished(submit, captures, lake, livy, batch):
    ran = submit("waits_between", lake, polling_interval=0)
    assert batch(ran)["state"] in {"starting", "running"}
    livy.delete(ran.operator._batch_id)
    assert ran.error is None
    assert ran.outputs == []
    message = ran.degradations["application_unfinished"]
    assert message.startswith("The task did not wait for the end of the job")
    assert "airflow sparklineage collect" in message


def test_without_a_version_of_spark_the_batch_runs_as_stock(
    submit, captures, lake, batch, monkeypatch
):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION")
    ran = submit("staging_chain", lake)
    assert ran.error is None
    assert batch(ran)["state"] == "success"
    message = ran.degradations["listener_unavailable"]
    assert "Set [sparklineage] spark_version, for example to 3.5.6-scala2.12" in message
    assert captures.files() == []


@pytest.fixture(params=["of Airflow", "of the batch"])
def with_secret(request, monkeypatch):
    """Give arguments with a transport that has a key; nobody listens at its URL."""
    url = "http://127.0.0.1:9"
    if request.param == "of Airflow":
        send_by(monkeypatch, type="http", url=url, auth={"type": "api_key", "api_key": SECRET})
        return {"openlineage_inject_transport_info": True}
    key = {f"{OL}auth.type": "api_key", f"{OL}auth.apiKey": SECRET}
    return {"conf": {f"{OL}type": "http", f"{OL}url": url, **key}}


def test_no_key_of_a_transport_is_shown_by_livy(
    submit, captures, cluster, lake, livy, batch, with_secret
):
    ran = submit("staging_chain", lake, **with_secret)
    assert ran.error is None
    assert ran.outputs == outputs(lake, "revenue", "staging/enriched_orders")
    assert ran.degradations.keys() == {"transport_left_out"}
    shown = [json.dumps(livy.batches()), livy.output(ran.operator._batch_id), livy.log]
    shown.append(cluster.log(batch(ran)["appId"]))
    assert [text for text in shown if SECRET in text] == []


def test_a_retry_runs_as_stock_if_the_drivers_cannot_read_the_capture_location(
    submit, cluster, capture_at, lake
):
    capture_at(cluster, WORKER_USER, "700")
    first = submit("staging_chain", lake)
    assert first.error is not None
    assert "No driver delivered anything" in first.degradations["driver_elsewhere"]

    context = spark_submit_double.task_context()
    context["ti"].try_number = 2
    second = submit.execute(submit.operator("staging_chain", lake), context)
    assert second.error is None
    [message] = second.degradations.values()
    assert "an earlier try of this task has ended, perhaps because Spark could not" in message


def test_a_deferred_batch_is_reported_by_the_process_that_ends_the_task(submit, captures, lake):
    with pytest.raises(TaskDeferred) as deferred:
        submit("staging_chain", lake, deferrable=True)

    async def first(events):
        return await anext(aiter(events))

    event = asyncio.run(first(deferred.value.trigger.run()))
    task = submit.operator("staging_chain", lake, deferrable=True)
    token = ExecutorSafeguard.tracker.set(task)
    try:
        context, method = spark_submit_double.task_context(), deferred.value.method_name
        task.resume_execution(method, {"event": event.payload}, context)
    finally:
        ExecutorSafeguard.tracker.reset(token)
    ended, waited = Ran(task), submit("staging_chain", lake)
    assert ended.degradations == {}
    assert differences(document(ended, {}), document(waited, {})) == []
    assert captures.files() == []


def test_an_adopted_operator_reports_the_same(submit, captures, lake, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ADOPT", "all")
    task = submit.operator("staging_chain", lake, kind=LivyOperator)
    policy.task_policy(task)
    adopted, ours = submit.execute(task), submit("staging_chain", lake)
    assert (adopted.error, ours.error) == (None, None)
    assert adopted.inputs == outputs(lake, "customers", "orders", "rates")
    assert differences(document(adopted, {}), document(ours, {})) == []
