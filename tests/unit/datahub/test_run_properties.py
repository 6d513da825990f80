"""What a run shows of itself: what is missing, which partitions, the error."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.datahub.runs import missing
from airflow_provider_sparklineage.event.facets import with_degradations
from airflow_provider_sparklineage.event.model import CAPTURE_KEY
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from tests.conftest import GOLDEN
from tests.unit.datahub.airflow_events import FLAKY, aspect, event_of, with_run_facet

ORDERS = DatasetName("s3://lake", "orders")
BARE = {"actions": 2, "degradations": []}


def degradation(code, message):
    return Degradation(code, message, ORDERS)


def missing_of(*degradations):
    return missing({CAPTURE_KEY: with_degradations(BARE, degradations)})


def shown(event):
    return aspect(event, "dataProcessInstanceProperties")["customProperties"]


def test_a_run_of_which_nothing_is_missing_is_complete():
    assert missing_of() == {"lineage": "complete"}


def test_nobody_looked_where_the_facet_is_absent():
    assert missing({}) == {}


def test_what_is_missing_is_found_by_its_code_and_read_as_sentences():
    found = missing_of(
        degradation(DegradationCode.NO_EVENTS, "The listener wrote nothing."),
        degradation(DegradationCode.PARTITIONS_UNKNOWN, "Those of orders?"),
        degradation(DegradationCode.PARTITIONS_UNKNOWN, "Those of rates?"),
    )

    assert found == {
        "lineage": "incomplete: 3 things are missing",
        "missing: no_events": "The listener wrote nothing.",
        "missing: partitions_unknown": "Those of orders?\nThose of rates?",
    }
    assert (
        shown(with_run_facet(event_of(FLAKY, "FAIL"), **{CAPTURE_KEY: BARE}))["lineage"]
        == "complete"
    )


def test_sentences_are_bounded_and_those_left_out_are_counted():
    many = [degradation(DegradationCode.PARTITIONS_CUT, f"{n} {'x' * 3000}") for n in range(300)]
    found = missing_of(*many)

    lines = found["missing: partitions_cut"].splitlines()
    assert found["lineage"] == "incomplete: 300 things are missing"
    assert lines[-1] == "… and 295 more"
    assert len(lines) == 6
    assert len(found["missing: partitions_cut"]) < 2100


def test_one_thing_is_one():
    found = missing_of(degradation(DegradationCode.TORN_EVENT, "The last line is incomplete."))

    assert found["lineage"] == "incomplete: 1 thing is missing"


@pytest.mark.parametrize(
    "facet",
    [
        7,
        {"degradations": {"code": "x"}},
        {"degradations": [7, {"code": ["x"]}, {"message": "m"}]},
        {"degradations": [], "degradationCounts": {"x": "many"}},
    ],
)
def test_a_malformed_facet_is_one_without_entries(facet):
    assert missing({CAPTURE_KEY: facet}) == {"lineage": "complete"}


def test_a_secret_in_a_sentence_stays_secret():
    found = missing_of(degradation(DegradationCode.NO_EVENTS, "See s3a://key:hunter2@bucket/x."))

    assert "hunter2" not in json.dumps(found)


def test_a_run_says_which_partitions_it_read_and_wrote():
    event = json.loads((GOLDEN / "airflow" / "complete.json").read_text())
    facets = event["run"]["facets"]
    given = with_run_facet(
        event_of(FLAKY, "FAIL"),
        sparkLineage_partitionCheck=facets["sparkLineage_partitionCheck"],
        sparkLineage_capture={**facets[CAPTURE_KEY], "applicationId": "app-1"},
    )
    found = shown(given)

    assert found["wrote revenue"] == "dt=2024-05-06"
    assert found["read rates"] == "month=2024-05"
    assert found["declared to read targets"] == "month=2024-05"
    assert found["partitions"] == "unobserved"
    assert found["partition_summary"].startswith("read customers all of it, orders dt=2024-05-06")
    assert found["spark_application_id"] == "app-1"
    assert found["spark_actions"] == "2"


@pytest.mark.parametrize(
    ("side", "more", "sentence"),
    [
        ("read", {}, "read t"),
        ("read", {"planned": {"count": 1}}, "planned to read t"),
        ("read", {"unreported": "declared"}, "declared to read t"),
        ("read", {"unreported": "last_known"}, "last known to read t"),
        ("write", {}, "wrote t"),
        ("write", {"failed": True}, "was to write t"),
        ("write", {"unreported": "declared"}, "declared to write t"),
        ("write", {"unreported": "last_known"}, "last known to write t"),
    ],
)
def test_a_run_shows_each_kind_of_access(side, more, sentence):
    entry = {"dataset": ORDERS._replace(name="t")._asdict(), "summary": "t dt=1"}
    accesses = {"reads": [], "writes": []} | {
        f"{side}s": [entry | {"observed": {"count": 1}} | more]
    }
    given = with_run_facet(event_of(FLAKY, "FAIL"), sparkLineage_partitionCheck=accesses)
    assert shown(given)[sentence] == "dt=1"


def test_all_that_a_run_shows_is_bounded():
    names = (ORDERS._replace(name=f"{n} {'x' * 500}")._asdict() for n in range(2000))
    writes = [{"dataset": name, "summary": f"{name['name']} {'y' * 5000}"} for name in names]
    check = {"writes": writes, "summary": "z" * 5000}
    tags = {"tags": [{"key": f"{n}", "value": "v" * 5000} for n in range(2000)]}
    states = {"tasksState": {f"task{n}": f"state{n}" for n in range(2000)}}
    error = {"message": "e" * 1_000_000}
    event = with_run_facet(
        event_of(FLAKY, "FAIL"),
        sparkLineage_partitionCheck=check,
        tags=tags,
        airflowState=states,
        errorMessage=error,
    )
    found = shown(event)

    assert len(found) < 250
    assert max(map(len, found)) <= 200
    assert max(map(len, found.values())) <= 2000


def test_the_states_of_many_tasks_are_counted():
    states = {"tasksState": {f"task{n:03}": "success" for n in range(100)} | {"x": None}}
    found = shown(with_run_facet(event_of(FLAKY, "FAIL"), airflowState=states))

    assert found["tasks success"].endswith("task029 and 70 more")
    assert found["tasks none"] == "x"


@pytest.mark.parametrize("facet", [None, 7, "x", [], [{}], {"message": 7}, {"message": None}])
def test_an_error_that_is_none_is_not_shown(facet):
    assert "error" not in shown(with_run_facet(event_of(FLAKY, "FAIL"), errorMessage=facet))
