"""A real Spark with all that can be set up next to the listener, and what its absence costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit import (
    commands,
    distribution,
    listener_selection,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.injection import Injection, inject
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests import record_events
from tests.loopback import Handler, serving

pytestmark = pytest.mark.spark

SECRET = "pl4nted-s3cr3t"
EXTENSION = Path(__file__).parents[1] / "extension" / "UdfColumns.java"
FACTORY = "io.openlineage.spark.api.OpenLineageEventHandlerFactory"
T = "spark.openlineage.transport."


def extension(spark, folder):
    """Compile an extension of the listener and pack it as its authors would."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("compiling an extension needs a JDK")
    classes = folder / "classes"
    class_path = f"{spark.listener}{os.pathsep}{spark.distribution.home}/jars/*"
    command = [javac, "--release", "17", "-d", classes, "-cp", class_path, EXTENSION]
    subprocess.run(command, check=True, capture_output=True)
    jar = folder / "openlineage-spark-shop-1.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.write(classes / "shop" / "UdfColumns.class", "shop/UdfColumns.class")
        archive.writestr(f"META-INF/services/{FACTORY}", "shop.UdfColumns\n")
    return jar


class _Receiver(Handler):
    """A lineage backend of the user's: notes what is sent, and who could have seen its key."""

    def post(self):
        self.body()
        self.server.authorizations.add(self.headers["Authorization"])
        self.server.tenants.add(self.headers["X-Tenant"])
        if not self.server.command_lines:
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.server.command_lines.append(file.read_text(errors="replace"))
                except OSError:  # it has ended
                    continue
        self.answer(201)


@pytest.fixture(scope="session")
def ran(spark, orders_lake, tmp_path_factory):
    """Run a job with a transport of its own, an extension of the listener, and an event log."""
    work = tmp_path_factory.mktemp("set-up")
    lake, scratch = work / "lake", work / "scratch"
    shutil.copytree(orders_lake, lake)
    (scratch / "log").mkdir(parents=True)
    received = {"authorizations": set(), "tenants": set(), "command_lines": []}
    manifest = Manifest(application_run_id=str(uuid.uuid4()))
    bundle = capture.create(work / "captures", manifest)
    jar = extension(spark, work)
    users = {
        f"{T}type": "http",
        f"{T}auth.type": "api_key",
        f"{T}auth.apiKey": SECRET,
        f"{T}headers.X-Tenant": f"{SECRET}-tenant",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(scratch / "log"),
        "spark.eventLog.compress": "false",
    }
    with serving(_Receiver, **received) as backend:
        users[f"{T}url"] = backend.url
        submission = Submission(conf=users | record_events.spark_conf(lake, scratch))
        extensions, problems = listener_selection.checked_extensions([str(jar)], None)
        assert problems == ()
        injection = Injection(
            (str(spark.listener), *extensions), bundle.events_path, manifest.application_run_id
        )
        after = inject(submission, injection)
        found = listener_selection.job_listeners(after, spark.distribution)
        properties = work / "job.properties"
        distribution.write_properties(properties, after.new_file)
        options = ["--properties-file", str(properties), "--jars", after.jars]
        options += record_events.conf_options(after.conf)
        application = record_events.APPLICATIONS / "python_udf.py"
        exit_code, tail = record_events.submit(spark, application, lake, scratch, options)
    assert exit_code == 0, tail
    return SimpleNamespace(**locals())


@pytest.mark.long
def test_a_visitor_of_an_extension_adds_columns_that_the_listener_misses(ran, recorded):
    def sources(lineage):
        [scored] = [d for d in lineage.outputs if d.name.name.endswith("scored_orders")]
        return {
            column: sorted(edge.field for edge in edges)
            for column, edges in scored.columns.fields.items()
        }

    assert "score" not in sources(recorded("python_udf").lineage)
    assert sources(task_lineage(ran.bundle))["score"] == ["amount"]


@pytest.mark.long
def test_an_extension_is_not_taken_for_a_second_listener(ran):
    assert [entry.name for entry in ran.found] == [str(ran.spark.listener)]


@pytest.mark.long
def test_the_users_backend_gets_the_events_with_its_key(ran):
    assert ran.backend.authorizations == {f"Bearer {SECRET}"}
    assert ran.backend.tenants == {f"{SECRET}-tenant"}


@pytest.mark.long
def test_its_key_can_be_read_in_no_command_line_log_or_bundle(ran):
    assert any("spark" in line for line in ran.backend.command_lines)
    assert [line for line in ran.backend.command_lines if SECRET in line] == []
    event_log = [p for p in (ran.scratch / "log").rglob("*") if p.is_file()]
    texts = {file: file.read_text("latin-1") for file in event_log}
    assert f"{T}transports.user.auth.apiKey" in "".join(texts.values())  # with a redacted value
    for file in (ran.scratch / "spark.log", *ran.bundle.path.iterdir()):
        texts[file] = file.read_text()
    assert [str(file) for file, text in texts.items() if SECRET in text] == []
    assert oct(ran.properties.stat().st_mode & 0o777) == "0o600"


# --- asked of the programs themselves -------------------------------------------------------------


def test_spark_submit_reports_the_versions_that_its_files_have(spark, tmp_path):
    binary = tmp_path / "shop-submit"
    binary.write_text(f'#!/bin/sh\nexec "{spark.distribution.home}/bin/spark-submit" "$@"\n')
    binary.chmod(0o755)
    env = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    asked = commands.ask_version(str(binary), env)
    answered = (asked.version, asked.scala)
    assert answered == (spark.distribution.version, spark.distribution.scala)


def test_the_java_of_this_machine_will_do_and_an_old_one_will_not(spark, tmp_path):
    assert commands.java_refusal(os.environ, spark.distribution) is None
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    refusal = commands.java_refusal(
        {"JAVA_HOME": str(tmp_path)}, SparkDistribution(None, "4.0.1", "2.13")
    )
    assert "is Java 8, but Spark 4.0.1 needs 17 or later. Set JAVA_HOME" in str(refusal)


def test_without_a_network_and_a_cache_the_error_names_the_fix(spark, tmp_path):
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="site"/><resolvers>'
        '<ibiblio name="site" m2compatible="true" root="http://127.0.0.1:9/maven"/>'
        "</resolvers></ivysettings>"
    )
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {settings}\n")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "SPARK_CONF_DIR": str(tmp_path)}
    env = {**os.environ, **cache, "SPARK_HOME": str(spark.distribution.home)}
    with pytest.raises(ListenerError, match=r"could not be fetched .*--repositories.*--from"):
        listener_selection.fetch_for(spark.distribution, "spark-submit", env)


def test_workers_that_fill_the_cache_at_once_all_get_the_jar(spark, tmp_path):
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = ["sparklineage", "fetch-listener", "--from", str(spark.listener)]
    command += ["--spark-version", f"{spark.distribution.version}-scala{spark.distribution.scala}"]
    workers = [
        subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [worker.communicate() for worker in workers]
    jar = tmp_path / "sparklineage" / spark.listener.name
    assert [out.strip() for out, _ in printed] == [str(jar)] * 4
    assert sum("Checking the digest" in progress for _, progress in printed) == 1
    note = jar.with_suffix(f".checked-{os.getuid()}")  # of those who found it there
    assert {p.name for p in jar.parent.iterdir()} == {".lock", jar.name, note.name}
