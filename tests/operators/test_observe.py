"""The observer in the submission: added where there is a Python driver, and switched off."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.conftest import golden

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def recorded_write():
    """Give begin and end of the write of staging/enriched_orders in the recorded events, in ms."""
    lines = golden("staging_chain").read_text().splitlines()
    events = [json.loads(line) for line in lines if "staging_enriched_orders" in line]
    times = [datetime.fromisoformat(event["eventTime"]) for event in events]
    return tuple(int(at.timestamp() * 1000) for at in (min(times), max(times)))


STARTED, ENDED = recorded_write()
DIMENSIONS = [{"field": "dt", "transform": "identity", "type": "date"}]


def operator(application="job.py", **kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application=application, **kwargs)


def codes(lineage):
    return [d["code"] for d in lineage.run_facets["sparkLineage_capture"].degradations]


@pytest.fixture(autouse=True)
def keep_all(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")


def py_files(given):
    argv = given.argv
    return argv[argv.index("--py-files") + 1].split(",") if "--py-files" in argv else []


def test_the_observer_is_a_private_zip_in_the_bundle(spark_submit, execute, captures):
    execute(operator())
    [path] = map(Path, py_files(spark_submit.given))
    [manifest] = captures()
    assert path.parent == manifest.parent
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert "sitecustomize.py" in zipfile.ZipFile(path).namelist()
    given = spark_submit.given.conf["spark.sparklineage.observations"]
    assert given == str(path.with_name("observations.ndjson"))


def test_it_comes_after_the_users_own_files(spark_submit, execute):
    execute(operator(py_files="/shop/a.py,/shop/b.zip"))
    assert py_files(spark_submit.given)[:2] == ["/shop/a.py", "/shop/b.zip"]
    assert len(py_files(spark_submit.given)) == 3


@pytest.mark.parametrize("how", ["argument", "configuration"])
def test_switched_off_nothing_of_it_is_there(spark_submit, execute, monkeypatch, how):
    if how == "configuration":
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__OBSERVE", "False")
    spark_submit.does("staging_chain")
    task = operator(observe=False if how == "argument" else None)
    execute(task)
    given = spark_submit.given
    assert py_files(given) == []
    assert not [k for k in given.conf if k.startswith(("spark.sparklineage", "spark.databricks"))]
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["internal_read_assumed"]


def test_the_argument_beats_the_configuration(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__OBSERVE", "False")
    execute(operator(observe=True))
    assert len(py_files(spark_submit.given)) == 1


@pytest.mark.parametrize(
    "application",
    [{"application": "job.jar", "java_class": "shop.Revenue"}, {"application": "job.R"}],
    ids=["JVM", "R"],
)
def test_an_application_of_another_language_gets_the_listener_only(
    spark_submit, execute, application
):
    spark_submit.does("staging_chain")
    task = operator(**application)
    execute(task)
    assert py_files(spark_submit.given) == []
    assert "spark.extraListeners" in spark_submit.given.conf
    assert "observer_unavailable" in codes(task.get_openlineage_facets_on_complete(None))


def test_an_observer_that_reports_nothing_is_a_degradation(spark_submit, execute):
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert "observations_missing" in codes(task.get_openlineage_facets_on_complete(None))


def test_what_was_observed_is_in_the_event(spark_submit, execute):
    def read(folder, day):
        layout = {
            "base": f"file:/lake/{folder}",
            "dimensions": DIMENSIONS if day else [],
            "partitions": [[day]] if day else [[]],
        }
        filters = ["(dt = DATE '2024-05-06')"] if day else []
        roots = [f"file:/lake/{folder}"]
        return {
            "node": "FileSourceScanExec",
            "layouts": [layout],
            "partition_filters": filters,
            "roots": roots,
        }

    query = {
        "kind": "query",
        "started": STARTED,
        "ended": ENDED,
        "reads": [
            read("orders", "2024-05-06"),
            read("customers", None),
            read("rates/month=2024-05", None),
        ],
        "writes": [],
    }
    spark_submit.does("staging_chain", observations=[{"kind": "start"}, query])
    task = operator()
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    subsets = {d.name: d.inputFacets.get("subset") for d in lineage.inputs}
    [partition] = subsets["/lake/orders"].inputCondition["partitions"]
    assert partition == {"dimensions": {"dt": "2024-05-06"}, "identifier": "dt=2024-05-06"}
    assert subsets["/lake/customers"] is None
    [month] = subsets["/lake/rates"].inputCondition["partitions"]
    assert month["dimensions"] == {"month": "2024-05"}


def test_a_job_that_fails_after_a_count_has_read_what_it_counted(spark_submit, execute):
    """The listener reports no such query: of the recorded application, only its start is left."""
    layout = {"base": "file:/lake/orders", "dimensions": DIMENSIONS, "partitions": [["2024-05-06"]]}
    scan = {"node": "FileSourceScanExec", "layouts": [layout], "roots": ["file:/lake/orders"]}
    scan["partition_filters"] = ["(dt = DATE '2024-05-06')"]
    query = {"kind": "query", "function": "count", "started": STARTED, "ended": ENDED}
    first_line = len(golden("staging_chain").read_text().splitlines(keepends=True)[0].encode())
    spark_submit.does(
        "staging_chain",
        bytes=first_line,
        observations=[{"kind": "start"}, query | {"reads": [scan], "writes": []}],
        exit=1,
    )
    task = operator()
    with pytest.raises(AirflowException):
        execute(task)
    lineage = task.get_openlineage_facets_on_failure(None)
    [orders] = lineage.inputs
    assert orders.name == "/lake/orders"
    [partition] = orders.inputFacets["subset"].inputCondition["partitions"]
    assert partition["identifier"] == "dt=2024-05-06"
    assert "last_known" not in codes(lineage)
