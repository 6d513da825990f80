"""Listener and observer in a process that PySpark runs in, on each Spark: no Airflow is needed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import lines

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def work(spark, prepared, tmp_path_factory):
    """Run all applications in one process; ``prepared`` has fetched the connectors."""
    work = tmp_path_factory.mktemp("in-process")
    lake, connectors = work / "lake", submissions.available(spark)
    lake.mkdir()
    conf = record_events.spark_conf(lake, work) | submissions.UNSEEN
    conf |= submissions.connector_conf(connectors, lake)
    conf["spark.jars.packages"] = ",".join(str(spark.package(c)) for c in connectors)
    program = [str(spark.python), "-m", "tests.spark.in_process_driver"]
    log = work / "log"
    with log.open("wb") as output:
        ended = subprocess.run(
            [*program, str(work), str(spark.listener), json.dumps(conf)],
            cwd=work,
            env=record_events.environment(spark, work) | {"PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
            timeout=600,
        )
    assert ended.returncode == 0, log.read_text(errors="replace")[-5000:]
    return work


@pytest.fixture(scope="module")
def results(work):
    return json.loads((work / "results.json").read_text())


APPLICATIONS = ("tables", "second", "late", "later")


@pytest.fixture(params=APPLICATIONS)
def application(request):
    return request.param


def written(records, folder):
    """Give the partitions that were written into a folder below the lake."""
    return sorted(
        value
        for record in records
        for write in record.get("writes", [])
        for layout in write.get("layouts", [])
        if layout["base"].partition("/lake/")[2].startswith(folder)
        for partition in layout["partitions"]
        for value in partition
    )


def test_the_jvm_knows_which_spark_it_is(results, application, spark):
    found = spark.distribution
    assert results[application]["spark"] == [str(found.home), found.version, found.scala]


def test_the_listener_is_added_to_a_jvm_once(results, spark):
    assert results["tables"]["found"] == []
    there = [["JARS", str(spark.listener)]]
    assert [results[name]["found"] for name in APPLICATIONS[1:]] == [there] * 3


def test_each_application_has_its_events_from_start_to_end(work, application):
    events = lines(work / f"{application}.events")
    runs = [e["run"]["runId"] for e in events if "parent" not in e["run"]["facets"]]
    of_application = [e["eventType"] for e in events if e["run"]["runId"] == runs[0]]
    assert [of_application[0], of_application[-1]] == ["START", "COMPLETE"]
    assert runs[0].endswith(f"000{APPLICATIONS.index(application)}")
    assert set(runs) == {runs[0]}
    outputs = {output["name"] for event in events for output in event["outputs"]}
    assert {name for name in outputs if "/lake/" in name} >= {f"{work}/lake/{application}"}
    others = {f"{work}/lake/{name}" for name in (*APPLICATIONS, "unseen")} - {
        f"{work}/lake/{application}"
    }
    assert not outputs & others


def test_each_application_is_observed_to_its_end(work, application):
    records = lines(work / f"{application}.records")
    assert [record for record in records if "error" in record] == []
    assert records[-1]["kind"] == "end"
    assert written(records, application) == ["eu", "us"]


@pytest.mark.parametrize(
    ("connector", "folder", "partitions"),
    [
        pytest.param("delta", "delta", ["eu", "eu", "us"], id="delta"),
        pytest.param("iceberg", "iceberg", ["eu", "us"], id="iceberg"),
    ],
)
def test_tables_are_read_when_the_session_has_been_stopped(
    work, spark, connector, folder, partitions
):
    submissions.require(spark, connector)
    assert written(lines(work / "tables.records"), folder) == partitions


def test_nothing_stays_with_a_session_that_goes_on(results):
    assert results["late"]["left"] == [0, 0]
    assert results["later"]["left"] == [0, 0]
