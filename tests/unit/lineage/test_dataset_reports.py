"""Which facets stay of a dataset that many events of a run report, in any order and number."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage.application import accumulation
from airflow_provider_sparklineage.lineage.application.accumulation import (
    DatasetReports,
    KeptReports,
    Memory,
    accumulate,
)
from airflow_provider_sparklineage.model.allowance import Limit
from airflow_provider_sparklineage.spark.capture.events import EventDataset, read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORDER = {"START": 0, "RUNNING": 1, "FAIL": 2, "COMPLETE": 3}
EMPTY = ({}, [], None)


def event(second, kind, inputs=(), outputs=()):
    document = {
        "eventTime": (BEGIN + timedelta(seconds=second)).isoformat(),
        "eventType": kind,
        "run": {"runId": "action", "facets": {"parent": {"run": {"runId": "application"}}}},
        "job": {"namespace": "n", "name": "j"},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def accumulated(lines):
    return accumulate(read_events(lines, ReadReport(), source="events"), "application")


VALUES = st.sampled_from([{"v": 1}, {"v": 2}, {"v": 3}, {}, None])
FACETS = st.dictionaries(st.sampled_from(["schema", "version"]), VALUES)
SIDES = st.dictionaries(st.sampled_from(["inputStatistics", "outputStatistics", "x"]), VALUES)
ENTRIES = st.builds(
    lambda name, facets, sides: {
        "namespace": "file",
        "name": name,
        "facets": facets,
        "inputFacets": sides,
        "outputFacets": sides,
    },
    st.sampled_from(["/a", "/b"]),
    FACETS,
    SIDES,
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(sorted(ORDER)), st.lists(ENTRIES, max_size=3)),
    min_size=1,
    max_size=12,
)


def expected(events, of, *, is_input):
    """Choose among all values at once, by the table in the accumulation's docstring."""
    found = {}
    for second, kind, entries in events:
        for entry in entries:
            facets = found.setdefault(entry["name"], {})
            for name, value in entry[of].items():
                if value not in EMPTY:
                    at = (second, ORDER[kind])
                    if name == "outputStatistics" and kind == "COMPLETE":
                        at = (-1, ORDER[kind])
                    facets.setdefault(name, []).append((at, json.dumps(value)))
    first = {"inputStatistics"} | ({"version"} if is_input or of != "facets" else set())
    return {
        dataset: {
            name: json.loads((min if name in first else max)(values)[1])
            for name, values in facets.items()
        }
        for dataset, facets in found.items()
    }


def shown(facets):
    return {name: json.loads(bytes(value)) for name, value in facets.items()}


@given(EVENTS)
def test_each_facet_is_that_of_the_event_that_the_rule_names(events):
    lines = [event(second, kind, entries, entries) for second, kind, entries in events]
    [action] = accumulated(lines).actions
    for is_input, side in ((True, action.inputs), (False, action.outputs)):
        facets = {d.name.name: shown(d.facets) for d in side}
        assert facets == expected(events, "facets", is_input=is_input)
        of_side = {d.name.name: shown(d.side_facets) for d in side}
        kind = "inputFacets" if is_input else "outputFacets"
        assert of_side == expected(events, kind, is_input=is_input)


@given(EVENTS, st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(events, chance):
    lines = [event(second, kind, entries, entries) for second, kind, entries in events]
    again = [*lines, *chance.sample(lines, chance.randint(0, len(lines)))]
    chance.shuffle(again)
    assert accumulated(again).actions == accumulated(lines).actions


@pytest.mark.parametrize("different", [1, 16])
def test_what_comes_again_is_decoded_once(monkeypatch, different):
    decoded = []
    original = accumulation.Memory.facet
    monkeypatch.setattr(
        accumulation.Memory, "facet", lambda self, raw: decoded.append(raw) or original(self, raw)
    )
    entries = [
        {"namespace": "file", "name": "/a", "facets": {"schema": {"fields": [n]}}}
        for n in range(different)
    ]
    accumulated([event(second, "RUNNING", [entries[second % different]]) for second in range(50)])
    assert len(decoded) == different


@pytest.mark.parametrize("different", [1, 100])
def test_events_in_any_number_take_the_same_memory(different):
    entries = [
        [EventDataset("file", "/a", {"version": msgspec.Raw(str(n).encode())})]
        for n in range(different)
    ]

    def taken(events):
        reports = DatasetReports(KeptReports(Memory(), is_input=False))
        tracemalloc.start()
        for second in range(events):
            reports.add(entries[second % different], (BEGIN + timedelta(seconds=second), 1))
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return memory

    assert taken(4000) < taken(2000) + 10_000  # five bytes per event


@pytest.mark.parametrize("times", [1, 3])
def test_what_there_is_no_room_for_is_counted_with_each_event(monkeypatch, times):
    monkeypatch.setattr(Limit, "FACET_BYTES", 10)
    entry = {"namespace": "file", "name": "/a", "facets": {"schema": {"fields": ["x" * 10]}}}
    application = accumulated([event(second, "RUNNING", [entry]) for second in range(times)])
    assert application.left_out == {"facet(s)": times}
    assert application.actions[0].inputs[0].left_out == {"schema"}


def test_datasets_without_room_are_counted_with_each_event_of_a_run_that_has_begun(monkeypatch):
    monkeypatch.setattr(Limit, "DATASETS", 1)
    a, b = ({"namespace": "file", "name": name} for name in ("/a", "/b"))
    application = accumulated([event(0, "START", [a]), *[event(1, "RUNNING", [a, b])] * 3])
    assert application.left_out == {"dataset(s) of actions": 3}
    assert [d.name.name for d in application.actions[0].inputs] == ["/a"]
