"""Drivers in a cluster that have no Python: their listener sends its events to the task."""

from __future__ import annotations

import json
import logging
import socket
import sys
import tempfile
import threading
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as hook_module
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_sparklineage.operators import partition_check
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow

OL = "spark.openlineage."
T = f"{OL}transport."
OURS = f"{T}transports.sparklineage."
SECRET = "pl4nted-s3cr3t"

# What a listener does that sends what was recorded; it stops for good at the first refusal.
SENDS = """
import urllib.request
[(mode, text)] = files.values()
given = dict(conf)
for line in text.splitlines():
    key, _, value = line.partition("=" if "=" in line else " ")
    given[key.strip().replace(chr(92), "")] = value.strip().replace(chr(92), "")
own = prefix + ("transports.sparklineage." if given[prefix + "type"] == "composite" else "")
text = pathlib.Path(script["recorded"]).read_text()
text = text.replace(script["recorded_as"], conf["spark.openlineage.applicationRunId"])
for event in text.splitlines()[: script.get("lines")]:
    request = urllib.request.Request(given[own + "url"] + given[own + "endpoint"], event.encode())
    request.add_header("Authorization", "Bearer " + given[own + "auth.apiKey"])
    urllib.request.urlopen(request, timeout=20).close()
print("Exit code: 0")
"""


@pytest.fixture(autouse=True)
def cluster(spark_submit, monkeypatch):
    """Submit to YARN in cluster mode, with a port of this machine's to send to."""
    submit_to("yarn", monkeypatch)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", "127.0.0.1")
    monkeypatch.setattr(hook_module, "kube_client", SimpleNamespace(), raising=False)


def submit_to(host, monkeypatch, deploy_mode="cluster"):
    # Of a standalone cluster Airflow would ask for the driver's state, which has none here.
    extra = {} if host.startswith("spark:") else {"deploy-mode": deploy_mode, "namespace": "spark"}
    connection = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


@pytest.fixture
def sends(spark_submit):
    """Let the driver send what was recorded of an application."""

    def sends(**script):
        spark_submit.does("staging_chain")  # for what it was recorded as
        recorded = json.loads(spark_submit.script.read_text())
        spark_submit.does(
            code=SENDS,
            recorded=recorded["events"],
            recorded_as=recorded["recorded_as"],
            **script,
        )

    return sends


def operator(**kwargs):
    arguments = {"application": "job.jar", "java_class": "Totals", "durable": False, **kwargs}
    return SparkLineageSubmitOperator(task_id="revenue", **arguments)


def lineage_of(task):
    return task.get_openlineage_facets_on_complete(None)


def degradations(task):
    facet = lineage_of(task).run_facets["sparkLineage_capture"]
    return {d["code"]: d["message"] for d in facet.degradations}


def is_listening(url):
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def of_file(given):
    """Give the properties file of a submission."""
    [(mode, text)] = given.files.values()
    assert mode == "0o600"
    return text.replace("\\", "")


def test_its_lineage_is_that_of_the_events_and_the_partitions_are_declared(execute, sends):
    sends()
    task = operator()
    execute(task)
    lineage = lineage_of(task)
    assert [d.name for d in lineage.inputs] == ["/lake/customers", "/lake/orders", "/lake/rates"]
    found = degradations(task)
    assert (
        "partitions that it reads and writes could not be observed" in found["observer_unavailable"]
    )
    assert found.keys().isdisjoint(
        {"driver_elsewhere", "application_unfinished", "delivery_incomplete", "no_events"}
    )


def test_nothing_listens_any_more_when_the_task_has_ended(spark_submit, execute, sends):
    sends()
    before = {*threading.enumerate()}
    execute(operator())
    assert not is_listening(spark_submit.given.conf[f"{T}url"])
    assert {*threading.enumerate()} <= before


def test_the_token_is_in_a_private_file_alone_and_there_only_while_the_job_runs(
    spark_submit, execute, sends, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    sends()
    task = operator()
    execute(task)
    given = spark_submit.given
    [token] = [
        line.partition("=")[2].strip()
        for line in of_file(given).splitlines()
        if line.startswith(f"{T}auth.apiKey")
    ]
    assert len(token) >= 32
    places = {
        "arguments": json.dumps(given.argv),
        "environment": json.dumps(given.env),
        "log": caplog.text,
        "event": repr(lineage_of(task)),
        **{str(f): f.read_text("latin-1") for f in tmp_path.rglob("*") if f.is_file()},
    }
    places.pop(str(tmp_path / "dump.json"))  # what the double was given
    assert [place for place, text in places.items() if token in text] == []
    assert "transport" in given.conf["spark.redaction.regex"]


def test_the_users_own_transport_is_kept_next_to_it(spark_submit, execute, sends):
    sends()
    own = {
        f"{T}type": "http",
        f"{T}url": "http://marquez:5000",
        f"{T}auth.type": "api_key",
        f"{T}auth.apiKey": SECRET,
    }
    task = operator(conf=own)
    execute(task)
    given = spark_submit.given
    assert (given.conf[f"{T}type"], given.conf[f"{OURS}type"]) == ("composite", "http")
    assert given.conf[f"{T}transports.user.url"] == "http://marquez:5000"
    text = of_file(given)
    assert f"{T}transports.user.auth.apiKey={SECRET}" in text.replace(" ", "")
    assert f"{OURS}auth.apiKey" in text
    assert len(lineage_of(task).inputs) == 3


def test_a_driver_that_was_killed_has_sent_what_it_did_until_then(execute, sends):
    sends(lines=6, exit=1)
    task = operator()
    with pytest.raises(Exception, match="Cannot execute"):
        execute(task)
    found = degradations(task)
    assert "application_unfinished" in found
    assert "driver_elsewhere" not in found


def test_if_no_event_comes_the_reason_has_the_address(spark_submit, execute):
    task = operator()
    execute(task)
    message = degradations(task)["driver_elsewhere"]
    assert spark_submit.given.conf[f"{T}url"] in message
    assert "capture_endpoint" in message


def test_events_without_the_token_are_not_taken_and_counted(execute, sends, spark_submit):
    sends()
    wrong = SENDS.replace('"Bearer "', '"Bearer x"')
    wrong = wrong.replace(
        "    urllib.request.urlopen(request, timeout=20).close()",
        (
            "    try: urllib.request.urlopen(request, timeout=20).close()\n"
            "    except urllib.error.HTTPError as error: print(error)"
        ),
    )
    script = json.loads(spark_submit.script.read_text()) | {"code": wrong, "lines": 2}
    spark_submit.does(**script)
    task = operator()
    execute(task)
    assert "2 without the token of this try" in degradations(task)["delivery_incomplete"]
    assert "no event of it came" in degradations(task)["driver_elsewhere"]
    assert lineage_of(task).inputs == []


def test_what_is_missing_is_reported_once_if_a_check_fails_the_task(execute, monkeypatch):
    failure = AirflowFailException("other partitions")
    monkeypatch.setattr(partition_check, "follow_up", lambda *_: [failure])
    task = operator()
    with pytest.raises(AirflowFailException):
        execute(task)
    facet = lineage_of(task).run_facets["sparkLineage_capture"]
    assert [d["code"] for d in facet.degradations].count("driver_elsewhere") == 1


def refused(spark_submit, execute, task):
    """Run a task whose job is submitted as it is; give the reason."""
    execute(task)
    assert f"{T}type" not in spark_submit.given.conf
    assert "--jars" not in spark_submit.given.argv
    return degradations(task)["driver_elsewhere"]


def test_where_python_drivers_deliver_this_one_sends(
    spark_submit, execute, sends, monkeypatch, tmp_path
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    sends()
    task = operator()
    execute(task)
    assert "spark.sparklineage.deliver" not in spark_submit.given.conf
    assert len(lineage_of(task).inputs) == 3
    assert degradations(task).keys().isdisjoint({"driver_elsewhere", "delivery_incomplete"})
    assert not (tmp_path / "lake").exists()


def test_the_workers_name_is_the_one_that_airflow_knows_it_by(
    spark_submit, execute, sends, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__CORE__HOSTNAME_CALLABLE", f"{__name__}.known_as")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", "{hostname}")
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(known_as=lambda: "localhost"))
    sends()
    task = operator()
    execute(task)
    assert spark_submit.given.conf[f"{T}url"].startswith("http://localhost:")
    assert len(lineage_of(task).inputs) == 3


def test_without_an_endpoint_the_reason_names_the_option(spark_submit, execute, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT")
    assert "Set [sparklineage] capture_endpoint" in refused(spark_submit, execute, operator())


def test_if_the_port_is_taken_the_job_runs_as_it_is(spark_submit, execute, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", endpoint)
        reason = refused(spark_submit, execute, operator())
    assert f"{endpoint}: Address already in use" in reason


def test_strict_fails_before_submitting_if_nothing_can_be_listened_on(
    spark_submit, execute, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", "nowhere.invalid")
    with pytest.raises(Exception, match="cannot listen for the driver's events"):
        execute(operator(strict=True))
    assert not spark_submit.ran


def test_an_endpoint_that_cannot_be_understood_is_reported(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", "http://worker")
    task = operator()
    execute(task)
    assert "http://worker is no name with ports" in degradations(task)["injection_failed"]


def test_if_nobody_waits_for_the_end_nobody_listens(spark_submit, execute):
    conf = {"spark.yarn.submit.waitAppCompletion": "false"}
    reason = refused(spark_submit, execute, operator(conf=conf))
    assert "does not wait for its end" in reason


@pytest.mark.parametrize(
    ("host", "jar"),
    [
        pytest.param("k8s://https://kubernetes:6443", None, id="a pod without uploads"),
        pytest.param("spark://host:7077", None, id="a standalone cluster"),
        pytest.param("k8s://https://kubernetes:6443", "local:///opt/ol.jar", id="in the image"),
        pytest.param("spark://host:7077", "local:///opt/ol.jar", id="on the machines"),
    ],
)
def test_where_spark_submit_brings_no_file_the_listener_has_to_be_there(
    spark_submit, execute, sends, monkeypatch, host, jar
):
    submit_to(host, monkeypatch)
    sends()
    conf = {
        "spark.submit.deployMode": "cluster",
        "spark.standalone.submit.waitAppCompletion": "true",
    }
    if jar is None:
        spark_submit.does(code="print('Exit code: 0')")
        reason = refused(spark_submit, execute, operator(conf=conf))
        assert "listener_jar = local:///" in reason
        return
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", jar)
    task = operator(conf=conf)
    execute(task)
    assert len(lineage_of(task).inputs) == 3


def test_nothing_listens_if_the_job_cannot_have_a_listener(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere/openlineage.jar")
    before = {*threading.enumerate()}
    task = operator()
    execute(task)
    assert "listener_unavailable" in degradations(task)
    assert {*threading.enumerate()} <= before


def test_nothing_listens_if_the_users_transport_stays_alone(execute):
    before = {*threading.enumerate()}
    task = operator(conf={f"{T}type": "kafka", f"{T}topicName": "lineage"})
    execute(task)
    assert "cannot be combined" in degradations(task)["listener_unavailable"]
    assert {*threading.enumerate()} <= before


def test_in_client_mode_the_driver_writes_on_the_worker(spark_submit, execute, monkeypatch):
    submit_to("yarn", monkeypatch, deploy_mode="client")
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert spark_submit.given.conf[f"{T}type"] == "file"
    assert len(lineage_of(task).inputs) == 3


def test_a_python_driver_does_not_send_but_deliver(spark_submit, execute):
    reason = refused(spark_submit, execute, operator(application="job.py", java_class=None))
    assert "capture_location to a URL" in reason


def test_on_a_mount_the_driver_writes(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert spark_submit.given.conf[f"{T}type"] == "file"
    assert len(lineage_of(task).inputs) == 3
