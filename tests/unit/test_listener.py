"""Which listener jar goes with which Spark, and what is said where there is none."""

from __future__ import annotations

import stat
import zipfile

import pytest

from airflow_provider_sparklineage.exceptions import ListenerError
from airflow_provider_sparklineage.spark import distribution, listener
from airflow_provider_sparklineage.spark.distribution import SparkDistribution


@pytest.fixture
def spark(tmp_path):
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    return SparkDistribution(home, "4.0.1", "2.13")


def jar(folder, name="openlineage-spark_2.13-1.53.0.jar"):
    """Make a jar that has the listener's class in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("io/openlineage/spark/agent/OpenLineageSparkListener.class", b"")
    return folder / name


# --- the distribution --------------------------------------------------------------------------


def test_spark_home_tells_version_and_scala(spark):
    assert distribution.find("spark-submit", {"SPARK_HOME": str(spark.home)}) == spark


def test_a_distribution_is_found_above_its_bin(spark):
    binary = spark.home / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.touch()
    binary.chmod(0o755)
    assert distribution.find("spark-submit", {"PATH": str(binary.parent)}) == spark


def test_a_pip_installed_spark_is_found_beside_its_script(tmp_path, spark):
    package = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "pyspark"
    package.parent.mkdir(parents=True)
    spark.home.rename(package)
    binary = tmp_path / "venv" / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.touch()
    binary.chmod(0o755)
    found = distribution.find("spark-submit", {"PATH": str(binary.parent)})
    assert (found.home, found.version) == (package, "4.0.1")


@pytest.mark.parametrize("env", [{"PATH": "/nowhere"}, {"SPARK_HOME": "/nowhere"}])
def test_no_spark_is_none(env):
    assert distribution.find("spark-submit", env) is None


def test_spark_defaults_are_read_as_java_properties(spark):
    (spark.home / "conf").mkdir()
    (spark.home / "conf" / "spark-defaults.conf").write_text(
        "# a comment\nspark.a   one \nspark.b=two\\\n  lines\nspark.c : x=y\n"
    )
    assert spark.defaults({}) == {"spark.a": "one", "spark.b": "twolines", "spark.c": "x=y"}


def test_the_conf_folder_of_the_environment_wins(spark, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.a here\n")
    assert spark.defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.a": "here"}


# --- finding the jar ---------------------------------------------------------------------------


def test_the_configured_jar_comes_first(spark, tmp_path):
    configured = jar(tmp_path)
    jar(spark.jars)
    assert listener.find_jar(spark, configured, {}) == configured


def test_then_one_among_sparks_own_jars(spark, tmp_path):
    own = jar(spark.jars)
    jar(tmp_path / "sparklineage")
    assert listener.find_jar(spark, None, {"XDG_CACHE_HOME": str(tmp_path)}) == own


def test_then_the_cache(spark, tmp_path):
    cached = jar(tmp_path / "sparklineage")
    assert listener.find_jar(spark, None, {"XDG_CACHE_HOME": str(tmp_path)}) == cached


def test_no_jar_is_told_with_the_command_that_brings_one(spark, tmp_path):
    with pytest.raises(ListenerError, match="run `sparklineage fetch-listener`"):
        listener.find_jar(spark, None, {"XDG_CACHE_HOME": str(tmp_path)})


def test_a_jar_for_another_scala_is_refused_wherever_it_is(spark, tmp_path):
    wrong = jar(tmp_path, "openlineage-spark_2.12-1.53.0.jar")
    with pytest.raises(ListenerError, match=r"is for Scala 2\.12, but Spark 4\.0\.1"):
        listener.find_jar(spark, wrong, {})


@pytest.mark.parametrize("content", [b"", b"half a jar", None])
def test_a_file_that_is_no_listener_is_refused(spark, tmp_path, content):
    broken = tmp_path / "openlineage-spark_2.13-1.53.0.jar"
    if content is None:  # a jar, but another one
        with zipfile.ZipFile(broken, "w") as archive:
            archive.writestr("x.class", b"")
    else:
        broken.write_bytes(content)
    with pytest.raises(ListenerError, match="not a readable OpenLineage listener jar"):
        listener.find_jar(spark, broken, {})


def test_properties_are_utf8_and_keep_line_ends(spark):
    (spark.home / "conf").mkdir()
    path = spark.home / "conf" / "spark-defaults.conf"
    path.write_text("spark.jars /opt/bücher/a.jar\nspark.delimiter=\\n\n", encoding="utf-8")
    assert spark.defaults({}) == {"spark.jars": "/opt/bücher/a.jar", "spark.delimiter": "\n"}


# --- fetching ----------------------------------------------------------------------------------


@pytest.fixture
def java(tmp_path):
    """Make a JAVA_HOME whose java does what the test says; its last argument is Ivy's pattern."""

    def make(body):
        binary = tmp_path / "java" / "bin" / "java"
        binary.parent.mkdir(parents=True, exist_ok=True)
        binary.write_text(f"#!/bin/sh\nfor last; do :; done\n{body}\n")
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        return {"JAVA_HOME": str(tmp_path / "java"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    return make


def test_what_is_cached_is_not_fetched(spark, tmp_path):
    cached = jar(tmp_path / "sparklineage")
    assert listener.fetch(spark, {"XDG_CACHE_HOME": str(tmp_path)}) == cached


def test_a_file_with_another_digest_is_not_used(spark, java):
    jar(spark.jars, "ivy-2.5.3.jar")
    env = java('echo other > "$(dirname "$last")/openlineage-spark_2.13-1.53.0.jar"')
    with pytest.raises(ListenerError, match="SHA-256"):
        listener.fetch(spark, env)
    assert not listener.cached("2.13", env).exists()


def test_a_fetched_jar_is_cached_and_nothing_else_stays(spark, java, monkeypatch):
    jar(spark.jars, "ivy-2.5.3.jar")
    digest = "d64b1d5ca5ca6ea1a1d3b9e8a4d0d3e7"
    env = java('printf jar > "$(dirname "$last")/openlineage-spark_2.13-1.53.0.jar"')
    monkeypatch.setitem(listener.SHA256, "2.13", digest)
    with pytest.raises(ListenerError) as refused:
        listener.fetch(spark, env)
    found = str(refused.value).split("digest ")[1].split(",")[0]
    monkeypatch.setitem(listener.SHA256, "2.13", found)
    fetched = listener.fetch(spark, env)
    assert [p.name for p in fetched.parent.iterdir()] == [fetched.name]


def test_an_unreachable_repository_is_said_with_the_mend(spark, java):
    jar(spark.jars, "ivy-2.5.3.jar")
    env = java('echo "Host repository.example not found. url=x"; exit 1')
    with pytest.raises(ListenerError, match=r"Host repository\.example not found.*proxyHost"):
        listener.fetch(spark, env)


def test_without_java_nothing_is_fetched(spark, tmp_path):
    jar(spark.jars, "ivy-2.5.3.jar")
    env = {"JAVA_HOME": "/nowhere", "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(ListenerError, match="without Java"):
        listener.fetch(spark, env)
