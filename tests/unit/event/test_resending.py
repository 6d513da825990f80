"""What is sent of the archive: START and the end as they were, and what has to follow."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.event import emitter
from airflow_provider_sparklineage.event import sending as resending
from airflow_provider_sparklineage.event.archive import ArchivedEvent
from airflow_provider_sparklineage.event.pipeline import ready_to_send
from airflow_provider_sparklineage.event.sending import Candidate, candidate, followers, in_order
from airflow_provider_sparklineage.model.last_run import KEPT
from airflow_provider_sparklineage.model.representation import Adaptation
from airflow_provider_sparklineage.settings.resolution import resolve
from tests.marquez_model import MarquezModel
from tests.resent_runs import CASES, Runs

HOW = resolve().adaptation
RUN_ID = "00000000-0000-7000-8000-000000000001"
DAG_RUN_ID = "00000000-0000-7000-8000-000000000002"
AIRFLOW = {"_producer": "https://github.com/apache/airflow/", "_schemaURL": "https://example.org"}
SENDING = {
    "started": "2024-05-06T01:00:00+00:00",
    "runFacets": {
        "parent": {
            **AIRFLOW,
            "run": {"runId": DAG_RUN_ID},
            "job": {"namespace": "tests", "name": "shop"},
        },
        "nominalTime": {**AIRFLOW, "nominalStartTime": "2024-05-06T00:00:00+00:00"},
    },
    "jobFacets": {"jobType": {**AIRFLOW, "processingType": "BATCH", "integration": "AIRFLOW"}},
}


def unchanged(facets):
    return facets


def sent(event, sending=SENDING, *, with_start=True, redact=unchanged, how=HOW):
    lines = resending.lines_of(ArchivedEvent(event, sending), how, redact, with_start=with_start)
    return [json.loads(line) for line in lines]


@pytest.fixture(params=["staging_chain", "failing_action", "iceberg_merge"])
def event(recorded, request):
    merged = recorded(request.param).event
    return {**merged, "run": {**merged["run"], "runId": RUN_ID}}


def test_a_try_is_sent_with_its_start_and_the_ids_and_times_that_it_had(event):
    start, end = sent(event)
    assert (start["eventType"], start["eventTime"]) == ("START", "2024-05-06T01:00:00+00:00")
    assert (end["eventType"], end["eventTime"]) == (event["eventType"], event["eventTime"])
    for one in (start, end):
        assert one["run"]["runId"] == RUN_ID
        assert one["job"]["name"] == event["job"]["name"]
        assert one["run"]["facets"]["parent"]["run"]["runId"] == DAG_RUN_ID
        assert "nominalTime" in one["run"]["facets"]
        assert one["job"]["facets"]["jobType"]["integration"] == "AIRFLOW"


def test_half_of_a_surrogate_pair_is_sent_to_who_can_hold_it(event):
    facets = {**event["run"]["facets"], "odd": {"text": "a\ud800"}}
    event = {**event, "run": {**event["run"], "facets": facets}}
    for how, text in ((Adaptation("generic"), "a\ud800"), (Adaptation("marquez"), "a")):
        [*_, end] = sent(event, how=how)
        assert end["run"]["facets"]["odd"] == {"text": text}


def test_the_end_is_the_event_that_leaves_and_what_airflow_adds(event):
    _, end = sent(event)
    for part, added in (("run", "runFacets"), ("job", "jobFacets")):
        for key in SENDING[added]:
            del end[part]["facets"][key]
    assert end == ready_to_send(event, HOW)


def test_start_has_the_datasets_of_the_end_with_what_identifies_them(event):
    start, end = sent(event)
    for side, own in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for known, full in zip(start[side], end[side], strict=True):
            assert (known["namespace"], known["name"]) == (full["namespace"], full["name"])
            kept = {k: f for k, f in full["facets"].items() if k in KEPT}
            assert (known["facets"], known[own]) == (kept, {})
    assert start["run"]["facets"].keys() == {"parent", "nominalTime"}


def test_the_client_can_send_both(event):
    for one in sent(event):
        assert emitter.run_event(one).run.runId == RUN_ID


@pytest.mark.parametrize("sending", [None, {}, {"started": ""}])
def test_without_a_time_of_its_start_only_the_end_is_sent(event, sending):
    [end] = sent(event, sending)
    assert end == ready_to_send(event, HOW)


def test_what_only_follows_is_sent_without_its_start(event):
    [end] = sent(event, with_start=False)
    assert end["eventType"] == event["eventType"]


def test_sent_twice_it_is_the_same(event):
    assert sent(event) == sent(event)


def test_facets_of_others_are_redacted_as_airflow_does_and_ours_are_not(event):
    others = {"theirs": {"_producer": "https://example.org", "password": "hunter2"}}
    facets = {**event["run"]["facets"], **others}
    event = {**event, "run": {**event["run"], "facets": facets}}
    given_facets = []

    def redact(facets):
        given_facets.append(facets)
        return {key: {**facet, "password": "***"} for key, facet in facets.items()}

    _, end = sent(event, redact=redact)
    assert end["run"]["facets"]["theirs"]["password"] == "***"
    assert others in given_facets
    assert not any("sparkLineage_capture" in facets for facets in given_facets)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_marquez_shows_of_runs_that_are_sent_again(recorded, case):
    case(Runs(MarquezModel(), recorded("staging_chain").event))


# --- order ----------------------------------------------------------------------------------------


def at(hour, name="", *, job="j", writes=(), state="COMPLETE"):
    time = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(hours=hour)
    event = {
        "eventType": state,
        "eventTime": time.isoformat(),
        "run": {"runId": RUN_ID, "facets": {}},
        "job": {"namespace": "tests", "name": job},
        "outputs": [{"namespace": "file", "name": name} for name in writes],
    }
    return candidate(name or f"{job}/{hour}", event)


def names(candidates):
    return [one.name for one in candidates]


def test_events_are_in_the_order_of_their_times():
    assert names(in_order([at(3), at(1), at(2)])) == ["j/1", "j/2", "j/3"]
    assert names(in_order([at(1, "b"), at(1, "a")])) == ["a", "b"]


def test_times_of_other_zones_are_in_their_order():
    early = {"eventTime": "2024-05-06T01:00:00+02:00"}
    event = {
        "eventType": "FAIL",
        "run": {"runId": RUN_ID},
        "job": {"namespace": "tests", "name": "j"},
    }
    assert names(in_order([at(0), candidate("early", {**event, **early})])) == ["early", "j/0"]


def test_the_latest_run_of_the_job_follows():
    runs = [at(1), at(2), at(3)]
    assert names(followers([runs[0]], runs)) == ["j/3"]
    assert followers([runs[2]], runs) == []
    assert followers(runs, runs) == []


def test_the_latest_that_wrote_the_same_dataset_follows():
    old = at(1, job="a", writes=["t", "u"])
    known = [old, at(2, job="b", writes=["t"]), at(3, job="c", writes=["t"]), at(4, job="d")]
    assert names(followers([old], known)) == ["c/3"]


def test_what_follows_makes_others_follow():
    """B writes what A wrote, and another table; of that C is the latest."""
    old = at(1, job="a", writes=["t"])
    known = [old, at(2, job="b", writes=["t", "u"]), at(3, job="c", writes=["u"])]
    assert names(followers([old], known)) == ["b/2", "c/3"]


def test_what_follows_is_sent_in_its_place_in_time():
    """What A makes follow has written what B, which is sent as well, wrote later."""
    old, last = at(1, job="a"), at(5, job="b", writes=["t"])
    known = [old, at(3, job="a", writes=["t"]), last]
    sent = in_order([old, last, *followers([old, last], known)])
    assert names(sent) == ["a/1", "a/3", "b/5"]


def test_a_failed_run_is_the_latest_of_its_job_but_not_of_its_datasets():
    old = at(1, writes=["t"])
    known = [old, at(2, writes=["t"]), at(3, writes=["t"], state="FAIL")]
    assert names(followers([old], known)) == ["j/2", "j/3"]
    assert followers([at(0, writes=["t"], state="FAIL")], [at(1, job="k", writes=["t"])]) == []


candidates = st.builds(
    at,
    st.integers(0, 20),
    job=st.sampled_from("abc"),
    writes=st.lists(st.sampled_from("tuv"), max_size=2, unique=True),
)


@given(st.lists(candidates, max_size=8, unique_by=lambda one: one.name), st.data())
def test_in_the_end_every_job_and_dataset_has_its_latest_event(known, data):
    chosen = data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    latest = {key: one.name for one in in_order(known) for key in one.keys}
    before = dict(latest)
    for one in in_order([*chosen, *followers(chosen, known)]):
        before |= dict.fromkeys(one.keys, one.name)
    assert before == latest


@pytest.mark.parametrize(
    "changes",
    [
        {"eventTime": "yesterday"},
        {"eventTime": None},
        {"run": {}},
        {"run": {"runId": 5}},
        {"job": {"name": "j"}},
    ],
    ids=str,
)
def test_what_is_no_event_of_a_run_is_no_candidate(changes):
    event = {
        "eventTime": "2024-05-06T00:00:00Z",
        "run": {"runId": RUN_ID},
        "job": {"namespace": "tests", "name": "j"},
    }
    assert isinstance(candidate("x", event), Candidate)
    with pytest.raises(ValueError, match=r"no run|Invalid isoformat"):
        candidate("x", {**event, **changes})
