"""Pipelines without Spark: what spark-pipelines and the server that Python starts are given."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator
from airflow.sdk import DAG

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_pipelines import SparkLineagePipelinesOperator
from tests.spark_submit_double import argument, degradations, injected

pytestmark = pytest.mark.airflow

T = "spark.openlineage.transport."
SECRET = "pl4nted-s3cr3t"
LOCAL = {"conn_type": "spark", "host": "local[2]"}
SERVER = {"conn_type": "spark_connect", "host": "connect", "port": 15002}

# As Spark's: of two arguments of the server's spark-submit, the last one wins, which is that of the
# environment. But Python sets its own properties again, those of the pipeline's file among them.
FAKE_PIPELINES = """#!{python}
import json, os, pathlib, shlex, sys
pathlib.Path({dump!r}).write_text(json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ)}}))
own = [w for f, v in zip(sys.argv, sys.argv[1:]) if f == "--conf" for w in (f, v)]
spec = pathlib.Path(sys.argv[sys.argv.index("--spec") + 1])
if spec.exists():
    properties = json.loads(spec.read_text())["configuration"]
    own += [w for k, v in properties.items() for w in ("--conf", f"{{k}}={{v}}")]
*arguments, shell = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
os.execv({submit!r}, [{submit!r}, *arguments, *own, shell])
"""


@pytest.fixture
def pipelines(spark_submit, monkeypatch, tmp_path):
    """Have doubles of spark-pipelines and of the spark-submit of its server."""
    submit = Path(spark_submit.path) / "spark-submit"
    dump = tmp_path / "pipelines.json"
    binary = submit.with_name("spark-pipelines")
    text = FAKE_PIPELINES.format(python=sys.executable, dump=str(dump), submit=str(submit))
    binary.write_text(text)
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(LOCAL))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    spark_submit.does("staging_chain", observations=[])
    spark_submit.pipelines = lambda: json.loads(dump.read_text())
    return spark_submit


@pytest.fixture
def spec(tmp_path):
    def write(**properties):
        file = tmp_path / "spark-pipeline.yml"
        file.write_text(json.dumps({"name": "shop", "storage": "s", "configuration": properties}))
        return str(file)

    return write


def operator(cls=SparkLineagePipelinesOperator, **more):
    return cls(**{"task_id": "totals", "pipeline_spec": "shop.yml", **more})


def test_the_server_gets_the_listener(pipelines, execute):
    task = operator(conf={"spark.a": 1}, env_vars={"OWN": "1"})
    execute(task)
    first, server = pipelines.pipelines(), pipelines.given
    own = ["--remote", "local[2]", "--conf", "spark.a=1"]
    assert first["argv"] == ["run", "--spec", "shop.yml", *own]
    assert injected(server)
    assert argument(server, "--jars") == str(pipelines.jar)
    assert first["env"]["OWN"] == "1"
    missing = degradations(task)
    assert "listener_unavailable" not in missing
    assert missing["observer_unavailable"].startswith("The queries of a pipeline run where")
    assert (task.conf, task.env_vars) == ({"spark.a": 1}, {"OWN": "1"})


def test_what_the_user_gives_anywhere_is_extended(pipelines, execute, spec, monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.b=2 --driver-memory 2g pyspark-shell")
    conf = {"spark.extraListeners": "site.Listener", "spark.redaction.regex": "shop"}
    task = operator(pipeline_spec=spec(**{"spark.jars": "/site.jar"}), conf=conf)
    execute(task)
    server = pipelines.given
    assert task.conf == conf
    assert injected(server)
    assert server.conf["spark.extraListeners"].startswith("site.Listener,")
    assert argument(server, "--jars") == f"/site.jar,{pipelines.jar}"
    assert (server.conf["spark.b"], argument(server, "--driver-memory")) == ("2", "2g")
    assert server.argv[-1] == "pyspark-shell"


def test_a_transport_with_a_key_goes_into_a_file(pipelines, execute):
    own = {"type": "http", "url": "http://marquez:5000", "auth.type": "api_key"}
    conf = {f"{T}{key}": value for key, value in {**own, "auth.apiKey": SECRET}.items()}
    task = operator(conf=conf)
    execute(task)
    assert SECRET not in json.dumps(pipelines.pipelines())
    assert SECRET not in json.dumps(pipelines.given.argv)
    [(mode, text)] = pipelines.given.files.values()
    assert (mode, SECRET in text) == ("0o600", True)
    assert task.conf == conf


@pytest.mark.parametrize(
    ("name", "value"), [(f"{T}type", "console"), ("spark.extraListeners", "site.Listener")]
)
def test_what_the_pipelines_own_file_or_the_defaults_would_undo_is_not_added(
    pipelines, execute, spec, monkeypatch, tmp_path, name, value
):
    in_file = operator(pipeline_spec=spec(**{name: value}))
    execute(in_file)
    assert not injected(pipelines.given)
    assert pipelines.given.conf == {name: value}
    assert f"spark-pipeline.yml has {name}" in degradations(in_file)["injection_failed"]
    (tmp_path / "spark-defaults.conf").write_text(f"{name} {value}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    in_defaults = operator()
    execute(in_defaults)
    assert not injected(pipelines.given)
    assert f"spark-defaults.conf has {name}" in degradations(in_defaults)["injection_failed"]


def test_properties_that_the_stock_operator_does_not_pass_on_stay_where_they_are(
    pipelines, execute, monkeypatch
):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(SERVER))
    argv = ["-m", "pyspark.pipelines.cli", "run", "--spec", "shop.yml"]
    monkeypatch.setattr(
        "airflow.providers.apache.spark.hooks.spark_pipelines.SparkPipelinesHook."
        "_build_spark_pipelines_command",
        lambda _: [str(Path(pipelines.path) / "spark-pipelines"), *argv],
    )
    conf = {"spark.extraListeners": "site.Listener", "spark.jars": "/nowhere.jar"}
    task = operator(conf=conf, env_vars={"SPARK_REMOTE": "local[2]"})
    execute(task)
    assert injected(pipelines.given)
    assert argument(pipelines.given, "--jars") == str(pipelines.jar)
    assert "site.Listener" not in pipelines.given.conf["spark.extraListeners"]
    assert task.conf == conf


def test_a_dry_run_is_as_stock_and_says_why(pipelines, execute):
    task = operator(pipeline_command="dry-run")
    execute(task)
    assert "PYSPARK_SUBMIT_ARGS" not in pipelines.pipelines()["env"]
    assert "reads and writes no data" in degradations(task)["listener_unavailable"]


def test_a_server_elsewhere_is_left_alone_and_the_event_says_why(pipelines, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(SERVER))
    task = operator(conf={"spark.a": "1"}, writes=["s3://lake/totals"])
    ran = []
    monkeypatch.setattr(
        "airflow.providers.apache.spark.hooks.spark_pipelines.SparkPipelinesHook.submit_pipeline",
        lambda hook: ran.append(hook._env_vars),
    )
    execute(task)
    assert ran == [None]
    assert "Start the server with the OpenLineage" in degradations(task)["listener_unavailable"]
    with pytest.raises(ListenerError, match="Start the server"):
        execute(operator(strict=True))
    assert len(ran) == 1
    [output] = task.get_openlineage_facets_on_complete(None).outputs
    assert (output.namespace, output.name) == ("s3://lake", "totals")


def adopted(**more):
    with DAG("d", schedule=None):
        task = operator(SparkPipelinesOperator, **more)
    adopting.adopt(task)
    return task


def test_an_adopted_task_gets_the_flags_of_the_stock_operator(pipelines, execute):
    execute(operator(SparkPipelinesOperator))
    stock = pipelines.pipelines()["argv"]
    execute(adopted())
    assert pipelines.pipelines()["argv"] == stock
    assert injected(pipelines.given)


def test_without_lineage_it_runs_where_the_stock_operator_cannot(pipelines, execute):
    execute(operator(lineage=False))
    assert pipelines.pipelines()["argv"] == ["run", "--spec", "shop.yml", "--remote", "local[2]"]
    assert "PYSPARK_SUBMIT_ARGS" not in pipelines.pipelines()["env"]
