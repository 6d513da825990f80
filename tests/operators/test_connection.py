"""The ``sparklineage`` connection as Airflow has it: of the operator, the hook, the commands."""

from __future__ import annotations

import json
import logging
import os
import traceback
import uuid
from configparser import InterpolationSyntaxError

import pytest
from airflow.providers.common.compat.sdk import BaseHook
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.backends import checks
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.hooks.sparklineage import SparkLineageHook
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from airflow_provider_sparklineage.settings.option_kinds import default_capture_location
from tests.unit.datahub.gms import TOKEN, gms

pytestmark = pytest.mark.airflow

OL = "spark.openlineage."


@pytest.fixture
def connection(monkeypatch):
    """Add a connection; of the default id unless another is given."""

    def add(extra=None, conn_id="sparklineage_default", **fields):
        if extra is not None:
            fields["extra"] = extra
        value = json.dumps({"conn_type": "sparklineage", **fields})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)

    return add


@pytest.fixture
def without_transport(monkeypatch):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def degradations(task):
    lineage = task.get_openlineage_facets_on_complete(None)
    return [d["message"] for d in lineage.run_facets["sparkLineage_capture"].degradations]


# --- the operator ---------------------------------------------------------------------------------


def test_the_connection_sets_what_the_operator_does_not(spark_submit, execute, connection):
    connection({"observe": False})
    execute(operator())
    assert "spark.sparklineage.observations" not in spark_submit.given.conf
    execute(operator(observe=True))
    assert "spark.sparklineage.observations" in spark_submit.given.conf


def test_it_is_looked_up_once_a_try(spark_submit, execute, context, connection, mocker):
    connection({"web_url": "http://marquez:3000"})
    look_up = mocker.spy(BaseHook, "get_connection")
    task = operator()
    for number in (1, 2):
        context["ti"].try_number = number
        task.render_template_fields(context)
        execute(task)
    assert look_up.call_args_list.count(mocker.call("sparklineage_default")) == 2


def test_another_connection_can_be_named(spark_submit, execute, connection):
    connection({"observe": False}, conn_id="quiet")
    execute(operator(lineage_conn_id="quiet"))
    assert "spark.sparklineage.observations" not in spark_submit.given.conf


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (None, r"There is no connection other\. Add it: airflow connections add other"),
        ({"conn_type": "spark"}, r"Connection other is of type 'spark'"),
        ({"extra": '{"observe": '}, r"Connection other has an extra that is no JSON"),
        ({"extra": {"colour": 1}}, r"Connection other has an unknown key 'colour'"),
        ({"extra": {"observe": "maybe"}}, r"observe in the extra of connection other is 'maybe'"),
    ],
)
def test_a_wrong_connection_costs_the_lineage_and_not_the_job(
    spark_submit, execute, connection, fields, message
):
    if fields is not None:
        connection(conn_id="other", **fields)
    task = operator(lineage_conn_id="other")
    execute(task)
    assert spark_submit.ran
    assert f"{OL}transport.type" not in spark_submit.given.conf
    [degradation] = [text for text in degradations(task) if "other" in text]
    assert degradation.startswith(message.replace("\\", "")[:40])
    with pytest.raises(SettingsError, match=message):
        execute(operator(lineage_conn_id="other", strict=True))


def test_without_transport_and_archive_the_job_is_the_stock_one_and_one_warning_is_logged(
    spark_submit, execute, without_transport, caplog, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "none")
    execute(operator())
    given = spark_submit.given
    assert "--jars" not in given.argv
    assert not [key for key in given.conf if key.startswith(OL)]
    logged = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len([text for text in logged if "AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID" in text]) == 1


@pytest.mark.parametrize("text", ["[1]", "{"])
def test_a_transport_that_cannot_be_read_fails_no_task(spark_submit, execute, monkeypatch, text):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", text)
    execute(operator())
    assert spark_submit.ran


def test_without_a_transport_a_strict_task_does_not_run(spark_submit, execute, without_transport):
    with pytest.raises(SettingsError, match="it has no transport"):
        execute(operator(strict=True))
    assert not spark_submit.ran


# --- the hook -------------------------------------------------------------------------------------


def test_the_connection_can_be_the_source_of_airflows_transport(
    connection, without_transport, monkeypatch
):
    transport = {
        "type": "http",
        "url": "http://127.0.0.1:9",
        "auth": {"type": "airflow_connection_api_key"},
    }
    connection({"transport": transport}, password="k3y")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    found, conn_id = sources.transport()
    assert conn_id == "sparklineage_default"
    assert found == {**transport, "auth": {"type": "api_key", "apiKey": "k3y"}}
    ok, message = SparkLineageHook().test_connection()
    assert not ok
    assert message.startswith("Nothing listens at http://127.0.0.1:9/api/v1/namespaces")
    assert "k3y" not in message


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('{"observe": ', "Connection sparklineage_default has an extra that is no JSON"),
        ({"web_url": "marquez"}, "web_url in the extra of connection sparklineage_default is"),
    ],
)
def test_the_test_of_a_wrong_connection_gives_its_message(connection, extra, message):
    connection(extra)
    ok, message_of_test = SparkLineageHook().test_connection()
    assert not ok
    assert message_of_test.startswith(message)


def test_a_connection_without_a_backend_has_nothing_to_test(connection):
    connection({"transport": {"type": "console"}})
    ok, message_of_test = SparkLineageHook().test_connection()
    assert not ok
    assert "give the URL" in message_of_test


DATAHUB = {"type": DATAHUB_TRANSPORT, "auth": {"type": "airflow_connection_api_key"}}


def test_a_datahub_is_tested_with_the_key_of_the_form(connection):
    with gms() as server:
        connection({"transport": {**DATAHUB, "server": server.url}}, password=TOKEN)
        ok, message = SparkLineageHook().test_connection()
    assert (ok, server.stored) == (True, [])
    assert message.startswith(f"DataHub v1.3.0 answers at {server.url}. It takes proposals;")


def test_one_connection_is_all_that_airflow_needs_to_send_to_datahub(
    connection, without_transport, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    event = RunEvent(
        eventTime="2026-01-01T00:00:00+00:00",
        eventType=RunState.START,
        run=Run(str(uuid.uuid4())),
        job=Job("tests", "shop.revenue"),
    )
    with gms() as server:
        connection({"transport": {**DATAHUB, "server": server.url}}, password=TOKEN)
        OpenLineageAdapter().emit(event)
    assert {proposal["aspectName"] for proposal in server.stored} >= {
        "dataJobInfo",
        "dataProcessInstanceRunEvent",
    }


@pytest.mark.parametrize(("password", "is_ok"), [(TOKEN, True), ("wr0ng", False)])
def test_a_datahub_that_only_the_url_of_the_form_names_is_tested(connection, password, is_ok):
    with gms() as server:
        connection({"backend": "datahub"}, host=server.url, password=password)
        ok, message = SparkLineageHook().test_connection()
    assert ok is is_ok
    assert (DATAHUB_TRANSPORT in message) is is_ok  # what its extra needs to be sent by
    assert password not in message


def test_of_two_backends_both_are_tested(connection):
    with gms() as server:
        nobody = {"type": "http", "url": "http://127.0.0.1:9"}
        datahub = {**DATAHUB, "server": server.url}
        connection({"transport": {"type": "composite", "transports": [nobody, datahub]}})
        ok, message = SparkLineageHook().test_connection()
    assert not ok
    assert "Nothing listens at http://127.0.0.1:9/api/v1/namespaces" in message
    # The key of a form without one is nobody's.
    assert "has auth that cannot be used" in message


def test_a_missing_connection_cannot_be_tested():
    ok, message_of_test = SparkLineageHook().test_connection()
    assert not ok
    assert "airflow connections add sparklineage_default" in message_of_test


def test_a_transport_that_airflow_cannot_read_is_reported_without_it(
    connection, without_transport, monkeypatch
):
    connection('["hunter2"]')
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    with pytest.raises(SettingsError, match="gives Airflow no transport") as raised:
        sources.transport()
    assert "hunter2" not in str(raised.value)


def test_a_connection_without_the_transport_is_given_the_one_of_its_own_fields(
    connection, without_transport, monkeypatch, mocker
):
    connection(host="https://lineage.example.org", password="k3y")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "sparklineage_default")
    wanted = (
        '"transport": {"type": "http", "url": "https://lineage.example.org", '
        '"auth": {"type": "airflow_connection_api_key"}}'
    )
    with pytest.raises(SettingsError, match="gives Airflow no transport") as raised:
        sources.transport()
    assert wanted in raised.value.fix
    reached = Check("backend, read", Status.OK, "Marquez answers.")
    mocker.patch.object(checks, "check", return_value=[reached])
    ok, message = SparkLineageHook().test_connection()
    assert ok
    assert message == (
        f"Marquez answers. For [openlineage] config_conn_id to name it, its extra needs {wanted}."
    )
    connection({"transport": {"type": "console"}}, host="https://lineage.example.org")
    assert SparkLineageHook().test_connection() == (True, "Marquez answers.")


def test_a_file_with_a_transport_that_is_not_there_is_reported(without_transport, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_PATH", "/gone/lineage.yml")
    with pytest.raises(SettingsError, match=r"^/gone/lineage\.yml, which .* names, gives"):
        sources.transport()


def test_a_connection_of_the_transport_that_is_not_there_is_reported(
    without_transport, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "other")
    with pytest.raises(SettingsError, match="airflow connections add other --conn-type spark"):
        sources.transport()


def test_a_value_that_configparser_cannot_read_is_not_quoted(monkeypatch):
    def fails(section, name, **_):
        # What is behind a single % is in the error's text.
        raise InterpolationSyntaxError(
            name, section, "'%' must be followed by '%', found: '%ret@b'"
        )

    monkeypatch.setattr(sources.airflow_conf, "get", fails)
    with pytest.raises(SettingsError, match="cannot be read") as raised:
        sources.configuration("archive_url")
    assert "InterpolationSyntaxError" in str(raised.value)
    assert "ret@b" not in "".join(traceback.format_exception(raised.value))


# --- airflow sparklineage settings ----------------------------------------------------------------


def settings_command(capsys, *argv):
    [group] = cli.airflow_commands()
    [command] = [c for c in group.subcommands if c.name == "settings"]
    import argparse

    parser = argparse.ArgumentParser()
    for argument in command.args:
        parser.add_argument(*argument.flags, **argument.kwargs)
    code = 0
    try:
        command.func(parser.parse_args(argv))
    except SystemExit as ended:
        code = ended.code
    return code, *capsys.readouterr()


def test_settings_are_listed_with_their_origin(connection, monkeypatch, capsys, home):
    connection({"max_partitions": 7, "observe": False}, password="k3y")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_COLUMNS", "3")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__OBSERVE", "True")
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION")
    code, out, _ = settings_command(capsys)
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert lines["max_partitions"] == "7  (connection sparklineage_default)"
    assert lines["observe"] == "false  (connection sparklineage_default)"
    assert lines["max_columns"] == "3  ([sparklineage])"
    assert lines["keep_captures"] == "degraded  (default)"
    assert lines["listener_jar"] == "-  (default)"
    assert lines["capture_location"] == f"{default_capture_location()}  (default)"
    assert lines["archive_url"] == (
        f"file://{home}/sparklineage/archive  "
        "(default: a folder in AIRFLOW_HOME, as the executor is local)"
    )
    assert list(lines) == [option.name for option in resolution.OPTIONS]
    assert "k3y" not in out


def test_all_wrong_settings_are_named_at_once(connection, monkeypatch, capsys):
    connection({"observe": "maybe"})
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_COLUMNS", "-3")
    code, out, err = settings_command(capsys, "--json")
    assert code == 1
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["observe"]["problem"] in err
    assert "[sparklineage] max_columns is '-3'. It must be a whole number" in err


def test_settings_of_a_connection_that_is_not_there(capsys):
    code, _, err = settings_command(capsys, "--conn-id", "other")
    assert code == 1
    assert "There is no connection other" in err


def test_what_airflow_logs_is_not_among_the_settings(capfd, monkeypatch):
    def logged(_conn_id):
        os.write(1, b"Failed to deserialize extra\n")

    monkeypatch.setattr("airflow_provider_sparklineage.hooks.sources.connection", logged)
    code, out, err = settings_command(capfd, "--json")
    assert code == 0
    assert json.loads(out)
    assert "Failed to deserialize extra" in err


# --- the form ---------------------------------------------------------------------------------


def test_airflow_shows_the_url_and_the_key_and_the_web_url_before_all_other_fields():
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    [form] = [f for f in HookMetaService.hook_meta_data() if f.connection_type == "sparklineage"]
    standard = {
        name: field
        for name, field in form.standard_fields.model_dump().items()
        if not (field and field["hidden"])
    }
    assert {name: field and field["title"] for name, field in standard.items()} == {
        "description": None,
        "host": "API URL",
        "password": "API key",
    }
    assert list(form.extra_fields)[:2] == ["web_url", "transport"]
