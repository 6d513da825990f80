"""A driver in the cluster that has no Python: its listener sends its events to the task."""

from __future__ import annotations

import json
import threading
import time
import uuid
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture import receiver
from tests import spark_submit_double
from tests.cluster.conftest import USER
from tests.java_application import MAIN_CLASS, compiled

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

TOKEN = "pl4nted-t0ken-of-the-try"
LONGEST_S = 120


@pytest.fixture
def folder(on_yarn):
    """Make a folder of HDFS for what the job writes."""
    folder = f"/user/{USER}/{uuid.uuid4().hex}"
    on_yarn.make_folder(folder, USER)
    yield folder
    on_yarn.files().rm(folder, recursive=True)


@pytest.fixture
def run(on_yarn, folder, spark, tmp_path, monkeypatch):
    """Run the job as a task would; give its lineage, and what is left of it."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", str(spark.listener))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_ENDPOINT", "127.0.0.1")
    monkeypatch.setattr(receiver.secrets, "token_urlsafe", lambda _: TOKEN)
    jar = compiled(spark, tmp_path)

    def run(name, *arguments, deploy_mode="cluster", **conf):
        connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": deploy_mode}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
        task = SparkLineageSubmitOperator(
            task_id="totals",
            name=name,
            application=str(jar),
            java_class=MAIN_CLASS,
            application_args=[f"{on_yarn.hdfs}{folder}/{name}", *arguments],
            conf={**on_yarn.spark_conf(spark.distribution.home), **conf},
            durable=False,
        )
        error = None
        try:
            spark_submit_double.execute(task, spark_submit_double.task_context())
        except AirflowException as raised:
            error = raised
        lineage = task.get_openlineage_facets_on_complete(None)
        facet = lineage.run_facets["sparkLineage_capture"]
        return SimpleNamespace(
            error=error,
            outputs=sorted(d.name for d in lineage.outputs),
            datasets=named(lineage, name),
            degradations={d["code"]: d["message"] for d in facet.degradations},
            application=application(on_yarn, name),
        )

    return run


def application(cluster, name):
    found = [a["id"] for a in cluster.applications() if a["name"] == name]
    return found[0] if found else None


def named(lineage, name):
    """Give what an event says of datasets: one name for the folder of each run, and no minute."""
    datasets = [*lineage.inputs, *lineage.outputs]
    for dataset in datasets:
        dataset.facets.pop("documentation")
    return sorted(repr(dataset).replace(f"/{name}/", "/run/") for dataset in datasets)


def test_what_it_sends_is_what_it_would_write_on_the_worker(run, on_yarn, folder):
    on_yarn.make_folder(f"{folder}/log", USER)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"{on_yarn.hdfs}{folder}/log"}
    there = run("there", **log, **{"spark.eventLog.compress": "false", "spark.logConf": "true"})
    here = run("here", deploy_mode="client")
    assert (there.error, here.error) == (None, None)
    assert there.outputs == [f"{folder}/there/orders", f"{folder}/there/totals"]
    assert there.datasets == here.datasets
    assert there.degradations.keys() == here.degradations.keys()
    assert "observer_unavailable" in there.degradations
    texts = {
        name: on_yarn.files().cat(name).decode(errors="replace")
        for name in on_yarn.files().find(f"{folder}/log")
    }
    assert "spark.openlineage.transport.auth.apiKey" in "".join(texts.values())  # redacted
    texts["log"] = on_yarn.log(there.application)
    assert "SparkContext" in texts["log"]
    assert [name for name, text in texts.items() if TOKEN in text] == []


def test_what_it_had_done_when_it_was_killed_is_there(run, on_yarn, folder, tmp_path):
    def kill():
        ends = time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            lines = [
                json.loads(line)
                for file in (tmp_path / "captures").glob("*/events.ndjson")
                for line in file.read_text().splitlines()
            ]
            if any(
                event["eventType"] == "COMPLETE" and output["name"].endswith("/totals")
                for event in lines
                for output in event["outputs"]
            ):
                break
            time.sleep(0.2)
        on_yarn.kill(application(on_yarn, "killed"))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        ran = run("killed", str(LONGEST_S * 1000))
    finally:
        killer.join(LONGEST_S)
    assert ran.error is not None
    assert ran.outputs == [f"{folder}/killed/orders", f"{folder}/killed/totals"]
    assert ran.degradations.keys().isdisjoint({"driver_elsewhere", "delivery_incomplete"})
