"""What is submitted where something stands in the way: secrets, misfits, jars."""

from __future__ import annotations

import json
import logging

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
from openlineage.client import OpenLineageClient

from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from tests.spark_submit_double import argument, degradations, injected
from tests.unit.listener_jars import listener_jar, other_jar

pytestmark = pytest.mark.airflow

OL = "spark.openlineage."
SECRET = "pl4nted-s3cr3t"
KEYED = {
    f"{OL}transport.type": "http",
    f"{OL}transport.url": "http://marquez:5000",
    f"{OL}transport.auth.type": "api_key",
    f"{OL}transport.auth.apiKey": SECRET,
    f"{OL}transport.headers.X-Tenant": f"tenant {SECRET}-header",
}


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


# --- secrets --------------------------------------------------------------------------------------


def lies_open(given, folder, task, caplog):
    """Name the places in which a planted secret can be read by others than Spark."""
    lineage = task.get_openlineage_facets_on_complete(None)
    places = {
        "arguments": json.dumps(given.argv),
        "environment": json.dumps(given.env),
        "log": caplog.text,
        "event": repr(lineage),
        **{str(f): f.read_text("latin-1") for f in folder.rglob("*") if f.is_file()},
    }
    return [name for name, text in places.items() if SECRET in text]


def test_keys_of_the_users_transport_lie_open_nowhere(
    spark_submit, execute, monkeypatch, tmp_path, caplog
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    caplog.set_level(logging.DEBUG)
    spark_submit.does("staging_chain")
    task = operator(conf=dict(KEYED))
    execute(task)
    given = spark_submit.given
    [(file, (mode, text))] = given.files.items()
    assert mode == "0o600"
    assert f"{OL}transport.transports.user.auth.apiKey={SECRET}" in text.replace("\\", "")
    assert argument(given, "--properties-file") == file
    assert lies_open(given, tmp_path / "captures", task, caplog) == []
    assert task.conf == KEYED  # and is as the author wrote it


@pytest.mark.parametrize(
    "trouble",
    [
        {"AIRFLOW__SPARKLINEAGE__LISTENER_JAR": "/nowhere/openlineage-spark.jar"},
        {"AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": "/proc/nowhere"},
    ],
    ids=["no listener", "no bundle"],
)
def test_where_lineage_is_refused_the_key_is_no_argument_either(
    spark_submit, execute, monkeypatch, tmp_path, caplog, trouble
):
    for name, value in trouble.items():
        monkeypatch.setenv(name, value)
    task = operator(conf=dict(KEYED))
    execute(task)
    given = spark_submit.given
    [(_mode, text)] = given.files.values()
    assert f"{OL}transport.auth.apiKey={SECRET}" in text.replace("\\", "")  # as the user has it
    assert lies_open(given, tmp_path / "captures", task, caplog) == []


def test_the_user_of_a_url_is_in_no_message_of_ours(spark_submit, execute, captures, caplog):
    """spark-submit's own arguments are the user's; messages about them are not."""
    url = f"https://user:{SECRET}@repository/openlineage-spark_2.13-1.53.0.jar"
    task = operator(jars=f"{url},{spark_submit.jar}")
    execute(task)
    [manifest] = captures()
    assert "2 OpenLineage listeners" in (saved := manifest.read_text())
    assert SECRET not in saved
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("airflow_provider")]
    assert any("2 OpenLineage listeners" in text for text in ours)
    assert SECRET not in "".join(ours)


def test_collect_only_leaves_the_users_transport_out(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__EXISTING_TRANSPORT", "collect_only")
    execute(operator(conf=dict(KEYED)))
    given = spark_submit.given
    assert given.conf[f"{OL}transport.type"] == "file"
    assert SECRET not in json.dumps(vars(given))


def test_values_are_registered_with_airflows_masker(spark_submit, execute):
    from airflow.sdk.log import redact

    execute(operator(conf=dict(KEYED)))
    assert SECRET not in str(redact(f"the job logs {SECRET} and tenant {SECRET}-header"))


def test_rendered_fields_are_hidden_before_airflow_shows_them(spark_submit, context):
    from airflow.sdk.log import redact

    key = "r3nd3red-s3cr3t"
    task = operator(conf={f"{OL}transport.auth.apiKey": "{{ params.key }}"})
    task.render_template_fields({**context, "params": {"key": key}})
    assert task.conf == {f"{OL}transport.auth.apiKey": key}
    assert key not in str(redact(task.conf))


@pytest.fixture
def http_transport(monkeypatch):
    """Let Airflow's own transport be one with a key and a header."""
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    config = HttpConfig.from_dict(
        {
            "url": "http://marquez:5000",
            "timeout": 0.5,
            "auth": {"type": "api_key", "apiKey": SECRET},
            "custom_headers": {"X-Tenant": f"{SECRET}-header"},
        }
    )
    client = OpenLineageClient(transport=HttpTransport(config))
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", client)


def test_airflows_own_transport_goes_by_the_file_and_without_its_defects(
    spark_submit, execute, http_transport, tmp_path, caplog
):
    task = operator(openlineage_inject_transport_info=True)
    execute(task)
    given = spark_submit.given
    [(_mode, text)] = given.files.values()
    properties = text.replace("\\", "")
    user = f"{OL}transport.transports.user."
    assert f"{user}auth.apiKey={SECRET}\n" in properties  # the listener adds Bearer itself
    assert f"{user}headers.X-Tenant={SECRET}-header" in properties
    assert given.conf[f"{user}url"] == "http://marquez:5000"
    assert f"{user}timeoutInMillis" not in given.conf  # half a second became 0 ms
    assert lies_open(given, tmp_path / "captures", task, caplog) == []
    assert task._openlineage_inject_transport_info is True


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "next to Marquez"])
def test_a_transport_to_datahub_is_not_given_to_spark(
    spark_submit, execute, monkeypatch, tmp_path, caplog, is_alone
):
    datahub = {"type": DATAHUB_TRANSPORT, "server": "http://gms:8080", "token": SECRET}
    marquez = {"type": "http", "url": "http://marquez:5000"}
    both = {"type": "composite", "transports": {"datahub": datahub, "marquez": marquez}}
    client = OpenLineageClient(config={"transport": datahub if is_alone else both})
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", client)
    task = operator(openlineage_inject_transport_info=True)
    execute(task)
    given = spark_submit.given
    urls = {value for key, value in given.conf.items() if key.endswith(".url")}
    assert urls == (set() if is_alone else {"http://marquez:5000"})
    assert SECRET not in str(given.files)
    assert lies_open(given, tmp_path / "captures", task, caplog) == []


def test_the_stock_operator_still_has_those_defects(spark_submit, execute, http_transport):
    # When this fails, our own way round them may go.
    revenue = SparkSubmitOperator(
        task_id="revenue", application="job.py", openlineage_inject_transport_info=True
    )
    execute(revenue)
    conf = spark_submit.given.conf
    assert conf[f"{OL}transport.auth.apiKey"] == f"Bearer {SECRET}"
    assert conf[f"{OL}transport.timeoutInMillis"] == "0"


def test_properties_without_a_value_are_not_passed_on():
    assert adapters.corrected_transport({"a.endpoint": None, "a.timeoutInMillis": "5000"}) == {
        "a.timeoutInMillis": "5000"
    }


# --- misfits --------------------------------------------------------------------------------------


def test_a_second_listener_is_not_injected(spark_submit, execute):
    package = "io.openlineage:openlineage-spark_2.13:1.45.0"
    task = operator(jars=str(spark_submit.jar), packages=package)
    execute(task)
    assert not injected(spark_submit.given)
    assert argument(spark_submit.given, "--jars") == str(spark_submit.jar)
    assert "2 OpenLineage listeners" in degradations(task)["listener_unavailable"]


def test_a_listener_of_the_users_is_the_only_one(spark_submit, execute):
    package = "io.openlineage:openlineage-spark_2.13:1.45.0"
    execute(operator(packages=package))
    assert injected(spark_submit.given)
    assert argument(spark_submit.given, "--jars") is None


def test_a_declared_version_is_believed(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "3.5.6")
    task = operator()
    execute(task)
    assert "Spark 3.5.6 runs on Scala 2.12" in degradations(task)["listener_unavailable"]


# --- extensions of the listener -------------------------------------------------------------------


def test_extensions_go_where_the_listener_goes(spark_submit, execute, tmp_path):
    extension = other_jar(tmp_path / "openlineage-spark-shop-1.0.jar")
    execute(operator(listener_extensions=[str(extension)]))
    assert argument(spark_submit.given, "--jars") == f"{spark_submit.jar},{extension}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path, "does not exist"),
        (lambda path: listener_jar(path), "is a listener itself. Give it as listener_jar"),
        (lambda path: path.write_text("x") and path, "is no readable jar"),
    ],
    ids=["missing", "a listener", "damaged"],
)
def test_an_extension_that_would_end_the_job_is_left_out(
    spark_submit, execute, tmp_path, make, message
):
    extension = make(tmp_path / "shop.jar")
    task = operator(listener_extensions=[str(extension)])
    execute(task)
    assert argument(spark_submit.given, "--jars") == str(spark_submit.jar)
    assert message in degradations(task)["extension_unavailable"]
    with pytest.raises(Exception, match=message):
        execute(operator(listener_extensions=[str(extension)], strict=True))


def test_a_strict_task_names_every_extension_that_is_wrong(spark_submit, execute, tmp_path):
    extensions = [str(tmp_path / "one.jar"), str(tmp_path / "two.jar")]
    with pytest.raises(Exception, match=r"one\.jar.*two\.jar"):
        execute(operator(listener_extensions=extensions, strict=True))


def test_next_to_a_listener_of_sparks_own_no_extension_is_seen(spark_submit, execute, tmp_path):
    own = listener_jar(spark_submit.home / "jars" / "openlineage-spark_2.13-1.53.0.jar")
    extension = other_jar(tmp_path / "shop.jar")
    task = operator(listener_extensions=[str(extension)])
    execute(task)
    assert injected(spark_submit.given)
    assert argument(spark_submit.given, "--jars") is None
    assert f"Take {own} away from there" in degradations(task)["extension_unavailable"]
