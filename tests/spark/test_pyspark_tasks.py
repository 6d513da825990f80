"""PySpark in the task's own process: what is reported, and that nothing of ours stays in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

ROOT = Path(__file__).parents[2]
CAPTURE = "sparkLineage_capture"


def run_tasks(work, *what):
    """Run tasks in one process of its own."""
    command = [sys.executable, "-m", "tests.spark.pyspark_tasks", str(work), *what]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    log = work / "log"
    with log.open("wb") as output:
        ended = subprocess.run(
            command, cwd=work, env=environment, stdout=output, stderr=output, timeout=600
        )
    assert ended.returncode == 0, log.read_text(errors="replace")[-5000:]
    return json.loads((work / "results.json").read_text())


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("pyspark")


@pytest.fixture(scope="module")
def results(work):
    return run_tasks(work)


def without_what_is_of_one_run(event):
    event = json.loads(json.dumps(event))
    del event["eventTime"]
    for name in ("applicationId", "bytes"):
        del event["run"]["facets"][CAPTURE][name]
    return event


def names(datasets):
    return sorted(dataset["name"].rpartition("/")[2] for dataset in datasets)


def partitions(event, name):
    [found] = [d for d in event["outputs"] if names([d]) == [name]]
    return found["facets"]["sparkLineage_partitions"]["summary"]


def messages(result):
    entries = result["event"]["run"]["facets"][CAPTURE].get("degradations", [])
    return {entry["code"]: entry["message"] for entry in entries}


# --- what is reported -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("second", id="the process's second application"),
        pytest.param("existing", id="a session that was there"),
        pytest.param("goes_on", id="a session that was there and goes on"),
    ],
)
def test_the_event_is_that_of_the_same_job_submitted(results, way):
    expected = without_what_is_of_one_run(results["submitted"]["event"])
    assert names(expected["outputs"]) == ["copied", "orders", "revenue"]
    assert without_what_is_of_one_run(results[way]["event"]) == expected


def test_partitions_and_columns_of_the_first_application_are_known(results):
    event = results["with_secret"]["event"]
    assert names(event["outputs"]) == ["copied", "orders", "rates", "revenue"]
    assert partitions(event, "copied") == "dt=2024-05-06"
    [revenue] = [d for d in event["outputs"] if names([d]) == ["revenue"]]
    fields = revenue["facets"]["columnLineage"]["fields"]
    assert [f["field"] for f in fields["doubled"]["inputFields"]] == ["amount"]


def test_an_adopted_function_returns_what_it_would_and_is_reported(results):
    decorated = results["decorated"]
    assert decorated["returned"] == {"day": "2024-05-06", "rows": 1}
    assert names(decorated["event"]["inputs"]) == ["rates"]
    assert names(decorated["event"]["outputs"]) == ["decorated"]


def test_what_a_function_does_after_it_has_stopped_its_session_is_reported(results):
    stops = results["stops"]
    assert stops["returned"] == "stopped"
    assert names(stops["event"]["outputs"]) == ["again", "copied", "orders", "revenue"]


def test_streams_of_a_session_that_was_there_are_reported(results):
    assert names(results["streams"]["event"]["outputs"]) == ["streamed"]
    assert messages(results["streams"]) == {}


def test_a_function_that_is_not_observed_has_no_partitions_and_nobody_misses_them(results):
    event = results["unobserved"]["event"]
    assert names(event["outputs"]) == ["copied", "orders", "revenue"]
    assert "observations_missing" not in messages(results["unobserved"])
    assert "observer" not in results["unobserved"]["manifest"]["injected"]


@pytest.mark.parametrize(
    ("way", "raised"),
    [
        pytest.param("fails", ["ValueError", "the function's own", "fails"], id="an exception"),
        pytest.param("hangs", ["AirflowTaskTimeout"], id="the task's timeout"),
    ],
)
def test_a_function_fails_as_it_would_and_what_it_did_is_reported(results, way, raised):
    assert results[way]["raised"][: len(raised)] == raised
    event = results[way]["event"]
    assert event["eventType"] == "FAIL"
    assert partitions(event, "copied") == "dt=2024-05-06"


# --- what nobody else sees ------------------------------------------------------------------------


def test_a_secret_reaches_the_session_and_no_argument(results, work):
    given = results["with_secret"]["returned"]
    assert "org.apache.spark.deploy.SparkSubmit" in given["command"]
    assert "pl4nted" not in given["command"]
    assert "pl4nted" not in (work / "log").read_text(errors="replace")


def test_a_transport_that_is_left_out_is_in_no_configuration(results):
    conf = results["with_secret"]["returned"]["conf"]
    assert [key for key in conf if "apiKey" in key] == []


@pytest.mark.parametrize("way", ["off", "disabled"])
def test_a_task_without_lineage_has_nothing_of_the_tasks_before_it(results, way):
    conf = results[way]["returned"]
    assert "event" not in results[way]
    assert [key for key in conf if "lineage" in key or "extraListeners" in key] == []


def test_everything_in_the_process_is_as_it_was(results):
    assert [n for n, r in results.items() if not r["is_environment_as_before"]] == []
    assert [n for n, r in results.items() if not r["is_pyspark_as_before"]] == []


def test_nothing_stays_with_a_session_that_goes_on(results):
    nothing = {"queries": 0, "spark": [], "streams": 0, "tag": None}
    assert results["goes_on"]["before"] == nothing
    assert results["goes_on"]["left"] == nothing
    assert results["streams"]["left"] == nothing


def test_a_session_that_airflow_would_stop_is_stopped(results):
    assert results["existing"]["left"] is None


# --- where nothing can be collected ---------------------------------------------------------------


def test_without_a_listener_the_function_runs_and_the_event_says_why(results):
    assert results["without_jar"]["raised"] is None
    assert list(messages(results["without_jar"])) == ["listener_unavailable"]


def test_strict_fails_before_the_function_is_called(results):
    assert results["strict"]["raised"][0] == "ListenerError"
    assert not results["strict"]["is_called"]


def test_of_a_function_that_makes_no_spark_context_the_event_says_so(results):
    assert list(messages(results["no_context"])) == ["no_events"]
    assert "made no SparkContext" in messages(results["no_context"])["no_events"]


# --- defects of ours ------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.long)])
def defects(request, tmp_path_factory):
    """Give what tasks in which something of ours failed gave and reported."""
    if request.param == "all":
        results, least = run_tasks(tmp_path_factory.mktemp("defects"), "defects"), 20
    else:
        results, least = request.getfixturevalue("results"), 3
    met = {name: result for name, result in results.items() if "defect: " in name}
    assert len(met) > least
    return met


def test_whatever_of_ours_fails_the_function_does_what_it_would(defects):
    assert [name for name, result in defects.items() if result["returned"] != "done"] == []
    assert [name for name, result in defects.items() if result["left"] is not None] == []


def test_everything_is_as_it_was_then_too(defects):
    assert [n for n, r in defects.items() if not r["is_environment_as_before"]] == []
    assert [n for n, r in defects.items() if not r["is_pyspark_as_before"]] == []


def test_what_fails_before_the_function_is_called_is_in_the_event(defects):
    late = ("a listener that comes late", "a session that is there")
    ends = ("the last records", "the last events")
    for name, result in defects.items():
        kind, _, what = name.partition("defect: ")
        if what in ends or (what in late and kind != "late "):
            continue
        assert "injection_failed" in messages(result), name
