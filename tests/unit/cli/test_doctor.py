"""What the doctor finds on a machine, and how it reports it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import jsonschema
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.cli.doctor import spark
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
)
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve
from airflow_provider_sparklineage.spark.submit import commands as java
from airflow_provider_sparklineage.spark.submit import fetching, listener
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from tests.conftest import Recorded

SCHEMA = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas" / "doctor.json"
LISTENER_CLASS = "io/openlineage/spark/agent/OpenLineageSparkListener.class"


class Machine:
    """A machine on which lineage works, to be broken in one place."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.home = folder / "spark"
        (self.home / "jars").mkdir(parents=True)
        (self.home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
        (self.home / "conf").mkdir()
        self.java = folder / "jdk" / "bin" / "java"
        self.java.parent.mkdir(parents=True)
        self.java.touch()
        self.env = {
            "SPARK_HOME": str(self.home),
            "JAVA_HOME": str(folder / "jdk"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PATH": "",
        }
        self.cached = fetching.cached("2.13", self.env)
        self.cached.parent.mkdir(parents=True)
        self.write_listener(self.cached)
        self.captures = folder / "captures"
        self.values = {"capture_location": str(self.captures)}
        self.java_is = 17
        # A jar of this version would be 43 MB, so the one here is taken for it.
        self.is_published = True
        monkeypatch.setattr(fetching, "is_cached", lambda *_: self.cached.is_file())
        monkeypatch.setattr(java, "java_feature_version", lambda _: self.java_is)
        monkeypatch.setattr(
            fetching,
            "digest_problem",
            lambda jar, _: None if self.is_published else f"{jar} is not",
        )

    def write_listener(self, path, version=listener.VERSION, name=LISTENER_CLASS):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, b"")
            archive.writestr(
                "io/openlineage/spark/agent/version.properties", f"version={version}\n"
            )

    def check(self):
        settings = resolve(Source(Origin.CONFIGURATION, self.values))
        return spark.check(settings, "spark-submit", self.env)

    def found(self, name):
        checks, _ = self.check()
        return next(check for check in checks if check.name == name)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_a_machine_that_works_passes(machine):
    checks, found = machine.check()
    assert [(c.name, c.status) for c in checks] == [
        (spark.JAVA, Status.OK),
        (spark.SPARK, Status.OK),
        (spark.LISTENER, Status.OK),
        (spark.CAPTURES, Status.OK),
    ]
    assert all(c.fix == "" for c in checks)
    assert (found.spark.version, found.jars) == ("4.0.1", (str(machine.cached),))


def without_java(machine):
    machine.java.unlink()


def with_old_java(machine):
    machine.java_is = 11


def with_something_else_as_java(machine):
    machine.java_is = None


def without_spark(machine):
    del machine.env["SPARK_HOME"]


def without_listener(machine):
    machine.cached.unlink()


def with_a_missing_jar(machine):
    machine.values["listener_jar"] = str(machine.folder / "missing.jar")


def with_a_corrupt_jar(machine):
    machine.cached.write_bytes(machine.cached.read_bytes()[:-20])


def with_another_jar(machine):
    machine.write_listener(machine.cached, name="org/postgresql/Driver.class")


def with_another_digest(machine):
    machine.is_published = False


def with_the_other_scala(machine):
    jar = machine.folder / "openlineage-spark_2.12-1.53.0.jar"
    machine.write_listener(jar)
    machine.values["listener_jar"] = str(jar)


def with_two_listeners(machine):
    (machine.home / "conf" / "spark-defaults.conf").write_text(
        "spark.jars.packages io.openlineage:openlineage-spark_2.13:1.53.0,"
        "io.openlineage:openlineage-spark_2.12:1.40.0\n"
    )


def with_connect(machine):
    machine.env["SPARK_REMOTE"] = "sc://spark"


def with_defaults_that_cannot_be_read(machine):
    (machine.home / "conf" / "spark-defaults.conf").mkdir()


def with_a_missing_extension(machine):
    machine.values["listener_extensions"] = "/nowhere/visitors.jar"


def with_a_file_as_capture_location(machine):
    machine.captures.touch()


def with_a_capture_location_for_everybody(machine):
    machine.captures.mkdir()
    machine.captures.chmod(0o777)


@pytest.mark.parametrize(
    ("broken", "name", "message", "fix"),
    [
        (without_java, spark.JAVA, "no Java to run Spark with", "Install Java 17"),
        (with_old_java, spark.JAVA, "is Java 11, but Spark 4.0.1 needs 17", "Set JAVA_HOME"),
        (with_something_else_as_java, spark.JAVA, "is no Java", "Set JAVA_HOME"),
        (without_spark, spark.SPARK, "no spark-submit on the worker's PATH", "SPARK_HOME"),
        (without_listener, spark.LISTENER, "is no OpenLineage listener", "fetch-listener"),
        (with_a_missing_jar, spark.LISTENER, "missing.jar does not exist", "listener_jar"),
        (with_a_corrupt_jar, spark.LISTENER, "not a readable OpenLineage", "fetch-listener"),
        (with_another_jar, spark.LISTENER, "not a readable OpenLineage", "fetch-listener"),
        (with_another_digest, spark.LISTENER, "not the jar that was published", "Delete"),
        (with_the_other_scala, spark.LISTENER, "is for Scala 2.12", "openlineage-spark_2.13"),
        (with_two_listeners, spark.LISTENER, "has 2 OpenLineage listeners", "Leave one, or none"),
        (with_connect, spark.LISTENER, "uses Spark Connect", "spark.api.mode=classic"),
        (with_defaults_that_cannot_be_read, spark.DEFAULTS, "directory", "properties file"),
        (with_a_missing_extension, spark.EXTENSIONS, "does not exist", "Correct listener_ext"),
        (with_a_file_as_capture_location, spark.CAPTURES, "No capture bundle", "capture_location"),
        (with_a_capture_location_for_everybody, spark.CAPTURES, "writable for others", "0700"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_is_broken_is_reported_with_its_fix(machine, broken, name, message, fix):
    broken(machine)
    found = machine.found(name)
    assert found.status is Status.FAILED
    assert message in found.message
    assert fix in found.fix


@pytest.mark.parametrize("broken", [without_java, without_spark, without_listener, with_connect])
def test_no_trial_is_run_that_could_not_collect_anything(machine, broken):
    broken(machine)
    assert machine.check()[1] is None


def test_a_listener_that_was_not_tried_with_this_package_is_a_warning(machine):
    jar = machine.folder / "listener.jar"
    machine.write_listener(jar, version="1.54.0")
    machine.values["listener_jar"] = str(jar)
    found = machine.found(spark.LISTENER)
    assert found.status is Status.WARNING
    assert "1.54.0" in found.message
    assert machine.check()[1].jars == (str(jar),)


@pytest.mark.parametrize(
    ("url", "can_be_tried"), [("s3a://jars/l.jar", True), ("local:///nowhere/l.jar", False)]
)
def test_a_listener_that_is_not_on_the_worker_is_not_looked_at(machine, url, can_be_tried):
    machine.values["listener_jar"] = url
    found = machine.found(spark.LISTENER)
    assert found.status is Status.OK
    assert f"It is {url}" in found.message
    trial = machine.check()[1]
    assert (trial is not None and trial.jars == (url,)) == can_be_tried


def test_a_listener_that_the_first_task_may_fetch_is_a_warning(machine):
    machine.cached.unlink()
    machine.values["fetch_listener"] = "True"
    assert machine.found(spark.LISTENER).status is Status.WARNING


@pytest.mark.parametrize(
    ("version", "status"), [("4.2.7", Status.OK), ("4.3.0", Status.WARNING), ("5.0", "warning")]
)
def test_a_spark_that_is_newer_than_what_was_tested_is_a_warning(machine, version, status):
    machine.values["spark_version"] = version
    assert machine.found(spark.SPARK).status == status


@pytest.mark.parametrize(
    ("client", "status"), [("4.0.1", Status.OK), ("4.2.0", Status.WARNING), (None, Status.OK)]
)
def test_two_versions_of_pyspark_in_one_folder_are_a_warning(machine, client, status):
    packages = machine.folder / "site-packages"
    packages.mkdir()
    machine.home.rename(packages / "pyspark")
    machine.env["SPARK_HOME"] = str(packages / "pyspark")
    (packages / "pyspark-4.0.1.dist-info").mkdir()
    if client:
        (packages / f"pyspark_client-{client}.dist-info").mkdir()
    check = machine.found(spark.SPARK)
    assert check.status is status
    assert check.fix.endswith("pyspark==4.0.1 pyspark-client==4.0.1") is (status != "ok")


def test_spark_can_be_declared(machine):
    machine.values["spark_version"] = "3.5.6-scala2.13"
    assert "Spark 3.5.6 on Scala 2.13" in machine.found(spark.SPARK).message


def test_a_listener_of_sparks_own_needs_none_of_ours(machine):
    machine.cached.unlink()
    jar = machine.home / "jars" / "openlineage-spark_2.13-1.53.0.jar"
    machine.write_listener(jar)
    assert machine.found(spark.LISTENER).status is Status.OK
    assert machine.check()[1].jars == ()


def test_a_capture_location_that_others_can_list_is_a_warning(machine):
    machine.captures.mkdir()
    machine.captures.chmod(0o755)
    found = machine.found(spark.CAPTURES)
    assert (found.status, found.fix) == (Status.WARNING, f"chmod 700 {machine.captures}")


def test_nothing_is_left_behind(machine):
    machine.check()
    assert not machine.captures.exists()
    machine.captures.mkdir(mode=0o700)
    machine.check()
    assert list(machine.captures.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "message", "fix"),
    [
        (ListenerError("It is old.", "Use a new one."), "It is old.", "Use a new one."),
        (CaptureError("It is full."), "It is full.", ""),
        (OSError("disk"), "disk", ""),
        (OSError("https://u:p@ss@h is away"), "https://h is away", ""),
    ],
)
def test_a_failed_check_has_the_problem_and_the_fix_of_its_error(error, message, fix):
    assert spark.failed("x", error) == Check("x", Status.FAILED, message, fix)


# --- the trial ------------------------------------------------------------------------------------


def found_machine(**defaults):
    return spark.Machine(SparkDistribution(None, "4.0.1", "2.13"), "spark-submit", defaults, ())


def an_event(*, partition="2024-05-06", column="amount", degradations=()):
    subset = {"type": "partition", "partitions": [{"dimensions": {"dt": partition}}]}
    orders = {"namespace": "file", "name": "/w/orders"}
    fields = {"total": {"inputFields": [{**orders, "field": column}]}}
    totals = {"namespace": "file", "name": "/w/totals"}
    return {
        "inputs": [{**orders, "inputFacets": {"subset": {"inputCondition": subset}}}],
        "outputs": [{**totals, "facets": {"columnLineage": {"fields": fields}}}],
        "run": {"facets": {"sparkLineage_capture": {"degradations": list(degradations)}}},
    }


def test_a_trial_whose_lineage_is_complete_passes():
    check = spark.judged(an_event(), found_machine(), "", 12.3)
    assert check.status is Status.OK
    assert check.message.startswith("Spark 4.0.1 ran an application in 12 s, and its lineage is")


@pytest.mark.parametrize(
    ("event", "missing"),
    [
        (an_event(partition="2024-05-07"), "is without the partition that was read"),
        (an_event(column="other"), "is without the sources of a column"),
        ({**an_event(), "outputs": []}, "is without a table, the sources of a column"),
    ],
)
def test_what_a_trial_misses_is_a_warning(event, missing):
    check = spark.judged(event, found_machine(), "", 1)
    assert check.status is Status.WARNING
    assert missing in check.message


def test_a_trial_without_events_is_reported_with_a_reason():
    none = {"code": "no_events", "message": "The listener wrote no events."}
    event = {**an_event(degradations=[none]), "inputs": [], "outputs": []}
    switched_off = found_machine(**{"spark.openlineage.disabled": "true"})
    check = spark.judged(event, switched_off, "", 1)
    assert check.status is Status.FAILED
    assert "no_events" in check.message
    assert check.fix == "Take spark.openlineage.disabled out of spark-defaults.conf."
    log = "ERROR java.lang.NoSuchMethodError: 'void org.apache.Foo.bar()'\n"
    assert "Classes of other versions" in spark.judged(event, found_machine(), log, 1).fix


@pytest.mark.parametrize(
    ("log", "last"),
    [
        ("", "it printed nothing"),
        ("one\n\ntwo\n", "two"),
        ("x\njava.lang.IllegalStateException: why\n\tat a.b.C\nbye\n", "IllegalStateException"),
    ],
)
def test_the_line_of_a_log_that_names_the_cause_is_found(log, last):
    assert last in spark._last(log)


def test_a_recorded_application_without_the_tables_of_the_trial_is_a_warning():
    event = Recorded("staging_chain").event
    assert spark.judged(event, found_machine(), "", 1).status is Status.WARNING


# --- the report -----------------------------------------------------------------------------------

CHECKS = [
    Check("Java", Status.OK, "It is Java 17."),
    Check("listener", Status.WARNING, "It is [bold]old[/bold].", "Fetch\na \x1b[2Jnew one."),
]


def test_the_document_fits_its_schema():
    schema = json.loads(SCHEMA.read_text())
    for checks in ([], CHECKS):
        jsonschema.validate(commands.checks_document(checks), schema)
    assert commands.checks_document(CHECKS)["status"] == "warning"


def test_a_check_is_one_line_of_text():
    out = io.StringIO()
    commands.print_checks(CHECKS, out)
    assert out.getvalue().splitlines() == [
        "ok       Java      It is Java 17.",
        "warning  listener  It is [bold]old[/bold]. Fetch a \\x1b[2Jnew one.",
    ]


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [([], "ok"), (["ok", "warning"], "warning"), (["failed", "warning", "ok"], "failed")],
)
def test_the_worst_check_decides(statuses, worst):
    assert commands.worst_status(Check("x", Status(s), "") for s in statuses) == worst


def test_an_impossible_setting_is_a_failed_check_of_the_command(machine, monkeypatch, capsys):
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(machine.captures))
    assert cli.main(["doctor"]) == 0
    capsys.readouterr()
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "soon")
    assert cli.main(["doctor", "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert (checks[0]["name"], checks[0]["status"]) == ("settings", "failed")
    assert len(checks) == 5


def test_a_check_shows_no_credentials_whatever_it_quotes():
    check = Check("x", Status.FAILED, "https://u:p@ss@h is away.", "Look at --token=s.")
    assert (check.message, check.fix) == ("https://h is away.", "Look at --token=***.")
