"""A worker that is broken in one place: the job runs as ever, and the event names the fix."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile

import pytest

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.submit import commands, fetching, listener
from tests.unit.listener_jars import listener_jar, other_jar, with_a_damaged_class

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Worker:
    """A worker with a fake Spark, to be broken."""

    def __init__(self, folder, monkeypatch, spark):
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.spark = spark
        self.lock = None

    def set(self, option, value):
        self.monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option.upper()}", str(value))

    def fetches(self, cache):
        """Let the task fetch its listener into a cache."""
        self.monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR")
        self.monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        self.set("fetch_listener", True)

    def brings(self, content):
        """Let Spark's resolver bring a file."""

        def fetcher(into):
            (into / "listener.jar").write_bytes(content)
            return into / "listener.jar"

        self.monkeypatch.setattr(commands, "from_spark", lambda *_, **__: fetcher)

    def hides_its_version(self, script):
        """Let nothing but ``spark-submit --version`` have the version, which runs a script."""
        [core] = (self.spark.home / "jars").iterdir()
        core.unlink()
        binary = self.folder / "wrapped" / "spark-submit"
        binary.parent.mkdir()
        job = f'exec {self.spark.path}/spark-submit "$@"'
        binary.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then\n{script}\nelse {job}; fi\n')
        binary.chmod(0o755)
        self.monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def worker(tmp_path, monkeypatch, spark_submit):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = Worker(tmp_path, monkeypatch, spark_submit)
    yield found
    if found.lock is not None:
        found.lock.release()


def without_its_jar(worker):
    worker.set("listener_jar", "/nowhere/openlineage-spark.jar")


def with_a_truncated_jar(worker):
    jar = listener_jar(worker.folder / "truncated.jar")
    jar.write_bytes(jar.read_bytes()[:-40])
    worker.set("listener_jar", jar)


def with_a_damaged_class_in_its_jar(worker):
    worker.set("listener_jar", with_a_damaged_class(listener_jar(worker.folder / "damaged.jar")))


def with_zeros_in_its_cached_jar(worker):
    worker.fetches(worker.folder / "cache")
    worker.set("fetch_listener", False)
    jar = fetching.cached("2.13")
    jar.parent.mkdir(parents=True)
    with jar.open("wb") as file:
        file.truncate(40_000_000)


def with_a_resolver_that_hangs(worker):
    binary = worker.spark.home / "bin" / "spark-submit"  # which is not the one that runs the job
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    binary.chmod(0o755)
    worker.monkeypatch.setattr(fetching, "TASK_LIMIT_S", 0.5)
    worker.monkeypatch.setattr(commands, "java_feature_version", lambda _: 17)
    worker.fetches(worker.folder / "cache")


def with_another_process_that_fetches_for_ever(worker):
    worker.fetches(worker.folder / "cache")
    worker.monkeypatch.setattr(fetching, "TASK_LIMIT_S", 0.5)
    worker.monkeypatch.setattr(commands, "java_feature_version", lambda _: 17)
    fetching.cache_folder().mkdir(parents=True)
    worker.lock = ownership.acquire_lock(fetching.cache_folder())


def with_a_spark_submit_that_never_says_its_version(worker):
    worker.monkeypatch.setattr(commands, "TASK_VERSION_TIMEOUT_S", 0.5)
    worker.hides_its_version("sleep 60 &\nwait")


def with_an_empty_jar(worker):
    (worker.folder / "empty.jar").touch()
    worker.set("listener_jar", worker.folder / "empty.jar")


def with_another_jar(worker):
    worker.set("listener_jar", other_jar(worker.folder / "shop.jar"))


def with_the_jar_of_another_scala(worker):
    worker.set("listener_jar", listener_jar(worker.folder / "renamed.jar", scala="2.12"))


def with_a_jar_too_old_for_its_spark(worker):
    [core] = (worker.spark.home / "jars").iterdir()
    core.rename(core.with_name("spark-core_2.13-4.2.0.jar"))
    jar = listener_jar(worker.folder / "openlineage-spark_2.13-1.37.0.jar", version="1.37.0")
    worker.set("listener_jar", jar)


def with_an_empty_cache(worker):
    worker.fetches(worker.folder / "cache")
    worker.set("fetch_listener", False)


def with_an_empty_cache_and_no_java(worker):
    worker.fetches(worker.folder / "cache")
    worker.monkeypatch.setenv("JAVA_HOME", str(worker.folder))


def with_an_empty_cache_and_an_old_java(worker):
    java = worker.folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.25\"' >&2\n")
    java.chmod(0o755)
    worker.fetches(worker.folder / "cache")
    worker.monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))


def with_a_cache_that_cannot_be_written(worker):
    (worker.folder / "cache").touch()  # as a directory, root could write to it
    worker.brings(b"")
    worker.fetches(worker.folder / "cache")


def with_a_repository_that_has_something_else(worker):
    worker.brings(b"<html>Sign in</html>")
    worker.fetches(worker.folder / "cache")


@pytest.mark.parametrize(
    ("broken", "message", "fix"),
    [
        (without_its_jar, "/nowhere/openlineage-spark.jar does not exist", "Correct [sparklin"),
        (
            with_a_truncated_jar,
            "truncated.jar is not a readable OpenLineage listener",
            "Fetch it again with",
        ),
        (with_a_damaged_class_in_its_jar, "Shaded.class in it cannot be read", "Copy it there"),
        (with_zeros_in_its_cached_jar, "is damaged: it is not the file", "fetch-listener"),
        (with_a_resolver_that_hangs, "no end within", "--from"),
        (with_another_process_that_fetches_for_ever, "has been filling", "If it hangs, end it"),
        (with_a_spark_submit_that_never_says_its_version, "gives no answer", "spark_version"),
        (with_an_empty_jar, "empty.jar is not a readable OpenLineage", "Fetch it again with"),
        (with_another_jar, "shop.jar is not a readable OpenLineage", "Fetch it again with"),
        (with_the_jar_of_another_scala, "is for Scala 2.12", "Use openlineage-spark_2.13"),
        (with_a_jar_too_old_for_its_spark, "Spark 4.2.0 would not start", "Use 1.53.0 or later"),
        (with_an_empty_cache, "There is no OpenLineage listener", "sparklineage fetch-listener"),
        (with_an_empty_cache_and_no_java, "There is no Java", "Install Java 17 or later"),
        (with_an_empty_cache_and_an_old_java, "is Java 11, but Spark 4.0.1", "Set JAVA_HOME"),
        (with_a_cache_that_cannot_be_written, "be put into the cache", "set XDG_CACHE_HOME"),
        (with_a_repository_that_has_something_else, "SHA-256 digest", "it is not used"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_job_runs_and_the_event_names_the_fix(worker, execute, caplog, broken, message, fix):
    broken(worker)
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    execute(task)
    given = worker.spark.given
    assert not any(key.startswith("spark.openlineage.") for key in given.conf)
    assert not {"--jars", "--py-files", "--properties-file"} & set(given.argv)
    facets = task.get_openlineage_facets_on_complete(None).run_facets
    [entry] = facets["sparkLineage_capture"].degradations
    assert entry["code"] == "listener_unavailable"
    assert message in entry["message"]
    assert fix in entry["message"]
    [warning] = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert entry["message"] in warning


def test_a_task_that_may_fetch_replaces_a_damaged_jar(worker, execute, monkeypatch):
    content = listener_jar(worker.folder / "whole.jar").read_bytes()
    monkeypatch.setitem(listener.PINS, "2.13", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(commands, "java_feature_version", lambda _: 17)
    worker.fetches(worker.folder / "cache")
    worker.brings(content)
    jar = fetching.cached("2.13")
    jar.parent.mkdir(parents=True)
    jar.write_bytes(bytes(len(content)))
    execute(SparkLineageSubmitOperator(task_id="revenue", application="job.py"))
    assert jar.read_bytes() == content
    assert worker.spark.given.argv[worker.spark.given.argv.index("--jars") + 1] == str(jar)


@pytest.mark.parametrize("lineage", [True, False])
def test_without_spark_submit_the_task_fails_as_the_stock_one_does(
    worker, execute, lineage, captures
):
    worker.monkeypatch.delenv("SPARK_HOME")
    worker.monkeypatch.setenv("PATH", str(worker.folder / "empty"))
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", lineage=lineage)
    with pytest.raises(FileNotFoundError, match="'spark-submit'"):
        execute(task)
    assert len(captures()) == lineage  # a failed try's is kept
    if lineage:
        facets = task.get_openlineage_facets_on_failure(None).run_facets
        [entry] = facets["sparkLineage_capture"].degradations
        assert "There is no spark-submit on the worker's PATH. Install Spark" in entry["message"]
