"""Injection: what the user has is kept and appended to, wherever Spark would take it from."""

from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit.injection import (
    DELTA_TAG,
    QUIET_JVM,
    Injection,
    Observation,
    inject,
    injected_names,
)
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from airflow_provider_sparklineage.spark.submit.submission import Submission

JAR = Path("/cache/openlineage-spark_2.13-1.53.0.jar")
INJECTION = Injection(
    jars=(str(JAR),),
    events_path="/bundle/events.ndjson",
    application_run_id="01234567-89ab-cdef-0123-456789abcdef",
    defaults={"spark.openlineage.namespace": "airflow"},
    submit_opts="",
)
OL = "spark.openlineage."


def test_a_bare_submission_gets_listener_jar_and_configuration():
    after = inject(Submission(), INJECTION)
    assert after.jars == str(JAR)
    assert after.conf == {
        "spark.extraListeners": LISTENER_CLASS,
        f"{OL}transport.type": "file",
        f"{OL}transport.location": "/bundle/events.ndjson",
        f"{OL}columnLineage.datasetLineageEnabled": "true",
        f"{OL}namespace": "airflow",
        f"{OL}applicationRunId": "01234567-89ab-cdef-0123-456789abcdef",
        f"{OL}capturedProperties": (
            "spark.master,spark.app.name,spark.sql.sources.partitionOverwriteMode,"
            "spark.sql.extensions,spark.sql.maxConcurrentOutputFileWriters,"
            "spark.sql.optimizer.plannedWrite.enabled"
        ),
    }
    assert after.env_vars == {"SPARK_SUBMIT_OPTS": " ".join(QUIET_JVM)}


@pytest.mark.parametrize(
    "submission",
    [
        pytest.param(Submission(conf={"spark.extraListeners": "a.B"}), id="conf"),
        pytest.param(Submission(file_properties={"spark.extraListeners": "a.B"}), id="file"),
        pytest.param(
            Submission(
                conf={"spark.extraListeners": "a.B"},
                file_properties={"spark.extraListeners": "c.D"},
            ),
            id="conf beats file",
        ),
    ],
)
def test_the_listener_is_appended_to_the_one_that_would_have_won(submission):
    assert inject(submission, INJECTION).conf["spark.extraListeners"] == f"a.B,{LISTENER_CLASS}"


@pytest.mark.parametrize(
    "submission",
    [
        pytest.param(Submission(jars="/a.jar"), id="flag"),
        pytest.param(Submission(conf={"spark.jars": "/a.jar"}), id="conf"),
        pytest.param(Submission(file_properties={"spark.jars": "/a.jar"}), id="file"),
        pytest.param(
            Submission(jars="/a.jar", conf={"spark.jars": "/b.jar"}), id="flag beats conf"
        ),
    ],
)
def test_the_jar_is_appended_to_the_ones_that_would_have_won(submission):
    after = inject(submission, INJECTION)
    assert after.jars == f"/a.jar,{JAR}"
    assert "spark.jars" not in after.conf


@pytest.mark.parametrize("place", ["conf", "file_properties"])
@pytest.mark.parametrize(
    "key",
    [
        f"{OL}namespace",
        f"{OL}columnLineage.datasetLineageEnabled",
    ],
)
def test_the_users_own_keys_win(place, key):
    after = inject(Submission(**{place: {key: "mine"}}), INJECTION)
    assert after.value(key) == "mine"


def test_captured_properties_are_extended():
    after = inject(Submission(conf={f"{OL}capturedProperties": "spark.master,my.own"}), INJECTION)
    captured = after.conf[f"{OL}capturedProperties"].split(",")
    assert captured[:2] == ["spark.master", "my.own"]
    assert "spark.sql.sources.partitionOverwriteMode" in captured
    assert "spark.app.name" not in captured  # the user's list replaces the listener's default


def test_submit_options_of_the_environment_are_kept():
    after = inject(Submission(), replace(INJECTION, submit_opts="-Dx=y"))
    assert after.env_vars["SPARK_SUBMIT_OPTS"] == " ".join(["-Dx=y", *QUIET_JVM])


def test_blanks_in_submit_options_are_left_as_they_are():
    quoted = "-Dtitle='two  blanks' -Dsep=\"\t\""
    after = inject(Submission(), replace(INJECTION, submit_opts=quoted))
    assert after.env_vars["SPARK_SUBMIT_OPTS"].startswith(f"{quoted} ")


def test_submit_options_of_the_operator_win_over_the_environment():
    submission = Submission(env_vars={"SPARK_SUBMIT_OPTS": "-Dmine=1", "A": "b"})
    after = inject(submission, replace(INJECTION, submit_opts="-Dx=y"))
    assert after.env_vars == {"SPARK_SUBMIT_OPTS": " ".join(["-Dmine=1", *QUIET_JVM]), "A": "b"}


JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("submission", "options"),
    [
        pytest.param(Submission(), " ".join(QUIET_JVM), id="none"),
        pytest.param(Submission(conf={JAVA_OPTIONS: "-Dx=y"}), "-Dx=y", id="of the user"),
        pytest.param(
            Submission(file_properties={JAVA_OPTIONS: "-Da=b"}), "-Da=b", id="in the file"
        ),
    ],
)
def test_where_the_environment_is_not_the_drivers_a_property_has_the_options(submission, options):
    after = inject(submission, replace(INJECTION, submit_opts=None))
    assert after.env_vars == {}
    assert after.value(JAVA_OPTIONS) == options
    assert (JAVA_OPTIONS in after.conf) == (JAVA_OPTIONS not in submission.file_properties)


def test_names_but_no_values_of_what_was_injected_are_reported():
    before = Submission(conf={f"{OL}namespace": "mine"})
    names = injected_names(before, inject(before, INJECTION))
    assert f"{OL}transport.location" in names
    assert "jars" in names
    assert "env:SPARK_SUBMIT_OPTS" in names
    assert f"{OL}namespace" not in names


KEYS = st.sampled_from(
    [
        "spark.extraListeners",
        "spark.jars",
        "spark.jars.packages",
        f"{OL}namespace",
        f"{OL}transport.type",
        f"{OL}transport.url",
        f"{OL}capturedProperties",
        f"{OL}transport.transports.x.type",
        "spark.app.name",
    ]
)
VALUES = st.sampled_from(["a", "a,b", "composite", "http", "file", LISTENER_CLASS, " "])
PROPERTIES = st.dictionaries(KEYS, VALUES, max_size=5)


def injected(submission):
    """Inject, passing over what cannot carry the listener."""
    try:
        return inject(submission, INJECTION)
    except ListenerError:
        reject()


@given(conf=PROPERTIES, file=PROPERTIES, jars=st.sampled_from([None, "/a.jar", "/a.jar,/b.jar"]))
def test_injecting_twice_changes_nothing(conf, file, jars):
    once = injected(Submission(conf=conf, file_properties=file, jars=jars))
    assert inject(once, INJECTION) == once


@given(conf=PROPERTIES, file=PROPERTIES)
def test_injection_does_not_change_the_given_submission(conf, file):
    submission = Submission(conf=conf, file_properties=file)
    before = repr(submission)
    injected(submission)
    assert repr(submission) == before


def test_a_jar_url_with_credentials_from_a_file_stays_in_a_file():
    url = "https://ci:s3cr3t@jars.example/a.jar"
    after = inject(Submission(file_properties={"spark.jars": url}), INJECTION)
    assert after.jars is None
    assert after.new_file == {"spark.jars": f"{url},{JAR}"}
    assert inject(after, INJECTION) == after


# --- the observer ---------------------------------------------------------------------------------

ZIP = "/bundle/observer.zip"
OBSERVED = replace(
    INJECTION, observation=Observation(ZIP, "/bundle/observations.ndjson", "the-tag")
)
JOB = Submission(application="s3a://jobs/job.py")


@pytest.mark.parametrize(
    ("submission", "py_files"),
    [
        pytest.param(JOB, ZIP, id="none"),
        pytest.param(replace(JOB, py_files="/a.py"), f"/a.py,{ZIP}", id="flag"),
        pytest.param(
            replace(JOB, conf={"spark.submit.pyFiles": "/a.py"}), f"/a.py,{ZIP}", id="conf"
        ),
        pytest.param(
            replace(JOB, file_properties={"spark.submit.pyFiles": "/a.py"}),
            f"/a.py,{ZIP}",
            id="file",
        ),
        pytest.param(
            replace(JOB, py_files="/a.py", conf={"spark.submit.pyFiles": "/b.py"}),
            f"/a.py,{ZIP}",
            id="flag beats conf",
        ),
    ],
)
def test_the_observer_is_appended_to_the_files_that_would_have_won(submission, py_files):
    after = inject(submission, OBSERVED)
    assert after.py_files == py_files
    assert "spark.submit.pyFiles" not in after.conf


def test_the_observer_is_given_its_file_and_the_tag_of_commits():
    conf = inject(JOB, OBSERVED).conf
    assert conf["spark.sparklineage.observations"] == "/bundle/observations.ndjson"
    assert conf["spark.sparklineage.tag"] == conf[DELTA_TAG] == "the-tag"


@pytest.mark.parametrize("place", ["conf", "file_properties"])
def test_the_users_delta_metadata_stays(place):
    after = inject(replace(JOB, **{place: {DELTA_TAG: "theirs"}}), OBSERVED)
    assert after.value(DELTA_TAG) == "theirs"
    assert "spark.sparklineage.tag" not in after.conf


@pytest.mark.parametrize("application", ["", "job.jar", "job.R"])
def test_without_a_python_driver_there_is_no_observer(application):
    after = inject(Submission(application=application), OBSERVED)
    assert after.py_files is None
    assert DELTA_TAG not in after.conf


def test_injecting_the_observer_twice_changes_nothing():
    once = inject(replace(JOB, py_files="/a.py"), OBSERVED)
    assert inject(once, OBSERVED) == once


def test_the_observer_is_named_among_what_was_injected():
    names = injected_names(JOB, inject(JOB, OBSERVED))
    assert {"py_files", DELTA_TAG, "spark.sparklineage.observations"} <= set(names)
