"""``airflow sparklineage doctor``: Airflow's half, against a server on this machine."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli.doctor import airflow, cluster
from airflow_provider_sparklineage.cli.doctor.airflow import (
    ARCHIVE,
    CONNECTION,
    HISTORY,
    POLICY,
    PROVIDER,
    SETTINGS,
    SPARK_CONNECTION,
    TIME,
    UNSENT,
)
from airflow_provider_sparklineage.cli.doctor.cluster import ENDPOINT, REMOTE
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Status
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from airflow_provider_sparklineage.settings.resolution import Origin, Source
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from airflow_provider_sparklineage.storage.objects import Objects
from tests.loopback import Handler, serving
from tests.unit.datahub.gms import TOKEN, gms

pytestmark = pytest.mark.airflow

READ, TRANSPORT, WEB = "backend, read", "transport", "backend, web pages"
SERVER, DATAHUB_WRITE = "DataHub, server", "DataHub, write"


class _Handler(Handler):
    """Answers as Marquez does, and stores nothing."""

    def get(self):
        key = "jobs" if "/jobs" in self.path else "namespaces"
        self._respond(self.server.status, json.dumps({key: []}))

    def post(self):
        self.server.posted.append(self.body())
        self._respond(422, '{"errors": ["run must not be null"]}')

    def _respond(self, status, text):
        page = self.server.page
        self.answer(status, page or text, Content_Type="text/html" if page else "application/json")


@pytest.fixture
def marquez():
    with serving(_Handler, status=200, page="", posted=[]) as running:
        yield running


@pytest.fixture
def connection(monkeypatch):
    def add(conn_id="sparklineage_default", conn_type="sparklineage", **fields):
        value = json.dumps({"conn_type": conn_type, **fields})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)

    return add


@pytest.fixture
def transport(monkeypatch):
    def set_to(**transport):
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))

    return set_to


@pytest.fixture
def found():
    """Run Airflow's half, and give the checks by name."""

    def run(conn_id="sparklineage_default", spark_conn_id="spark_default"):
        return {c.name: c for c in airflow.check(conn_id, spark_conn_id).checks}

    return run


def test_one_connection_and_one_setting_pass(marquez, connection, found, monkeypatch):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    connection(
        host="127.0.0.1",
        port=marquez.server_port,
        extra={"transport": {"type": "http", "url": marquez.url}},
    )
    checks = found()
    assert {name: c.status for name, c in checks.items() if c.status is not Status.OK} == {}
    assert {CONNECTION, SETTINGS, PROVIDER, POLICY, TIME, READ, TRANSPORT} <= checks.keys()
    assert marquez.posted == [b"{}"]  # the empty event that Marquez refuses


def test_a_datahub_next_to_marquez_is_checked(marquez, transport, found):
    with gms() as server:
        datahub = {"type": DATAHUB_TRANSPORT, "server": server.url, "token": TOKEN}
        transport(type="composite", transports=[{"type": "http", "url": marquez.url}, datahub])
        checks = found()
    assert {checks[name].status for name in (READ, SERVER, DATAHUB_WRITE)} == {Status.OK}
    assert server.stored == []


def test_a_datahub_alone_is_checked_by_its_transport(connection, found, monkeypatch):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    with gms() as server:
        datahub = {"type": DATAHUB_TRANSPORT, "server": server.url, "token": "wr0ng"}
        connection(extra={"transport": datahub, "backend": "datahub", "web_url": server.url})
        checks = found()
    assert checks[SERVER].status is Status.OK
    assert checks[DATAHUB_WRITE].status is Status.FAILED
    place = "transport.token in the extra of connection sparklineage_default"
    assert checks[DATAHUB_WRITE].fix == f"Put the API key into {place}."
    assert checks[WEB].status is Status.WARNING  # there are no pages, as it is not DataHub's own
    assert checks[TRANSPORT].message == (
        f"Airflow sends lineage to {server.url}, where it is looked at."
    )
    assert checks[PROVIDER].message == "It is active, and sends by its transport to DataHub."
    assert READ not in checks


def test_links_to_another_backend_than_datahub_are_a_warning(connection, found, monkeypatch):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    with gms() as server:
        datahub = {"type": DATAHUB_TRANSPORT, "server": server.url, "token": TOKEN}
        connection(extra={"transport": datahub, "web_url": "http://datahub:9002"})
        checks = found()
    assert checks[DATAHUB_WRITE].status is Status.OK
    assert checks[WEB].status is Status.WARNING
    assert "are those of marquez" in checks[WEB].message
    assert "Set [sparklineage] backend to datahub" in checks[WEB].fix


def test_without_a_connection_the_transport_shows_where_the_backend_is(marquez, transport, found):
    transport(type="composite", transports=[{"type": "http", "url": marquez.url}])
    checks = found()
    assert checks[READ].status is Status.OK
    assert checks[CONNECTION].status is Status.OK


def test_a_connection_to_another_backend_is_a_warning(marquez, transport, connection, found):
    transport(type="http", url="http://127.0.0.1:9")
    connection(host="127.0.0.1", port=marquez.server_port)
    check = found()[TRANSPORT]
    assert check.status is Status.WARNING
    assert "http://127.0.0.1:9" in check.message


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"conn_type": "http"}, "is of type"),
        ({"extra": "{nonsense"}, "JSON"),
        ({"extra": {"listner_jar": "/a.jar"}}, "listener_jar"),
    ],
    ids=["another type", "broken JSON", "misspelt option"],
)
def test_a_connection_that_makes_no_sense_fails(connection, found, fields, text):
    connection(**fields)
    check = found()[CONNECTION]
    assert check.status is Status.FAILED
    assert text in f"{check.message} {check.fix}"


def test_a_connection_that_is_named_and_missing_fails(found):
    check = found("no_such_connection")[CONNECTION]
    assert check.status is Status.FAILED
    assert "airflow connections add no_such_connection" in check.fix


def test_a_default_connection_that_is_missing_fails_if_airflow_is_to_send_by_it(found, monkeypatch):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    assert found()[CONNECTION].status is Status.OK
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    checks = found()
    check = checks[CONNECTION]
    assert check.status is Status.FAILED
    assert "sparklineage_default, which [openlineage] config_conn_id names" in check.message
    assert "airflow connections add sparklineage_default" in check.fix
    assert PROVIDER not in checks, "it is reported once"


def test_an_impossible_setting_fails(found, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "soon")
    check = found()[SETTINGS]
    assert check.status is Status.FAILED
    assert "collect_timeout" in check.message


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("DISABLED_FOR_OPERATORS", "{}"),
        (
            "EMISSION_POLICY",
            '[{{"scope": {{"operator": "{}"}}, "controls": {{"emit": false}}}}]',
        ),
    ],
)
@pytest.mark.parametrize("stock", [SparkSubmitOperator, PySparkOperator])
def test_what_keeps_airflow_from_sending_adopted_tasks_is_reported(
    found, monkeypatch, option, value, stock
):
    path = f"{stock.__module__}.{stock.__name__}"
    monkeypatch.setenv(f"AIRFLOW__OPENLINEAGE__{option}", value.format(path))
    assert found()[POLICY].message == "Events of SparkLineageSubmitOperator are sent."
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ADOPT", "all")
    check = found()[POLICY]
    assert check.status == "failed"
    assert stock.__name__ in check.message
    assert path in check.fix


@pytest.mark.parametrize(
    ("option", "value", "name", "status", "text"),
    [
        ("OPENLINEAGE__DISABLED", "True", PROVIDER, "failed", "disabled is True"),
        ("OPENLINEAGE__TRANSPORT", "", TRANSPORT, "warning", "has no transport"),
        ("OPENLINEAGE__TRANSPORT", '{"type": "console"}', PROVIDER, "warning", "is console"),
        ("OPENLINEAGE__TRANSPORT", '{"type": "noop"}', PROVIDER, "failed", "is noop"),
        ("OPENLINEAGE__TRANSPORT", "[1]", PROVIDER, "failed", "cannot read its configuration"),
        ("OPENLINEAGE__TRANSPORT", "{", PROVIDER, "failed", "cannot read its configuration"),
        (
            "OPENLINEAGE__DISABLED_FOR_OPERATORS",
            "airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator",
            POLICY,
            "failed",
            "disabled_for_operators",
        ),
        ("OPENLINEAGE__SELECTIVE_ENABLE", "True", POLICY, "warning", "selective_enable"),
        (
            "OPENLINEAGE__EMISSION_POLICY",
            '[{"scope": {}, "controls": {"extract_operator_metadata": false}}]',
            POLICY,
            "failed",
            "emission_policy",
        ),
        ("OPENLINEAGE__EXECUTION_TIMEOUT", "3", TIME, "warning", "is 3 s"),
        ("OPENLINEAGE__EXECUTION_TIMEOUT", "60", TIME, "warning", "after 20 s"),
        ("SPARKLINEAGE__DISABLED", "True", SETTINGS, "failed", "without lineage"),
    ],
)
def test_what_keeps_airflow_from_sending_is_reported(
    found, monkeypatch, option, value, name, status, text
):
    monkeypatch.setenv(f"AIRFLOW__{option}", value)
    check = found()[name]
    assert check.status == status
    assert text in check.message
    assert check.fix


@pytest.mark.parametrize(
    ("status", "page", "text"),
    [
        (500, "", "500 to its own lists"),
        (404, "", "no API of Marquez"),
        (200, "<html>", "with a web page"),
        (503, "", "does not reach it"),
    ],
)
def test_a_backend_that_is_broken_or_no_marquez_fails(
    marquez, transport, found, status, page, text
):
    transport(type="http", url=marquez.url)
    marquez.status, marquez.page = status, page
    check = found()[READ]
    assert check.status is Status.FAILED
    assert text in check.message
    assert marquez.posted == []


def test_another_backend_is_asked_for_an_answer_only(marquez, transport, found, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", "generic")
    transport(type="http", url=marquez.url)
    assert found()[READ].status is Status.OK
    assert marquez.posted == []


HTTP = {"type": "http", "url": "http://127.0.0.1:9"}
NOTHING = "Start the backend, or correct {} (Marquez has its API at port 5000)."


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param(
            {"extra": {"transport": HTTP}},
            "transport.url in the connection's extra",
            id="its transport",
        ),
        pytest.param(
            {"host": "127.0.0.1", "port": 9, "extra": {"transport": HTTP}},
            "the connection's host and port",
            id="its fields",
        ),
    ],
)
def test_a_wrong_port_is_blamed_on_the_field_of_the_connection_that_has_it(
    connection, found, monkeypatch, fields, place
):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    connection(**fields)
    assert found()[READ].fix == NOTHING.format(place)


def test_without_a_connection_a_wrong_port_is_blamed_on_airflows_transport(
    transport, connection, found, monkeypatch, tmp_path
):
    transport(type="composite", transports={"marquez": HTTP})
    place = "transport.transports.marquez.url in Airflow's [openlineage]"
    assert found()[READ].fix == NOTHING.format(place)
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(HTTP))
    assert "transport.url in OpenLineage's own configuration" in found()[READ].fix
    (tmp_path / "lineage.yml").write_text(json.dumps({"transport": HTTP}))
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_PATH", str(tmp_path / "lineage.yml"))
    place = f"transport.url in {tmp_path}/lineage.yml, which [openlineage] config_path names"
    assert found()[READ].fix == NOTHING.format(place)
    connection("sender", extra={"transport": HTTP})
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sender")
    place = "transport.url in the extra of connection sender"
    assert found()[READ].fix == NOTHING.format(place)


@pytest.mark.parametrize(
    ("web_url_in", "place"),
    [
        ("connection", "web_url in the extra of connection sparklineage_default"),
        ("configuration", "[sparklineage] web_url"),
    ],
)
def test_a_wrong_url_of_web_pages_is_blamed_on_where_it_stands(
    marquez, transport, connection, found, monkeypatch, web_url_in, place
):
    transport(type="http", url=marquez.url)
    if web_url_in == "connection":
        connection(extra={"web_url": marquez.url})
    else:
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__WEB_URL", marquez.url)
    assert f"Correct {place}: it is" in found()["backend, web pages"].fix


def test_a_transport_that_goes_nowhere_is_blamed_on_where_it_stands(connection, found, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sender")
    connection("sender", extra={"transport": {"type": "console"}})
    assert found()[PROVIDER].fix.endswith("as transport in the extra of connection sender.")


def test_a_spark_connection_that_is_missing_is_a_warning(found):
    check = found(spark_conn_id="no_such_spark")[SPARK_CONNECTION]
    assert check.status is Status.WARNING
    assert "yarn" in check.message
    assert "airflow connections add no_such_spark" in check.fix


def test_where_spark_connections_cannot_be_read_none_is_to_be_added(found, mocker):
    mocker.patch.object(airflow.BaseHook, "get_connection", side_effect=TimeoutError)
    check = found()[SPARK_CONNECTION]
    assert check.status is Status.WARNING
    assert "cannot be read (TimeoutError)" in check.message
    assert "connections add" not in check.fix


def test_a_driver_in_the_cluster_is_a_warning(connection, found):
    connection("spark_far", "spark", host="yarn", extra={"deploy-mode": "cluster"})
    check = found(spark_conn_id="spark_far")[SPARK_CONNECTION]
    assert check.status is Status.WARNING
    assert "runs in a YARN cluster" in check.message


def test_a_driver_in_the_cluster_that_shares_the_captures_is_well(connection, found, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    connection("spark_far", "spark", host="yarn", extra={"deploy-mode": "cluster"})
    assert found(spark_conn_id="spark_far")[SPARK_CONNECTION].status is Status.OK


# --- the archive ----------------------------------------------------------------------------------


def test_a_driver_in_the_cluster_that_delivers_is_well(connection, found, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lineage")
    connection("spark_default", "spark", host="yarn", extra={"deploy-mode": "cluster"})
    checks = found()
    assert checks[SPARK_CONNECTION].status is Status.OK
    assert "the driver runs in a YARN cluster" in checks[SPARK_CONNECTION].message
    assert checks[REMOTE].status is Status.OK
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    ("url", "message", "fix"),
    [
        ("file:///proc/lineage", "This worker cannot write to file:///proc/lineage", "permissions"),
        ("nosuch://lake/lineage", "cannot write to nosuch://lake/lineage", "provider of this file"),
        (
            "hdfs://no_such_connection@lake/lineage",
            "cannot write to hdfs://lake/lineage",
            "connection whose id is before the @",
        ),
        ("abfs://conn@lake/lineage", "cannot be derived", "capture_location_in_spark"),
    ],
    ids=["not writable", "no such file system", "no such connection", "unknown to Spark"],
)
def test_a_capture_location_that_the_worker_cannot_use_fails(found, monkeypatch, url, message, fix):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", url)
    check = found()[REMOTE]
    assert check.status is Status.FAILED
    assert message in check.message
    assert fix in check.fix


def test_a_capture_location_that_does_not_answer_is_not_waited_for(mocker):
    mocker.patch.object(Objects, "write", side_effect=lambda *_: threading.Event().wait(30))
    settings = resolution.resolve(
        Source(Origin.CONFIGURATION, {"capture_location": "file:///mnt/lineage"})
    )
    (check,) = cluster.location_checks(settings, timeout_s=0.2)
    assert check.status is Status.FAILED
    assert "no answer within 0.2 s" in check.message


@pytest.mark.parametrize(
    ("endpoint", "status", "message"),
    [
        ("127.0.0.1", Status.OK, "can listen for drivers without Python, at http://127.0.0.1:"),
        ("no such name", Status.FAILED, "is no name with ports"),
        ("192.0.2.1:{port}", Status.FAILED, "cannot listen"),
    ],
    ids=["of this worker", "no name", "no port is free"],
)
def test_where_drivers_without_python_would_send_is_tried(
    found, monkeypatch, endpoint, status, message
):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        endpoint = endpoint.format(port=taken.getsockname()[1])
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", endpoint)
        check = found()[ENDPOINT]
    assert check.status is status
    assert message in check.message


def test_what_is_no_spark_property_is_refused(doctor):
    with pytest.raises(UnusableInputError, match="--conf memory=2g is no Spark property"):
        doctor(conf=["memory=2g"])


def test_the_archive_of_a_local_executor_is_well(found, home):
    check = found()[ARCHIVE]
    assert check.status is Status.OK
    assert f"file://{home}/sparklineage/archive, for this user only" in check.message
    assert not home.exists()


@pytest.mark.parametrize(
    ("url", "executor", "status", "message"),
    [
        ("", "CeleryExecutor", Status.WARNING, "because CeleryExecutor runs tasks on other"),
        ("none", "CeleryExecutor", Status.OK, "Events are kept nowhere"),
        ("none", "LocalExecutor", Status.OK, "Events are kept nowhere"),
        ("gs://bucket/x", "CeleryExecutor", Status.OK, "Events are kept in gs://bucket/x."),
    ],
)
def test_what_is_not_kept_is_reported(found, monkeypatch, url, executor, status, message):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    check = found()[ARCHIVE]
    assert check.status is status
    assert message in check.message
    assert ("ARCHIVE_URL" in check.fix) is (status is Status.WARNING)


def test_an_archive_that_cannot_be_written_to_is_a_warning(found, home, monkeypatch):
    monkeypatch.setattr(airflow.os, "access", lambda *_: False)  # which root always has
    check = found()[ARCHIVE]
    assert check.status is Status.WARNING
    assert f"{home.parent} is not writable" in check.message


def test_an_archive_of_another_user_is_a_warning(found, home):
    (home / "sparklineage").mkdir(parents=True)
    (home / "sparklineage" / "archive").touch()
    check = found()[ARCHIVE]
    assert check.status is Status.WARNING
    assert "no folder of this user" in check.message


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("", Status.WARNING, "lineage is kept, and not sent"),
        ("none", Status.FAILED, "no lineage is sent and none collected"),
    ],
)
def test_without_a_transport_it_depends_on_the_archive(found, monkeypatch, url, status, message):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    check = found()[TRANSPORT]
    assert check.status is status
    assert message in check.message


@pytest.mark.parametrize(
    ("number", "message"),
    [(0, "All events"), (1, "1 event was not sent, the first on"), (3, "3 events were not sent")],
)
def test_events_that_were_not_sent_are_counted(found, home, number, message):
    kept = Archive(f"file://{home}/sparklineage/archive", is_default=True)
    for run_id in range(5):
        identity = TaskIdentity("shop", "revenue", str(run_id), 1)
        kept.write(identity, Written({"job": {}}), is_unsent=run_id < number)
    check = found()[UNSENT]
    assert check.message.startswith(message)
    assert check.status is (Status.WARNING if number else Status.OK)
    assert ("airflow sparklineage resend" in check.fix) is bool(number)


def test_of_an_object_store_the_doctor_does_not_know_what_was_not_sent(found, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "gs://bucket/x")
    assert UNSENT not in found()


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def doctor(capsys):
    """Run the command as Airflow does; give exit code and document."""
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "doctor"]

    def run(**args):
        given = {"conn_id": "sparklineage_default", "spark_conn_id": "spark_default", "conf": []}
        given |= {"dag_id": None, "task_id": None}
        code = command.run(SimpleNamespace(**{**given, "spark_submit": False, "json": True} | args))
        out = capsys.readouterr().out
        return code, json.loads(out[out.index("{\n") :])

    return run


def test_the_exit_code_is_that_of_the_worst_check(spark_submit, doctor, marquez, transport):
    transport(type="http", url=marquez.url)
    code, document = doctor()
    assert (code, document["status"]) == (0, "warning")  # the double's listener is not published
    marquez.status = 500
    assert doctor()[0] == 1


def test_secrets_are_in_no_check(spark_submit, doctor, connection, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    key = {"type": "api_key", "apiKey": "hunter2-hunter2"}
    connection(
        host="127.0.0.1",
        port=9,
        password="hunter2-hunter2",
        extra={"transport": {"type": "http", "url": "http://127.0.0.1:9", "auth": key}},
    )
    _, document = doctor()
    assert "hunter2" not in json.dumps(document)


def test_what_the_connection_sets_is_not_blamed_on_airflows_configuration(
    spark_submit, doctor, connection, tmp_path
):
    connection(extra={"listener_jar": str(tmp_path / "gone.jar")})
    fixes = {check["name"]: check["fix"] for check in doctor()[1]["checks"]}
    place = "listener_jar in the extra of connection sparklineage_default"
    assert fixes["listener"].startswith(f"Correct {place}, or run")


def test_the_user_of_a_url_is_in_no_check(spark_submit, doctor, transport):
    transport(type="http", url="http://user:hunter2-hunter2@127.0.0.1:9")
    _, document = doctor()
    assert "http://127.0.0.1:9" in json.dumps(document)
    assert "hunter2" not in json.dumps(document)


def test_a_spark_that_fails_is_reported_with_its_own_words(spark_submit, doctor, monkeypatch):
    spark_submit.does(exit=1)
    code, document = doctor(spark_submit=True)
    trial = document["checks"][-1]
    assert (code, trial["name"], trial["status"]) == (1, "trial", "failed")
    assert trial["message"] == "Spark 4.0.1 ended with 1: the job's own output"


def test_a_listener_that_writes_nothing_is_reported(spark_submit, doctor):
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text(
        "spark.openlineage.disabled true\n"
    )
    code, document = doctor(spark_submit=True)
    trial = document["checks"][-1]
    assert (code, trial["status"]) == (1, "failed")
    assert "no_events" in trial["message"]
    assert "spark.openlineage.disabled" in trial["fix"]


def test_the_trial_submits_as_a_task_does_and_leaves_nothing(spark_submit, doctor, tmp_path):
    doctor(spark_submit=True)
    given = spark_submit.given
    assert given.argv[given.argv.index("--jars") + 1] == str(spark_submit.jar)
    assert given.argv[given.argv.index("--master") + 1] == "local[1]"
    assert given.conf["spark.extraListeners"].endswith("OpenLineageSparkListener")
    assert given.conf["spark.sparklineage.observations"]
    assert not any((tmp_path / "captures").glob("*"))


# --- the history ----------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path, monkeypatch):
    store = Store(str(tmp_path / "history"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", store.files.root.as_uri())
    return store


def test_a_history_that_is_not_there_yet_is_well(found, history):
    assert "There is no history at" in found()[HISTORY].message


@pytest.mark.parametrize(("minutes", "status"), [(1, Status.OK), (90, Status.WARNING)])
def test_a_history_that_nobody_brings_up_to_date_is_a_warning(found, history, minutes, status):
    build(history, ())
    assert "is up to date" in found()[HISTORY].message
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    history.files.write(f"incoming/{at:%Y%m%dT%H%M%S.%f}-0.json", b"")
    check = found()[HISTORY]
    assert check.status is status
    if status is Status.WARNING:
        assert "1 event that tasks delivered" in check.message
        assert "history build --delivered" in check.fix
        assert "history_merged_by to tasks" in check.fix


def test_a_history_that_cannot_be_read_is_a_warning(found, history):
    history.files.write("manifest.json", b"[]")
    assert found()[HISTORY].status is Status.WARNING
