"""``sparklineage demo``: where it may run, what it refuses before it begins, and what it prints."""

from __future__ import annotations

import json
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest

from airflow_provider_sparklineage.cli import demo
from airflow_provider_sparklineage.model.exceptions import ListenerError

ROOT = Path(__file__).parents[3]
_SETTING = "AIRFLOW__SPARKLINEAGE__"


@pytest.fixture
def begun(monkeypatch):
    """Let the demo end when it would begin; give the environments with which it would."""
    environments = []

    def is_ready(environment):
        environments.append(environment)
        return False

    monkeypatch.setattr(demo, "_is_ready", is_ready)
    return environments


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Have all that the demo needs but the listener in the cache; give its fetches."""
    fetched = []
    monkeypatch.setattr(demo, "_PACKAGES", ())
    monkeypatch.setattr(demo.listener_selection, "fetch_for", lambda *_, **__: fetched.append(1))
    monkeypatch.setattr(demo, "_prepare", lambda _: pytest.fail("The demo has begun."))
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fetched


def write_earlier_demo(folder):
    demo._prepare(demo.Place(folder))


# --- the folder -----------------------------------------------------------------------------------


def test_a_folder_with_other_things_is_refused_and_left_as_it_was(run, tmp_path, begun):
    (tmp_path / "lake").mkdir()
    done = run("demo", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"sparklineage: {tmp_path} has other things in it than a demo that was run there. Name a "
        "folder that is empty or not there: sparklineage demo DIR. Nothing was written.\n"
    )
    assert (begun, [*tmp_path.rglob("*")]) == ([], [tmp_path / "lake"])


@pytest.mark.parametrize("case", ["a file", "the demo of another folder", "another Airflow's"])
def test_it_is_refused_whatever_it_has(run, tmp_path, begun, case):
    folder = tmp_path / "there"
    if case == "a file":
        folder.touch()
    elif case == "the demo of another folder":  # the configuration names that one's files
        write_earlier_demo(tmp_path / "moved")
        (tmp_path / "moved").rename(folder)
    else:
        (folder / "airflow").mkdir(parents=True)
        (folder / "airflow" / "airflow.cfg").write_text("[core]\n")
    done = run("demo", str(folder))
    assert (done.code, begun) == (2, [])
    assert "other things" in done.err


@pytest.mark.parametrize("case", ["not there", "empty", "an earlier demo"])
def test_other_folders_are_taken(run, tmp_path, begun, case):
    folder = tmp_path / "demo"
    if case == "empty":
        folder.mkdir()
    elif case == "an earlier demo":
        write_earlier_demo(folder)
    assert run("demo", str(folder)).code == 1
    [environment] = begun
    assert environment["AIRFLOW_HOME"] == str(folder / "airflow")


def test_without_a_folder_it_is_one_of_that_name_here(run, tmp_path, begun, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("demo")
    assert begun[0]["AIRFLOW_HOME"] == str(tmp_path / "sparklineage-demo" / "airflow")


# --- the machine ----------------------------------------------------------------------------------


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(
    run, tmp_path, machine, monkeypatch
):
    monkeypatch.setattr(demo, "_PACKAGES", ("no_flights", "json"))
    done = run("demo", str(tmp_path / "demo"))
    assert (done.code, done.out) == (2, "")
    assert "The demo needs no_flights, which is not installed" in done.err
    assert "pip install 'airflow-provider-sparklineage[demo]'" in done.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("JAVA_HOME", "/nowhere", "There is no Java to run Spark with (JAVA_HOME is /nowhere)."),
        (f"{_SETTING}LISTENER_JAR", "/no.jar", "/no.jar"),
        (f"{_SETTING}FETCH_LISTENER", "perhaps", "fetch_listener is 'perhaps'"),
        (f"{_SETTING}FETCH_LISTENER", "False", "Run `sparklineage fetch-listener`"),
    ],
)
def test_what_the_doctor_finds_ends_it_before_it_begins(
    run, tmp_path, machine, monkeypatch, name, value, problem
):
    monkeypatch.setenv(name, value)
    done = run("demo", str(tmp_path / "demo"))
    assert (done.code, done.out, machine) == (1, "", [])
    assert problem in done.err
    assert done.err.endswith("The demo has not begun: run it again when that is fixed.\n")
    assert not (tmp_path / "demo").exists()


def test_a_missing_spark_is_named(run, tmp_path, machine, monkeypatch):
    monkeypatch.setattr(demo, "_SCRIPTS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("demo", str(tmp_path / "demo"))
    assert done.code == 1
    assert "There is no spark-submit" in done.err


def test_the_listener_is_fetched_before_anything_is_written(tmp_path, machine):
    place = demo.Place(tmp_path / "demo")
    assert demo._is_ready(demo.isolated(demo.os.environ, place))
    assert machine == [1]
    assert not place.folder.exists()


def test_without_a_network_it_says_why_there_is_no_listener(run, tmp_path, machine, monkeypatch):
    def fetch_for(*_, **__):
        problem = "The listener could not be fetched (no such host)."
        raise ListenerError(problem, "Check the network.")

    monkeypatch.setattr(demo.listener_selection, "fetch_for", fetch_for)
    done = run("demo", str(tmp_path / "demo"))
    assert (done.code, done.err) == (
        1,
        "sparklineage: The listener could not be fetched (no such host). Check the network.\n",
    )


def test_another_airflow_or_spark_does_not_leak_in(tmp_path):
    mine = {
        "AIRFLOW_HOME": "/mine",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        f"{_SETTING}ARCHIVE_URL": "file:///mine",
        f"{_SETTING}LISTENER_JAR": "/opt/listener.jar",
        "OPENLINEAGE_URL": "http://marquez:5000",
        "SPARK_HOME": "/opt/spark",
        "PYTHONPATH": "/mine",
        "JAVA_HOME": "/opt/java",
        "PATH": "/usr/bin",
    }
    place = demo.Place(tmp_path, environment={"HADOOP_CONF_DIR": "/etc/hadoop"})
    assert demo.isolated(mine, place) == {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        f"{_SETTING}LISTENER_JAR": "/opt/listener.jar",
        "JAVA_HOME": "/opt/java",
        "PATH": f"{demo._SCRIPTS}:/usr/bin",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "HADOOP_CONF_DIR": "/etc/hadoop",
    }


# --- the files ------------------------------------------------------------------------------------


def test_airflow_gets_a_configuration_once_and_the_examples_each_time(tmp_path):
    place = demo.Place(tmp_path / "100%")
    demo._prepare(place)
    parser = ConfigParser()  # interpolates, as Airflow's does
    parser.read(place.configuration)
    assert parser["sparklineage"]["capture_location"] == str(place.captures)
    # Nobody has to log in, so nobody else may come.
    assert parser["core"]["simple_auth_manager_all_admins"] == "True"
    assert parser["api"]["host"] == "127.0.0.1"
    assert place.configuration.stat().st_mode & 0o777 == 0o600

    changed = f"{place.configuration.read_text()}\n[api]\nport = 9000\n"
    place.configuration.write_text(changed)
    example = place.dags / f"{demo.FLIGHTS}.py"
    example.write_text("")
    demo._prepare(place)
    assert place.configuration.read_text() == changed
    assert example.read_text() == (ROOT / "dags_examples" / f"{demo.FLIGHTS}.py").read_text()


def test_an_earlier_demo_leaves_its_archive_and_nothing_that_changes_this_one(tmp_path):
    place = demo.Place(tmp_path)
    kept = {place.history.with_name("archive") / "event.json", place.home / "airflow.db"}
    for file in (
        *kept,
        place.history / "runs",
        place.captures / "events",
        tmp_path / "lake" / "flights",
        place.events,
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    demo._remove_last_demo(place)
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == kept


# --- the end --------------------------------------------------------------------------------------


def test_the_end_names_the_server_and_the_tab_as_they_are_typed(tmp_path):
    place = demo.Place(tmp_path / "my demo")
    (tmp_path / "airflow").touch(mode=0o755)
    home = f"AIRFLOW_HOME='{tmp_path}/my demo/airflow'"
    text = demo._pages(place, str(tmp_path))
    assert f'\n  PATH={demo._SCRIPTS}:"$PATH" {home} airflow standalone\n' in text
    assert (
        "\n  http://localhost:8080/dags/example_report_flight_delays/runs/"
        "manual__2013-01-08T00:00:00%2B00:00/tasks/daily_delays/plugin/spark-lineage\n"
    ) in text
    assert f"\n  {home} airflow standalone\n" in demo._pages(place, str(demo._SCRIPTS))


def test_the_questions_are_as_short_as_they_may_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = demo.Place(tmp_path / "demo")
    asked = demo._questions(place, str(demo._SCRIPTS)).splitlines()[2:]
    assert [shlex.split(line)[:2] for line in asked] == [
        ["sparklineage", question] for question in ("trace", "impact", "stale", "show")
    ]
    assert asked[2] == "  sparklineage stale --store demo/airflow/sparklineage/history"
    other = demo._questions(place, "/usr/bin")
    assert f"  {demo._SCRIPTS}/sparklineage stale" in other


def test_the_shown_event_is_the_last_of_its_task(tmp_path):
    place = demo.Place(tmp_path)
    name = f"{demo.FLIGHTS}.{demo.TASK}"
    events = [
        {"job": {"name": job}, "run": number}
        for number, job in enumerate([name, name, demo.FLIGHTS])
    ]
    place.events.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert json.loads(demo._last_event(place)) == events[1]


def test_the_end_of_the_log_is_without_the_frames_of_javas_stacks(tmp_path):
    frames = [f"\tat org.apache.spark.Job.run(Job.scala:{n})\n" for n in range(100)]
    log = tmp_path / "demo.log"
    log.write_text("".join(["The lake is gone.\n", *frames, "\t... 20 more\n", "The end.\n"]))
    assert demo._log_tail(log) == "The lake is gone.\nThe end.\n"
