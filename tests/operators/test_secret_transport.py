"""A transport of the job's own with secrets, where something keeps them from going by a file."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import timeout

from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.submit import distribution

pytestmark = pytest.mark.airflow

T = "spark.openlineage.transport."
SECRET = "pl4nted-s3cr3t"
KEYED = {
    f"{T}type": "http",
    f"{T}url": f"http://me:{SECRET}@marquez:5000",
    f"{T}auth.type": "api_key",
    f"{T}auth.apiKey": SECRET,
    f"{T}headers.Authorization": f"Basic {SECRET}",
    "spark.executor.memory": "2g",
}
NOWHERE = {f"{T}type": "file", f"{T}location": "/dev/null"}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Give the temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def run(spark_submit, execute, tmp_path, temporary, caplog):
    """Run a task; give the degradations, having looked for the secret wherever it could lie."""
    caplog.set_level(logging.DEBUG)

    def run(conf=KEYED, **kwargs):
        task = SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", conf=dict(conf), **kwargs
        )
        execute(task)
        assert task.conf == conf
        lineage = task.get_openlineage_facets_on_complete(None)
        given = spark_submit.given
        places = {
            "arguments": json.dumps(given.argv),
            "environment": json.dumps(given.env),
            "log": caplog.text,
            "event": repr(lineage),
            **{str(f): f.read_text("latin-1") for f in tmp_path.rglob("*") if f.is_file()},
        }
        places.pop(str(tmp_path / "dump.json"))  # what the double was given
        places.pop(str(tmp_path / "job.properties"), None)  # what the user has given
        assert [place for place, text in places.items() if SECRET in text] == []
        assert list(temporary.glob(".sparklineage-*")) == []
        # Another test may have a file in /dev/shm at the same time.
        passed = [Path(file) for file in spark_submit.given.files if ".sparklineage-" in file]
        assert [file for file in passed if file.exists()] == []
        facet = lineage.run_facets["sparkLineage_capture"]
        return {d["code"]: d["message"] for d in facet.degradations}

    return run


def file_of(given):
    """Give the properties file of a submission."""
    [(mode, text)] = given.files.values()
    assert mode == "0o600"
    return text.replace("\\", "")


def transport_of(given):
    return {key: value for key, value in given.conf.items() if key.startswith(T)}


def unrecognised(spark_submit, monkeypatch):
    """Let nobody know which Spark is below spark-submit, nor where its properties are."""
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)


# --- a file can be written ------------------------------------------------------------------------


def test_with_an_impossible_setting_the_users_transport_still_goes_by_a_file(
    spark_submit, run, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_PARTITIONS", "many")
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text("spark.app.name shop\n")
    codes = run()
    assert "max_partitions" in codes["injection_failed"]
    text = file_of(spark_submit.given)
    assert f"{T}auth.apiKey={SECRET}" in text
    assert f"{T}url=http://me:{SECRET}@marquez:5000" in text
    assert "spark.app.name=shop" in text
    assert transport_of(spark_submit.given) == {f"{T}type": "http", f"{T}auth.type": "api_key"}
    assert "apiKey" not in spark_submit.given.conf["spark.redaction.regex"]
    assert "auth|headers" in spark_submit.given.conf["spark.redaction.regex"]


@pytest.mark.parametrize("named_by", ["SPARK_CONF_DIR", "properties_file"])
def test_an_unknown_spark_whose_properties_are_known_gets_them_with_the_secrets(
    spark_submit, run, monkeypatch, tmp_path, named_by
):
    unrecognised(spark_submit, monkeypatch)
    file = tmp_path / "job.properties"
    if named_by == "SPARK_CONF_DIR":
        file = spark_submit.home / "conf" / "spark-defaults.conf"
        monkeypatch.setenv("SPARK_CONF_DIR", str(file.parent))
    file.write_text("spark.app.name shop\n")
    codes = run(properties_file=None if named_by == "SPARK_CONF_DIR" else str(file))
    assert "listener_unavailable" in codes
    assert "transport_left_out" not in codes
    text = file_of(spark_submit.given)
    assert f"{T}auth.apiKey={SECRET}" in text
    assert "spark.app.name=shop" in text


def full(monkeypatch, *folders):
    """Let the disk below these folders be full."""
    write = distribution.write_properties

    def written(path, properties):
        if path.parent in folders or not folders:
            path.write_text("half of it, with nothing")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, properties)

    monkeypatch.setattr(distribution, "write_properties", written)


@pytest.mark.parametrize("more", [False, True], ids=["the location", "the temporary folder too"])
def test_where_a_disk_is_full_the_next_folder_takes_the_file(
    spark_submit, run, monkeypatch, tmp_path, temporary, more
):
    full(monkeypatch, tmp_path / "captures", *[temporary] * more)
    codes = run()
    [file] = spark_submit.given.files
    assert Path(file).parent == (Path("/dev/shm") if more else temporary)
    assert f"{T}transports.user.auth.apiKey={SECRET}" in file_of(spark_submit.given)
    assert "transport_left_out" not in codes


def test_bytes_that_are_no_text_in_the_defaults_cost_nothing(spark_submit, run):
    defaults = spark_submit.home / "conf" / "spark-defaults.conf"
    defaults.write_bytes(b"spark.app.name caf\xe9\n")
    codes = run()
    assert "injection_failed" not in codes
    # As Spark reads it.
    assert "spark.app.name=cafufffd" in file_of(spark_submit.given)


def test_a_pipe_in_the_place_of_the_defaults_is_no_file_for_spark_either(spark_submit, run):
    os.mkfifo(spark_submit.home / "conf" / "spark-defaults.conf")
    with timeout(seconds=30, error_message="waiting for the pipe"):
        assert "injection_failed" not in run()


# --- no file can be written -----------------------------------------------------------------------


def unreadable(spark_submit, monkeypatch):
    """Let the defaults be no properties file."""
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text("spark.x \\uZZZZ\n")


def no_folder(spark_submit, monkeypatch):
    """Let no folder take a file."""
    full(monkeypatch)


def impossible(spark_submit, monkeypatch):
    """Let a setting be impossible, and Spark unknown."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_PARTITIONS", "many")
    unrecognised(spark_submit, monkeypatch)


FAULTS = (unrecognised, unreadable, no_folder, impossible)


@pytest.mark.parametrize("fault", FAULTS)
def test_where_there_is_no_file_the_transport_is_left_out_and_the_job_runs(
    spark_submit, run, monkeypatch, caplog, fault
):
    fault(spark_submit, monkeypatch)
    codes = run()
    assert spark_submit.given.files == {}
    assert transport_of(spark_submit.given) == NOWHERE
    assert spark_submit.given.conf["spark.executor.memory"] == "2g"
    message = codes["transport_left_out"]
    assert message.startswith("The job was submitted without its own OpenLineage transport")
    [warning] = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert message in warning


@pytest.mark.parametrize("fault", FAULTS)
def test_a_transport_without_secrets_stays(spark_submit, run, monkeypatch, fault):
    fault(spark_submit, monkeypatch)
    conf = {f"{T}type": "http", f"{T}url": "http://marquez:5000"}
    codes = run(conf)
    assert "transport_left_out" not in codes
    if fault is not no_folder:  # there everything is known, and nothing needs a file
        assert transport_of(spark_submit.given) == conf


@pytest.mark.parametrize("fault", FAULTS)
def test_so_is_airflows_own_transport_which_the_task_was_to_pass_on(
    spark_submit, run, monkeypatch, fault
):
    given = {f"{T}type": "http", f"{T}auth.apiKey": SECRET}
    monkeypatch.setattr(
        adapters,
        "inject_transport_information_into_spark_properties",
        lambda *_: given,
    )
    fault(spark_submit, monkeypatch)
    codes = run({}, openlineage_inject_transport_info=True)
    assert "transport_left_out" in codes
    assert transport_of(spark_submit.given) == NOWHERE


@pytest.mark.parametrize("fault", FAULTS)
def test_a_strict_task_is_not_submitted(spark_submit, run, monkeypatch, fault):
    fault(spark_submit, monkeypatch)
    with pytest.raises((SparkLineageError, ValueError)):
        run(strict=True)
    assert not spark_submit.ran or spark_submit.given.argv == ["--version"]


# --- lineage is off -------------------------------------------------------------------------------


def test_without_lineage_the_arguments_are_those_of_the_stock_operator(spark_submit, execute):
    execute(
        SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", conf=dict(KEYED), lineage=False
        )
    )
    assert spark_submit.given.conf == KEYED
    assert spark_submit.given.files == {}
