"""Which listener fits which Spark, which Spark it is, and the error where none fits."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import (
    commands,
    distribution,
    fetching,
    listener,
    listener_selection,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.listener import Identity
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests.unit.listener_jars import listener_jar, other_jar, with_a_damaged_class

JAR = "openlineage-spark_2.13-1.53.0.jar"
COORDINATE = "io.openlineage:openlineage-spark"
PACKAGE = f"{COORDINATE}_2.13:1.53.0"


@pytest.fixture
def spark(tmp_path):
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    return SparkDistribution(home, "4.0.1", "2.13")


def script(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o755)
    return path


# --- the distribution --------------------------------------------------------------------------


def test_spark_home_has_version_and_scala(spark):
    assert distribution.find("spark-submit", {"SPARK_HOME": str(spark.home)}) == spark


def test_a_distribution_is_found_above_its_bin(spark):
    binary = script(spark.home / "bin" / "spark-submit")
    assert distribution.find("spark-submit", {"PATH": str(binary.parent)}) == spark


def test_a_pip_installed_spark_is_found_next_to_its_script(tmp_path, spark):
    package = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "pyspark"
    package.parent.mkdir(parents=True)
    spark.home.rename(package)
    binary = script(tmp_path / "venv" / "bin" / "spark-submit")
    found = distribution.find("spark-submit", {"PATH": str(binary.parent)})
    assert (found.home, found.version) == (package, "4.0.1")


def test_a_spark_with_jars_of_other_names_is_recognised_by_its_release_file(tmp_path):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "scala-library-2.12.18.jar").touch()
    (tmp_path / "RELEASE").write_text("Spark 3.5.6 (git revision 303c18c746) built for Hadoop\n")
    found = distribution.find("spark-submit", {"SPARK_HOME": str(tmp_path)})
    assert found == SparkDistribution(tmp_path, "3.5.6", "2.12")


@pytest.mark.parametrize("env", [{"PATH": "/nowhere"}, {"SPARK_HOME": "/nowhere"}])
def test_no_spark_is_none(env):
    assert distribution.find("spark-submit", env) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4.0.1", ("4.0.1", "2.13")),
        ("3.5", ("3.5", "2.12")),
        ("3.5.6-scala2.13", ("3.5.6", "2.13")),
        ("3.4.1.dp-2", ("3.4.1.dp-2", "2.12")),
    ],
)
def test_a_declared_version_implies_its_scala(text, expected):
    assert distribution.declared(text) == expected


@pytest.mark.parametrize("text", ["", "latest", "four", "3"])
def test_what_is_no_version_is_refused(text):
    with pytest.raises(ValueError, match=r"is no version of Spark, such as 4\.0\.1"):
        distribution.declared(text)


PRINTED = """Welcome to
   /___/ .__/\\_,_/_/ /_/\\_\\   version 3.5.6
Using Scala version 2.12.18, OpenJDK 64-Bit Server VM, 17.0.15
"""


def test_the_output_of_spark_submit_has_version_and_scala():
    assert commands.parse_version_output(PRINTED) == ("3.5.6", "2.12")


@pytest.mark.parametrize(
    ("output", "quoted"), [("", "prints nothing"), ("JAVA_HOME is not set\n", "JAVA_HOME")]
)
def test_a_spark_submit_that_prints_no_version_is_quoted(output, quoted):
    with pytest.raises(ListenerError, match=rf"{quoted}.*Set \[sparklineage\] spark_version"):
        commands.parse_version_output(output)


def ask(binary, **kwargs):
    env = {"PATH": f"{binary.parent}:{os.environ['PATH']}"}
    return commands.ask_version(binary.name, env, **kwargs)


def test_spark_submit_is_asked_for_its_version(tmp_path, mocker):
    binary = script(tmp_path / "bin" / "shop-submit")
    mocker.patch.object(commands, "run", return_value=(0, PRINTED))
    assert ask(binary) == SparkDistribution(None, "3.5.6", "2.12")


def test_a_spark_submit_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "TASK_VERSION_TIMEOUT_S", 0.5)
    binary = script(tmp_path / "bin" / "shop-submit")
    binary.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    with pytest.raises(ListenerError, match=r"no answer \(within 0\.5 s\).*spark_version"):
        ask(binary, in_task=True)


def test_a_spark_submit_that_prints_no_version_is_quoted_with_the_fix(tmp_path, mocker):
    binary = script(tmp_path / "bin" / "shop-submit")
    mocker.patch.object(commands, "run", return_value=(1, "JAVA_HOME is not set"))
    with pytest.raises(ListenerError, match=r"\(JAVA_HOME is not set\).*spark_version"):
        ask(binary, in_task=True)


def test_without_spark_submit_there_is_no_spark():
    with pytest.raises(ListenerError, match=r"no shop-submit on the worker's PATH\. Install Spark"):
        listener_selection.spark_of("shop-submit", {"PATH": "/nowhere"})


def test_a_declared_version_is_believed_and_nobody_is_asked(spark):
    env = {"SPARK_HOME": str(spark.home)}
    found = listener_selection.spark_of("spark-submit", env, ("3.5.6", "2.12"))
    assert found == SparkDistribution(spark.home, "3.5.6", "2.12")
    assert listener_selection.spark_of("x", {"PATH": "/"}, ("3.5.6", "2.12")).home is None


# --- spark-defaults.conf -----------------------------------------------------------------------


def test_spark_defaults_are_read_as_java_properties(spark):
    (spark.home / "conf").mkdir()
    (spark.home / "conf" / "spark-defaults.conf").write_text(
        "# a comment\nspark.a   one \nspark.b=two\\\n  lines\nspark.c : x=y\n"
    )
    assert distribution.defaults(spark.home, {}) == {
        "spark.a": "one",
        "spark.b": "twolines",
        "spark.c": "x=y",
    }


def test_the_conf_folder_of_the_environment_wins(spark, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.a here\n")
    env = {"SPARK_CONF_DIR": str(tmp_path)}
    assert distribution.defaults(spark.home, env) == {"spark.a": "here"}


def test_where_spark_defaults_are_unknown_they_are_not_overridden():
    with pytest.raises(ListenerError, match="Set SPARK_HOME or SPARK_CONF_DIR"):
        distribution.defaults(None, {})


def test_properties_are_utf8_and_keep_line_ends(spark):
    (spark.home / "conf").mkdir()
    path = spark.home / "conf" / "spark-defaults.conf"
    path.write_text("spark.jars /opt/bücher/a.jar\nspark.delimiter=\\n\n", encoding="utf-8")
    assert distribution.defaults(spark.home, {}) == {
        "spark.jars": "/opt/bücher/a.jar",
        "spark.delimiter": "\n",
    }


# --- which listener fits -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "spark", "scala"),
    [
        pytest.param(Identity("1.53.0", "2.13"), "4.2.0", "2.13", id="the newest"),
        pytest.param(Identity("1.37.0", "2.13"), "4.0.1", "2.13", id="the first for Spark 4"),
        pytest.param(Identity("1.9.0", "2.12"), "3.5.6", "2.12", id="an old one on Spark 3"),
        pytest.param(Identity(None, None), "4.2.0", "2.13", id="unknown"),
        pytest.param(Identity("1.60.0-SNAPSHOT", "2.13"), "4.3.0", "2.13", id="a later one"),
    ],
)
def test_listeners_that_fit(found, spark, scala):
    listener.require_fit("a.jar", found, spark, scala)


@pytest.mark.parametrize(
    ("found", "spark", "scala", "message"),
    [
        pytest.param(
            Identity("1.53.0", "2.12"), "4.0.1", "2.13", "Use openlineage-spark_2.13", id="scala"
        ),
        pytest.param(
            Identity("1.37.0", "2.13"), "4.2.0", "2.13", "Use 1.53.0 or later", id="too old for 4.2"
        ),
        pytest.param(
            Identity("1.36.0", "2.13"), "4.0.0", "2.13", "Use 1.37.0 or later", id="too old for 4"
        ),
        pytest.param(Identity("1.53.0", "2.12"), "2.4.8", "2.12", "does not work", id="Spark 2"),
    ],
)
def test_listeners_that_would_end_the_context(found, spark, scala, message):
    with pytest.raises(ListenerError, match=message):
        listener.require_fit("a.jar", found, spark, scala)


def test_every_pin_is_a_digest():
    assert {len(digest) for digest in listener.PINS.values()} == {64}


# --- finding the jar ---------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Fill the cache with a jar of the pinned digest."""
    jar = listener_jar(tmp_path / "cache" / "sparklineage" / JAR)
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    monkeypatch.setitem(listener.PINS, "2.13", digest)
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/nowhere"}


def test_the_configured_jar_comes_first(spark, tmp_path, cache):
    configured = listener_jar(tmp_path / JAR)
    assert listener_selection.jar_for(spark, configured, cache) == str(configured)


def test_then_the_cache(spark, cache):
    assert listener_selection.jar_for(spark, None, cache) == str(fetching.cached("2.13", cache))


def zeroed(jar):
    jar.write_bytes(bytes(jar.stat().st_size))


def truncated(jar):
    jar.write_bytes(jar.read_bytes()[:100])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(Path.unlink, "There is no OpenLineage listener for Spark 4.0.1", id="none"),
        pytest.param(truncated, f"{JAR} is damaged: it is not the file that was", id="truncated"),
        pytest.param(zeroed, f"{JAR} is damaged: it is not the file that was", id="zeroed"),
    ],
)
def test_a_missing_or_damaged_jar_is_reported_with_the_command_that_fetches_it(
    spark, cache, change, message
):
    listener_selection.jar_for(spark, None, cache)
    change(fetching.cached("2.13", cache))
    with pytest.raises(ListenerError, match="Run `sparklineage fetch-listener`") as refused:
        listener_selection.jar_for(spark, None, cache)
    assert message in refused.value.problem


def test_a_configured_jar_with_a_damaged_class_is_refused(spark, tmp_path, cache):
    jar = with_a_damaged_class(listener_jar(tmp_path / JAR))
    with pytest.raises(ListenerError, match=r"is damaged \(.*Shaded\.class in it cannot be read"):
        listener_selection.jar_for(spark, jar, cache)


def test_a_damaged_listener_of_the_jobs_own_is_refused(spark, tmp_path):
    jar = with_a_damaged_class(listener_jar(tmp_path / JAR))
    with pytest.raises(ListenerError, match=r"Shaded\.class in it cannot be read"):
        only_listener(Submission(jars=str(jar)), spark)


def test_a_damaged_extension_is_left_out(tmp_path):
    jar = other_jar(tmp_path / "shop.jar")
    usable, errors = listener_selection.checked_extensions([str(jar)], None)
    assert (usable, errors) == ((str(jar),), ())
    usable, [error] = listener_selection.checked_extensions([str(with_a_damaged_class(jar))], None)
    assert usable == ()
    assert "shop.jar is damaged (io/openlineage/spark/Shaded.class in it" in error.problem


@pytest.mark.parametrize("url", [f"hdfs://nn:8020/jars/{JAR}", f"s3a://jars/{JAR}"])
def test_a_listener_at_a_url_is_not_looked_for(spark, url):
    assert listener_selection.jar_for(spark, url, {}) == url


def test_a_local_url_is_a_path_where_the_driver_runs(spark, tmp_path):
    url = f"local://{tmp_path}/a%20b/{JAR}"
    assert listener_selection.jar_for(spark, url, {}, is_remote=True) == url
    with pytest.raises(ListenerError, match=f"{tmp_path}/a b/{JAR} does not exist"):
        listener_selection.jar_for(spark, url, {})
    jar = listener_jar(tmp_path / "a b" / JAR)
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    assert listener_selection.jar_for(spark, url, cache) == str(jar)


def test_of_a_listener_at_a_url_the_name_has_to_fit(spark):
    url = "s3a://jars/openlineage-spark_2.12-1.53.0.jar"
    with pytest.raises(ListenerError, match=r"is for Scala 2\.12"):
        listener_selection.jar_for(spark, url, {})


def test_a_jar_for_another_scala_is_refused_whatever_its_name(spark, tmp_path):
    wrong = listener_jar(tmp_path / JAR, "2.12")
    with pytest.raises(ListenerError, match=r"is for Scala 2\.12, but Spark 4\.0\.1"):
        listener_selection.jar_for(spark, wrong, {})


# --- what the job has of its own ---------------------------------------------------------------


def only_listener(submission, spark):
    found = listener_selection.job_listeners(submission, spark)
    found = listener_selection.only_listener(found, submission, spark)
    return None if found is None else (found.name, found.source)


def test_a_job_without_a_listener_has_none(spark, tmp_path):
    jar = other_jar(tmp_path / "shop.jar")
    assert only_listener(Submission(jars=str(jar), packages="a:b:1"), spark) is None


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(lambda jar: Submission(jars=f"/a.jar,{jar}"), id="jars"),
        pytest.param(lambda jar: Submission(conf={"spark.jars": f"file://{jar}"}), id="conf"),
        pytest.param(lambda jar: Submission(driver_class_path=f"/a.jar:{jar}"), id="class path"),
        pytest.param(lambda jar: Submission(driver_class_path=f"{jar.parent}/*"), id="folder"),
    ],
)
@pytest.mark.parametrize("name", [JAR, "renamed.jar", f"io.openlineage_{JAR}"])
def test_a_listener_that_the_user_brings_is_found(spark, tmp_path, place, name):
    jar = listener_jar(tmp_path / "lib" / name)
    assert only_listener(place(jar), spark)[0].removeprefix("file://") == str(jar)


@pytest.mark.parametrize(
    "submission",
    [Submission(packages=f"a:b:1,{PACKAGE}"), Submission(conf={"spark.jars.packages": PACKAGE})],
    ids=["flag", "conf"],
)
def test_a_listener_among_packages_is_found(spark, submission):
    assert only_listener(submission, spark) == (PACKAGE, listener_selection.ListenerSource.PACKAGES)


def test_one_among_sparks_own_jars_is_found(spark):
    jar = listener_jar(spark.home / "jars" / JAR)
    assert only_listener(Submission(), spark) == (str(jar), listener_selection.ListenerSource.SPARK)


def test_the_same_jar_given_twice_is_one(spark, tmp_path):
    jar = listener_jar(tmp_path / JAR)
    assert only_listener(Submission(jars=f"{jar},{jar}"), spark) == (
        str(jar),
        listener_selection.ListenerSource.JARS,
    )


def test_a_second_listener_is_refused(spark, tmp_path):
    jar = listener_jar(tmp_path / JAR)
    with pytest.raises(ListenerError, match=r"2 OpenLineage listeners, .* Leave one, or none"):
        only_listener(Submission(jars=str(jar), packages=PACKAGE), spark)


@pytest.mark.parametrize(
    ("submission", "message"),
    [
        (Submission(packages=f"{COORDINATE}_2.12:1.53.0"), r"is for Scala 2\.12"),
        (Submission(packages=f"{COORDINATE}_2.13:1.36.0"), r"Use 1\.37\.0"),
        (Submission(packages=f"{COORDINATE}:1.8.0"), r"is for Scala 2\.12"),
        (Submission(jars="s3a://jars/openlineage-spark_2.12-1.53.0.jar"), r"is for Scala 2\.12"),
    ],
)
def test_a_listener_of_the_users_that_does_not_fit_is_refused(spark, submission, message):
    with pytest.raises(ListenerError, match=message):
        only_listener(submission, spark)


@pytest.mark.parametrize(
    "connectors",
    [
        {"jars": "/opt/iceberg-spark-runtime-4.0_2.13-1.10.1.jar"},
        {"packages": "io.delta:delta-spark_2.13:4.0.0"},
    ],
    ids=["jars", "packages"],
)
def test_a_listener_that_would_not_see_connectors_is_refused(spark, tmp_path, connectors):
    jar = listener_jar(tmp_path / JAR)
    with pytest.raises(ListenerError, match=r"would not see .*silently be missing"):
        only_listener(Submission(driver_class_path=str(jar), **connectors), spark)


def test_a_listener_on_the_class_path_is_accepted_without_connectors(spark, tmp_path):
    jar = listener_jar(tmp_path / JAR)
    assert only_listener(Submission(driver_class_path=str(jar), jars="/opt/shop.jar"), spark)


@pytest.mark.parametrize(
    "name", ["openlineage-spark-extension-interfaces-1.53.0.jar", "shop-openlineage-spark-1.jar"]
)
def test_an_extension_of_the_listener_is_not_one(spark, tmp_path, name):
    jar = other_jar(tmp_path / name)
    assert only_listener(Submission(jars=str(jar)), spark) is None


# --- Java --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spark", "oldest"), [("3.5.6", 8), ("4.0.0", 17), ("4.2.1", 17)])
def test_the_oldest_java_of_a_spark(spark, oldest):
    assert commands.oldest_java_for(spark) == oldest


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere"),
        ({"PATH": "/nowhere"}, "none is on PATH"),
    ],
)
def test_a_missing_java_is_reported_with_the_version_that_is_needed(spark, env, message):
    error = commands.java_refusal(env, spark)
    assert message in error.problem
    assert "Install Java 17 or later and set JAVA_HOME" in error.fix


@pytest.mark.parametrize(
    ("version", "message"),
    [(11, "is Java 11, but Spark 4.0.1 needs 17"), (None, "is no Java"), (17, None), (21, None)],
)
def test_a_java_that_is_too_old_is_reported(spark, tmp_path, monkeypatch, version, message):
    script(tmp_path / "bin" / "java")
    monkeypatch.setattr(commands, "java_feature_version", lambda _: version)
    error = commands.java_refusal({"JAVA_HOME": str(tmp_path)}, spark)
    assert error is None if message is None else message in error.problem
