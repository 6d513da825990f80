"""What the tab gets of a try without lineage (yet): what is expected of it, and the last run."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.xcom import EXPECTED_KEY
from airflow_provider_sparklineage.plugins import task_lineage
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.operators.tab.conftest import LATEST, event

pytestmark = pytest.mark.airflow

EXPECTED = {"try_number": LATEST, "entries": [{"side": "read"}], "unlisted": 0}


def reading(name, witness="listener", code=""):
    """Make the event of a try that read a dataset; ``witness`` is None if that is not noted."""
    dataset = {"namespace": "s3://lake", "name": name}
    seen = [{"dataset": dataset, "side": "read", "witness": witness}] if witness else None
    capture = {"datasets": seen, "degradations": [{"code": code, "message": "m"}]}
    facets = {"facets": {"sparkLineage_capture": capture}}
    return event() | {"inputs": [dataset], "run": facets}


FAILED = event("failed") | {"eventType": "FAIL"}


@pytest.mark.parametrize("state", ["running", "queued", "scheduled", "deferred", None])
def test_a_try_that_goes_on_has_the_last_run(ask, ran, is_at, state):
    ran(4, event("of the 4th"))
    ran(5, event("of the 5th"))
    is_at(state)
    answer = ask()
    assert (answer["event"], answer["message"]) == (None, task_lineage.RUNNING)
    assert answer["last"] == {
        "event": event("of the 5th"),
        "links": {},
        "run_id": "run of 5",
        "try_number": 1,
        "map_index": -1,
        "date": "2024-05-05T00:00:00+00:00",
    }


@pytest.mark.parametrize("state", ["failed", "upstream_failed", "skipped"])
def test_so_has_one_that_ended_before_its_job_was_submitted(ask, ran, is_at, state):
    ran(5, event("of the 5th"))
    is_at(state)
    answer = ask()
    assert (answer["event"], answer["message"]) == (None, task_lineage.NOT_SUBMITTED)
    assert answer["last"]["run_id"] == "run of 5"


@pytest.mark.parametrize("state", ["queued", "scheduled"])
@pytest.mark.parametrize("outcome", ["FAIL", "COMPLETE"])
def test_a_queued_retry_has_the_try_before(ask, ran, push, is_at, state, outcome):
    ran(5, event("of the 5th"))
    before = reading("orders") | {"eventType": outcome}
    push(before)
    is_at(state)
    answer = ask()
    message = f"Try 3 is {state} and has not begun; below is the lineage of try 2."
    assert (answer["event"], answer["message"]) == (None, message)
    last = answer["last"]
    assert (last["event"], last["run_id"], last["try_number"]) == (before, "manual", 2)


def test_so_it_has_from_the_archive(ask, is_at, archive):
    before = reading("orders") | {"eventType": "FAIL"}
    archive.write(TaskIdentity("shop", "revenue", "manual", 1), Written(before))
    archive.write(TaskIdentity("shop", "revenue", "manual", 2), Written(FAILED))
    is_at("queued")
    answer = ask()
    assert answer["message"].endswith("below is the lineage of try 1.")
    assert (answer["last"]["event"], answer["last"]["try_number"]) == (before, 1)


def test_a_try_that_is_queued_after_a_deferral_has_begun(ask, push, is_at):
    push(EXPECTED, key=EXPECTED_KEY)
    push(event())
    is_at("queued")
    answer = ask()
    assert (answer["message"], answer["expected"]) == (task_lineage.RUNNING, EXPECTED)


def test_a_first_try_that_is_queued_has_the_last_run(ask, ran, is_at):
    ran(5, event("of the 5th"))
    is_at("queued", try_number=1)
    answer = ask()
    assert (answer["message"], answer["last"]["run_id"]) == (task_lineage.RUNNING, "run of 5")


@pytest.mark.parametrize("state", ["up_for_retry", None])
def test_a_try_that_another_follows_says_so(ask, push, is_at, state):
    push(event())
    is_at(state)
    answer = ask()
    message = "This is the lineage of try 3, which has ended; another try will follow."
    assert (answer["event"], answer["message"]) == (event(), message)


def test_one_to_be_retried_that_has_no_lineage_has_ended(ask, ran, is_at):
    ran(5, event("of the 5th"))
    is_at("up_for_retry")
    answer = ask()
    assert answer["message"] == task_lineage.NOT_SUBMITTED
    assert answer["last"]["run_id"] == "run of 5"


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(FAILED, id="no dataset"),
        pytest.param(reading("orders", "declared") | {"eventType": "FAIL"}, id="a declared one"),
        pytest.param(
            reading("orders", None, "last_known") | {"eventType": "FAIL"}, id="of the last run"
        ),
        pytest.param(
            reading("orders", None, "not_submitted") | {"eventType": "FAIL"}, id="not submitted"
        ),
    ],
)
def test_one_that_failed_before_it_did_anything_has_what_is_expected(ask, ran, push, is_at, failed):
    ran(5, event("of the 5th"))
    push(failed)
    push(EXPECTED, key=EXPECTED_KEY)
    is_at("failed")
    answer = ask()
    assert (answer["event"], answer["message"]) == (failed, task_lineage.DID_NOTHING)
    assert (answer["expected"], answer["last"]["run_id"]) == (EXPECTED, "run of 5")


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(reading("orders") | {"eventType": "FAIL"}, id="seen"),
        pytest.param(reading("orders", "both", "last_known") | {"eventType": "FAIL"}, id="in part"),
        pytest.param(reading("orders", None) | {"eventType": "FAIL"}, id="not known who saw it"),
        pytest.param(event(), id="succeeded"),
    ],
)
def test_one_that_did_anything_has_its_own_lineage_alone(ask, ran, push, is_at, failed):
    ran(5, event("of the 5th"))
    push(failed)
    push(EXPECTED, key=EXPECTED_KEY)
    is_at("failed")
    answer = ask()
    assert (answer["event"], answer["message"]) == (failed, "")
    assert (answer["expected"], answer["last"]) == (None, None)


def test_one_that_has_its_own_lineage_has_no_other(ask, ran, push):
    ran(5, event("of the 5th"))
    push(event())
    answer = ask()
    assert (answer["event"], answer["last"], answer["expected"]) == (event(), None, None)


def test_nor_has_one_that_succeeded_without(ask, ran):
    ran(5, event("of the 5th"))
    answer = ask()
    assert (answer["message"], answer["last"]) == (task_lineage.NOTHING, None)


def test_nor_an_earlier_try(ask, ran, is_at):
    ran(5, event("of the 5th"))
    is_at("running")
    assert ask(try_number=1)["last"] is None


@pytest.mark.parametrize(
    ("days", "last"),
    [
        pytest.param([3, 5, 4], "run of 5", id="the latest before"),
        pytest.param([5, 9], "run of 5", id="not one after it"),
        pytest.param([9, 8], "run of 8", id="where there is none before, the next"),
        pytest.param([], None, id="none"),
    ],
)
def test_the_last_run_is_the_nearest(ask, ran, is_at, days, last):
    for day in days:
        ran(day, event())
    is_at("running")
    found = ask()["last"]
    assert (found and found["run_id"]) == last


def test_the_last_run_is_one_that_succeeded_and_has_lineage(ask, ran, is_at):
    ran(2, event())
    ran(3, FAILED)
    ran(4, {"a": 1})
    ran(5, event(), state="failed")
    is_at("running")
    assert ask()["last"]["run_id"] == "run of 2"


def test_the_last_run_of_an_instance_is_of_the_same_index(ask, ran, is_at):
    ran(4, event("of 7"), map_index=7)
    ran(5, event("not mapped"))
    is_at("running")
    assert ask(map_index=7)["last"]["event"] == event("of 7")


def test_a_mapped_sibling_stands_in_where_there_is_no_other_run(ask, push, session, is_at):
    push(event("of the sibling"), map_index=7)
    is_at("running")
    assert ask()["last"] is None  # the sibling has not succeeded
    is_at("success")
    is_at("running", map_index=-1)
    assert ask()["last"]["event"] == event("of the sibling")


def test_siblings_do_not_crowd_out_the_last_run(ask, ran, is_at, map_to):
    ran(5, event("of the 5th"), map_index=7)
    for index in range(20, 90):
        map_to(index, event("of a sibling"))
    is_at("running", map_index=7)
    last = ask(map_index=7)["last"]
    assert (last["event"], last["run_id"]) == (event("of the 5th"), "run of 5")


def test_after_a_clear_it_is_the_try_before_from_the_archive(ask, ran, is_at, archive):
    ran(5, event("of the 5th"))
    identity = TaskIdentity("shop", "revenue", "manual", 1)
    archive.write(identity, Written(event("of the first try")))
    archive.write(TaskIdentity("shop", "revenue", "manual", 2), Written(FAILED))
    is_at("running")
    last = ask()["last"]
    assert (last["event"], last["try_number"]) == (event("of the first try"), 1)
    assert (last["run_id"], last["date"]) == ("manual", None)


def test_a_run_whose_xcom_is_gone_is_in_the_archive(ask, ran, is_at, archive):
    ran(5)
    archive.write(TaskIdentity("shop", "revenue", "run of 5", 1), Written(event("archived")))
    is_at("running")
    assert ask()["last"]["event"] == event("archived")


def test_an_archive_that_is_away_is_asked_once(ask, ran, is_at, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "gs://nobody@nowhere/x")
    for day in (3, 4, 5):
        ran(day)
    is_at("running")
    assert ask()["note"].count("could not be read from") == 1


def test_one_that_goes_away_after_its_first_answer_is_a_note(ask, ran, is_at, archive, monkeypatch):
    def refuse(*_):
        raise ConnectionError

    monkeypatch.setattr(Archive, "tries", lambda *_: [1])
    monkeypatch.setattr(Archive, "_store", refuse)
    is_at("running")
    assert "could not be read from" in ask()["note"]


def test_what_is_expected_is_that_of_the_try(ask, push, is_at):
    push(EXPECTED, key=EXPECTED_KEY)
    is_at("running")
    answer = ask()
    assert answer["expected"] == EXPECTED
    assert answer["expected_at"] == ask(what="state")["expected_at"] is not None


def test_what_an_earlier_try_expected_is_not(ask, push, is_at):
    push(EXPECTED | {"try_number": 2}, key=EXPECTED_KEY)
    is_at("running")
    assert ask()["expected"] is None


@pytest.mark.parametrize("value", ["s3://another/xcom/1", [1], 5])
def test_what_is_no_expectation_is_none(ask, push, is_at, value):
    push(value, key=EXPECTED_KEY)
    is_at("running")
    assert ask()["expected"] is None
