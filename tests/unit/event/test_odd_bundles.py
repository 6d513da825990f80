"""Bundles with something in them that nobody expects: it is lost, declared, and nothing else is."""

from __future__ import annotations

import json
import os

import pytest

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.allowance import UNLIMITED
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.capture.observations import Messages
from tests.allowances import lasting
from tests.conftest import golden
from tests.openlineage_spec import validate_event

CASE = golden("partitioned_writes")
LINES = {
    EVENTS: CASE.read_bytes().splitlines(keepends=True),
    OBSERVATIONS: (CASE.parent / "observed" / CASE.name).read_bytes().splitlines(keepends=True),
}
RUN_ID = json.loads(LINES[EVENTS][0])["run"]["runId"]
CODES = {EVENTS: "malformed_events", OBSERVATIONS: "malformed_observations"}


@pytest.fixture
def merged(tmp_path):
    """Merge the recorded bundle, with other lines in it."""

    def merged(**lines):
        manifest = Manifest(application_run_id=RUN_ID, injected=("py_files",))
        bundle = capture.create(tmp_path, manifest)
        for name, kept in LINES.items():
            text = lines.get(name.partition(".")[0], kept)
            if text is not None:
                (bundle.path / name).write_bytes(b"".join(text))
        return event_of(bundle)

    return merged


def event_of(bundle, allowance=UNLIMITED):
    return merged_event(bundle, task_lineage(bundle, allowance))


def degradations(event):
    return event["run"]["facets"]["sparkLineage_capture"]["degradations"]


def messages(event, code):
    return [d["message"] for d in degradations(event) if d["code"] == code]


def with_line(name, line, at=2):
    """Insert a line behind the first ones."""
    lines = list(LINES[name])
    lines.insert(at, line)
    return {name.partition(".")[0]: lines}


def deep_schema(levels):
    inner = b'{"name":"c","type":"struct","fields":['
    return b'{"fields":[' + inner * levels + b"]}" * levels + b"]}"


ODD = {
    "a byte that is no UTF-8": b'{"kind":"query","reads":[{"node":"\xff"}],"job":"\xff"}\n',
    "half a surrogate pair": b'{"kind":"\\udfff"}\n',
    "deeply nested": b'{"kind":' + b"[" * 10_000 + b"\n",
    "NUL": b"\0" * 100 + b"\n",
    "UTF-16": '{"kind":"query"}\r\n'.encode("utf-16-le") + b"\n",
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_one_odd_line_costs_that_line_and_is_declared_with_its_number(merged, name, odd):
    event = merged(**with_line(name, odd))
    expected = merged()
    assert (event["inputs"], event["outputs"]) == (expected["inputs"], expected["outputs"])
    [message] = messages(event, CODES[name])
    assert f"{name}:3: " in message


def spoiled(name, facet):
    """Give all outputs of all events a facet, or another one."""
    lines = []
    for line in LINES[EVENTS]:
        event = json.loads(line)
        for dataset in event.get("outputs", ()):
            dataset["facets"][name] = 12321
        lines.append(json.dumps(event).encode().replace(b"12321", facet) + b"\n")
    return {"events": lines}


PARTS = b'"_producer":"https://p","_schemaURL":"https://s"'
FACETS = {
    "a facet nested too deeply": ("custom", b"{" + PARTS + b',"a":' + b"[" * 300 + b"]" * 300),
    "a schema nested too deeply": ("schema", b"{" + PARTS + b"," + deep_schema(190)[1:-1]),
    "a column without a name": ("schema", b"{" + PARTS + b',"fields":[{"type":"int"}]'),
    "a column whose name is null": (
        "schema",
        b"{" + PARTS + b',"fields":[{"name":null,"type":"int"}]',
    ),
    "a schema that is a list": ("schema", b"[" + PARTS.replace(b":", b",")),
    "no facet": ("custom", b'{"a":1'),
    "a number that JSON has and Python has not": ("custom", b"{" + PARTS + b',"a":1e999'),
    "an identifier without a name": (
        "symlinks",
        b"{" + PARTS + b',"identifiers":[{"namespace":"n","type":"TABLE"}]',
    ),
    "a lifecycle of another word": ("lifecycleStateChange", b"{" + PARTS + b',"a":"b"'),
}


@pytest.mark.parametrize(("name", "facet"), FACETS.values(), ids=FACETS.keys())
def test_a_facet_that_is_none_costs_itself_and_leaves_a_valid_event(merged, name, facet):
    end = b"]" if facet.startswith(b"[") else b"}"
    event = merged(**spoiled(name, facet + end))
    assert event["outputs"]
    assert not any(name in d["facets"] for d in event["outputs"])
    found = messages(event, "malformed_events")
    assert len(found) == len(event["outputs"])
    assert all(f"The facet {name} that the listener reported of " in m for m in found)
    validate_event(event)


@pytest.mark.parametrize("levels", [450, 900])
def test_an_event_that_is_nested_to_the_limit_of_python_costs_at_most_itself(merged, levels):
    for name, facet in (("custom", b"[" * levels + b"]" * levels), ("schema", deep_schema(levels))):
        event = merged(**spoiled(name, facet), observations=[])  # they have schemas as well
        assert messages(event, "malformed_events")
        assert not any(name in d["facets"] for d in event["outputs"])


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a named pipe", "a folder"])
def test_observations_that_are_no_file_cost_the_observations(tmp_path, make):
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN_ID))
    bundle.events_path.write_bytes(b"".join(LINES[EVENTS]))
    make(bundle.observations_path)
    event = event_of(bundle)
    assert event["outputs"]
    [message] = messages(event, "observations_missing")
    assert message == f"{bundle.observations_path} cannot be read: it is no regular file."


def test_the_deadline_ends_reading_observations(tmp_path):
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN_ID))
    bundle.events_path.write_bytes(b"".join(LINES[EVENTS]))
    bundle.observations_path.write_bytes(b"\n" * 100)
    event = event_of(bundle, lasting(len(LINES[EVENTS]) + 50))
    assert any("observed were left out" in m for m in messages(event, "collection_cut"))


def test_errors_of_the_observer_are_truncated_however_long_and_many(merged):
    error = json.dumps({"error": "x" * 12_000_000}).encode() + b"\n"
    many = json.dumps({"errors": [f"error {n}" for n in range(100_000)]}).encode() + b"\n"
    event = merged(observations=[*LINES[OBSERVATIONS], error, many])
    [message] = messages(event, "observer_failed")
    assert len(message) < 1000
    assert message.endswith("; error 0; error 1 and 99998 more.")


def test_why_partitions_are_unknown_is_truncated(merged):
    records = [json.loads(line) for line in LINES[OBSERVATIONS]]
    for record in records:
        for part in (*record.get("reads", ()), *record.get("writes", ())):
            part.update(
                layouts=None if "roots" in part else [], how="unknown", cut="y " * 1_000_000
            )
    event = merged(observations=[json.dumps(r).encode() + b"\n" for r in records])
    assert messages(event, "partitions_unknown")
    assert max(len(d["message"]) for d in degradations(event)) <= 2000


def test_messages_are_joined_with_how_many_more_there_are():
    assert str(Messages("abcde")) == "a; b; c and 2 more"
    assert str(Messages(["a", "", "b"])) == "a; b"
