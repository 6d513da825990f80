"""Jobs on a real YARN that outlive their tasks, and what is collected of them from HDFS."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture import tools
from tests import spark_submit_double
from tests.cluster.conftest import USER
from tests.lineage_backend import receiving, send_by
from tests.record_events import APPLICATIONS

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

LONGEST_S = 180
FAILS = """
import runpy, sys
runpy.run_path({application!r}, run_name="__main__")
raise ValueError("after all that")
"""


@pytest.fixture
def backend(monkeypatch):
    with receiving() as server:
        send_by(monkeypatch, type="http", url=server.url)
        yield server


@pytest.fixture
def location(on_yarn, monkeypatch, tmp_path):
    """Let drivers deliver to a folder of HDFS."""
    host, _, port = on_yarn.webhdfs.partition(":")
    connection = {"conn_type": "webhdfs", "host": host, "port": int(port), "login": USER}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    folder = f"/user/{USER}/{uuid.uuid4().hex}"
    on_yarn.make_folder(folder, USER)
    place = f"{on_yarn.hdfs.partition('://')[2]}{folder}"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"hdfs://lake@{place}")
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    # Bundles of this machine are found as well.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield folder
    on_yarn.files().rm(folder, recursive=True)


def collect(run_id):
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "collect"]
    options = dict.fromkeys(("dag", "task", "now", "again", "dry_run"))
    return command.run(SimpleNamespace(run=run_id, conn_id="sparklineage_default", **options))


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])
def test_what_a_job_did_after_its_task_is_collected(
    on_yarn, location, lake, spark, backend, tmp_path, fails
):
    application = f"{APPLICATIONS}/staging_chain.py"
    if fails:
        failing = tmp_path / "failing.py"
        failing.write_text(FAILS.format(application="staging_chain.py"))
    name = f"unawaited-{fails}"
    task = SparkLineageSubmitOperator(
        task_id="revenue",
        name=name,
        application=str(failing) if fails else application,
        application_args=[lake],
        files=application if fails else None,
        conf={
            **on_yarn.spark_conf(spark.distribution.home),
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "1",
        },
        durable=False,
    )
    spark_submit_double.execute(task, spark_submit_double.task_context())
    facet = task.get_openlineage_facets_on_complete(None).run_facets["sparkLineage_capture"]
    assert [d["code"] for d in facet.degradations] == ["application_unfinished"]
    assert collect("manual") == 1
    ends = time.monotonic() + LONGEST_S
    while not [a for a in on_yarn.applications() if a["name"] == name and ended(a)]:
        assert time.monotonic() < ends, "it does not end"
        time.sleep(1)
    assert collect("manual") == 0
    _, end = backend.events
    assert end["eventType"] == ("FAIL" if fails else "COMPLETE")
    read = [dataset["name"].rpartition("/")[2] for dataset in end["inputs"]]
    assert read == ["customers", "orders", "rates"]
    names = [path.rpartition("/")[2] for path in on_yarn.files().ls(location, detail=False)]
    assert len([name for name in names if name != tools.FOLDER]) == fails  # a failed one is kept


def ended(application):
    return application["state"] in {"FINISHED", "FAILED", "KILLED"}
