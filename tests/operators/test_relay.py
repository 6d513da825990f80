"""Spark's events on their way through Airflow's transport to a real server, which may be broken."""

from __future__ import annotations

import json
import logging
import threading
import time

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowTaskTimeout

from airflow_provider_sparklineage.event.sending import send
from airflow_provider_sparklineage.operators.attempt import publish
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.conftest import golden
from tests.loopback import Handler, serving

pytestmark = pytest.mark.airflow

CASE = "staging_chain"


class _Handler(Handler):
    """Takes events as Marquez does, and misbehaves as configured."""

    def post(self):
        server = self.server
        server.headers.append(dict(self.headers))
        server.events.append(json.loads(self.body()))
        answer = server.answers.get(len(server.events), 201)
        if answer == "hang":
            server.released.wait(60)
            return
        self.answer(answer)


@pytest.fixture
def backend():
    released = threading.Event()
    with serving(_Handler, events=[], headers=[], answers={}, released=released) as running:
        yield running
        released.set()


@pytest.fixture
def transport(monkeypatch):
    def set_to(**transport):
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))

    return set_to


def operator(**kwargs):
    return SparkLineageSubmitOperator(
        task_id="revenue", application="job.py", relay_spark_events=True, **kwargs
    )


def recorded():
    return [json.loads(line) for line in golden(CASE).read_text().splitlines()]


def kinds(events):
    return [(e["eventType"], e["eventTime"], e["job"]["name"]) for e in events]


def relay_troubles(task):
    capture = task.lineage_try.collected["run"]["facets"]["sparkLineage_capture"]
    return [d["message"] for d in capture["degradations"] if d["code"] == "relay_incomplete"]


@pytest.mark.parametrize("kind", ["http", "async_http"])
def test_sparks_events_arrive_in_their_order_before_the_task_has_ended(
    spark_submit, execute, backend, transport, kind
):
    transport(type=kind, url=backend.url, auth={"type": "api_key", "apiKey": "hunter2"})
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    # An asynchronous transport holds back the end of a run until its start has arrived.
    in_order = kinds if kind == "http" else lambda events: sorted(kinds(events))
    assert in_order(backend.events) == in_order(recorded())
    assert {h["Authorization"] for h in backend.headers} == {"Bearer hunter2"}
    assert relay_troubles(task) == []
    run_id = spark_submit.given.conf["spark.openlineage.applicationRunId"]
    assert run_id in {e["run"]["runId"] for e in backend.events}


def test_nothing_is_sent_unless_somebody_asks_for_it(spark_submit, execute, backend, transport):
    transport(type="http", url=backend.url)
    spark_submit.does(CASE)
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    execute(task)
    assert backend.events == []


def test_the_events_of_a_failed_job_are_sent_too(spark_submit, execute, backend, transport):
    transport(type="http", url=backend.url)
    spark_submit.does(CASE, exit=1)
    with pytest.raises(AirflowException):
        execute(operator())
    assert kinds(backend.events) == kinds(recorded())


def test_a_backend_that_breaks_is_not_asked_again_and_the_event_reports_it(
    spark_submit, execute, backend, transport
):
    transport(type="http", url=backend.url, retry={"total": 0})
    backend.answers[3] = 500
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    assert len(backend.events) == 3
    [trouble] = relay_troubles(task)
    assert trouble.startswith("Of 17 Spark events 2 were sent on: RetryError: ")
    assert "500" in trouble


def test_one_event_that_the_backend_refuses_does_not_keep_the_others(
    spark_submit, execute, backend, transport
):
    transport(type="http", url=backend.url, retry={"total": 0})
    backend.answers[3] = 422
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    assert kinds(backend.events) == kinds(recorded())
    [trouble] = relay_troubles(task)
    assert trouble.startswith(
        "Of 17 Spark events 16 were sent on: one was refused (HTTPError: 422 "
    )


@pytest.mark.parametrize("kind", ["http", "async_http"])
def test_a_backend_that_hangs_costs_the_task_its_time_and_no_more(
    spark_submit, execute, backend, transport, monkeypatch, kind
):
    transport(type=kind, url=backend.url, timeout=60)
    backend.answers[2] = "hang"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "5")
    spark_submit.does(CASE)
    task = operator()
    begun = time.monotonic()
    execute(task)
    assert time.monotonic() - begun < 12
    assert task.lineage_try.collected["outputs"]  # the merged lineage is complete
    [trouble] = relay_troubles(task)
    sent = len(backend.events)
    time.sleep(1)
    assert len(backend.events) == sent  # nobody goes on sending
    assert "Spark events" in trouble


_LEAVING = """
import subprocess, time
from openlineage.client.transport import Config, Transport
class LeavingTransport(Transport):
    kind = "leaving"
    config_class = Config
    def __init__(self, config):
        subprocess.Popen(["sleep", "20"])
    def emit(self, event):
        time.sleep(20)
"""


def test_what_a_transport_has_started_ends_with_it(tmp_path, monkeypatch):
    (tmp_path / "leaving.py").write_text(_LEAVING)
    monkeypatch.syspath_prepend(str(tmp_path))
    transport = {"transport": {"type": "leaving.LeavingTransport"}}
    begun = time.monotonic()
    line = golden(CASE).read_bytes().splitlines(keepends=True)[0]
    sent = send([line] * 200, transport, seconds=3)  # more than fits into a pipe
    assert sent.stopped == "time was up"
    assert time.monotonic() - begun < 10


def test_a_backend_that_is_not_there_is_reported(spark_submit, execute, transport):
    transport(type="http", url="http://127.0.0.1:9", retry={"total": 0})
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    [trouble] = relay_troubles(task)
    assert trouble.startswith("Of 17 Spark events 0 were sent on: ConnectionError: ")


def test_a_transport_that_cannot_be_made_is_reported(spark_submit, execute, transport):
    transport(type="carrier_pigeon")
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    [trouble] = relay_troubles(task)
    assert trouble.startswith("Of 17 Spark events 0 were sent on: ")
    assert "carrier_pigeon" in trouble


def test_the_console_transport_writes_into_the_tasks_log(spark_submit, execute, transport, caplog):
    transport(type="console")
    spark_submit.does(CASE)
    with caplog.at_level(logging.INFO):
        execute(operator())
    printed = [r.getMessage() for r in caplog.records if r.getMessage().startswith('{"eventTime"')]
    assert kinds(map(json.loads, printed)) == kinds(recorded())


def test_without_openlineage_nothing_is_sent(spark_submit, execute, backend, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", "True")
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    assert backend.events == []


def test_a_task_that_the_emission_policy_keeps_silent_stays_silent(
    spark_submit, execute, backend, transport, monkeypatch, context
):
    transport(type="http", url=backend.url)
    policy = [{"scope": {"dag_id": "shop"}, "controls": {"emit": False}}]
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__EMISSION_POLICY", json.dumps(policy))
    spark_submit.does(CASE)
    task = operator()
    execute(task, {**context, "task": task})
    assert backend.events == []
    assert relay_troubles(task) == []


def test_a_task_that_is_killed_sends_nothing_any_more(spark_submit, execute, backend, transport):
    transport(type="http", url=backend.url)
    spark_submit.does(CASE, sleep=2)
    task = operator()
    timer = threading.Timer(1.0, lambda: task.lineage_try.deadline.killed())
    timer.start()
    execute(task)
    timer.join()
    assert backend.events == []
    assert relay_troubles(task) == [
        "Spark's events were not sent on, because there was no time left."
    ]


def test_a_task_timeout_that_fires_while_sending_costs_the_relay_only(
    spark_submit, execute, monkeypatch
):
    def interrupted(*args, **kwargs):
        raise AirflowTaskTimeout

    monkeypatch.setattr("airflow_provider_sparklineage.event.relay.relay", interrupted)
    spark_submit.does(CASE)
    task = operator()
    execute(task)
    assert task.lineage_try.collected["outputs"]
    [trouble] = relay_troubles(task)
    assert "execution_timeout" in trouble


def test_what_airflow_masks_is_masked_and_the_key_of_the_transport_is_in_no_file(
    spark_submit, execute, backend, transport, captures, tmp_path, monkeypatch
):
    monkeypatch.setattr(publish, "masked", lambda text: text.replace("local[2]", "***"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    transport(type="http", url=backend.url, auth={"type": "api_key", "apiKey": "hunter2"})
    spark_submit.does(CASE)
    execute(operator())
    assert "local[2]" in golden(CASE).read_text()
    assert "local[2]" not in json.dumps(backend.events)
    [manifest] = captures()
    for file in manifest.parent.iterdir():
        assert b"hunter2" not in file.read_bytes()
