"""Finding out which Spark will run, and what its configuration has."""

from __future__ import annotations

import os
import shutil

from tests.faults.registry import Area

AREA = Area(
    "Spark and its configuration",
    "What cannot be read is not overridden: then the job runs as it is, without the listener.",
)
fault = AREA.fault
NO_LISTENER = "listener_unavailable"
FAILS = "AirflowException (exit code 1)"


def _script(bench, text):
    """Let spark-submit be asked for its version, because nothing else tells it."""
    shutil.rmtree(bench.spark.home / "jars")
    submit = bench.spark.home.parent / "bin" / "spark-submit"
    python, rest = submit.read_text().split("\n", 1)
    submit.write_text(f"{python}\nimport sys, time\nif '--version' in sys.argv:\n {text}\n{rest}")


@fault("There is no spark-submit", NO_LISTENER, ends="FileNotFoundError")
def _(bench):
    bench.monkeypatch.delenv("SPARK_HOME")
    bench.monkeypatch.setenv("PATH", str(bench.home))


@fault("SPARK_HOME is not set", NO_LISTENER)
def _(bench):
    bench.monkeypatch.delenv("SPARK_HOME")
    shutil.rmtree(bench.spark.home / "jars")


@fault("SPARK_HOME names a folder that does not exist", NO_LISTENER)
def _(bench):
    bench.monkeypatch.setenv("SPARK_HOME", "/nowhere/spark")


@fault("SPARK_HOME is a link to itself", NO_LISTENER)
def _(bench):
    loop = bench.home / "spark"
    loop.symlink_to(loop)
    bench.monkeypatch.setenv("SPARK_HOME", str(loop))


@fault("`spark-submit --version` prints nothing", NO_LISTENER)
def _(bench):
    _script(bench, "sys.exit(0)")


@fault("`spark-submit --version` fails", NO_LISTENER)
def _(bench):
    _script(bench, "sys.exit(7)")


@fault("`spark-submit --version` hangs", NO_LISTENER, within=30)
def _(bench):
    bench.shorten(".spark.submit.commands.TASK_VERSION_TIMEOUT_S", 0.5)
    _script(bench, "time.sleep(60)")


@fault("`spark-submit --version` prints bytes that are no text", NO_LISTENER)
def _(bench):
    _script(bench, "sys.stdout.buffer.write(b'\\xff' * 9999); sys.exit(0)")


@fault("Spark's file RELEASE is a pipe, and `spark-submit --version` prints nothing", NO_LISTENER)
def _(bench):
    _script(bench, "sys.exit(0)")
    os.mkfifo(bench.spark.home / "RELEASE")


@fault("spark-defaults.conf is a pipe")
def _(bench):
    os.mkfifo(bench.spark.home / "conf" / "spark-defaults.conf")


@fault("spark-defaults.conf is a folder", "injection_failed")
def _(bench):
    (bench.spark.home / "conf" / "spark-defaults.conf").mkdir()


@fault("spark-defaults.conf is no UTF-8")
def _(bench):
    (bench.spark.home / "conf" / "spark-defaults.conf").write_bytes(b"spark.app.name caf\xe9\n")


@fault("spark-defaults.conf has an escape that is none", "injection_failed")
def _(bench):
    (bench.spark.home / "conf" / "spark-defaults.conf").write_text("spark.app.name \\u12\n")


@fault("spark-defaults.conf is a link to itself")
def _(bench):
    loop = bench.spark.home / "conf" / "spark-defaults.conf"
    loop.symlink_to(loop)


@fault("The task's properties file does not exist", "no_events", ends=FAILS)
def _(bench):
    bench.arguments["properties_file"] = "/nowhere/job.properties"


@fault("The task's properties file is no UTF-8")
def _(bench):
    file = bench.home / "job.properties"
    file.write_bytes(b"spark.app.name=caf\xe9\n")
    bench.arguments["properties_file"] = str(file)


@fault("The task's properties file is a folder", "injection_failed", ends=FAILS)
def _(bench):
    bench.arguments["properties_file"] = str(bench.home)


@fault("The driver runs in the cluster, which has no mount of the worker's", "driver_elsewhere")
def _(bench):
    bench.arguments["conf"] = {"spark.submit.deployMode": "cluster"}


@fault("The job goes to a Spark Connect server", NO_LISTENER)
def _(bench):
    bench.arguments["conf"] = {"spark.remote": "sc://127.0.0.1:1"}


@fault("The Spark connection has the master of another kind of job", NO_LISTENER, ends="succeeds")
def _(bench):
    bench.connect("spark_default", conn_type="spark", host="sc://127.0.0.1", port=15002)


@fault("The job is an R script", "observer_unavailable")
def _(bench):
    bench.arguments["application"] = "job.R"


@fault("The value of a property is no text")
def _(bench):
    bench.arguments["conf"] = {"spark.executor.cores": 2, "spark.ui.enabled": False}


@fault("A property is None")
def _(bench):
    bench.arguments["conf"] = {"spark.app.note": None}


@fault("The job's own transport cannot be a part of a composite one", NO_LISTENER)
def _(bench):
    transport = "spark.openlineage.transport."
    bench.arguments["conf"] = {f"{transport}type": "kafka", f"{transport}topicName": "lineage"}
