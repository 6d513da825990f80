"""Recorded events, spoiled: whatever is in them, merging gives an event and never raises."""

from __future__ import annotations

import copy
import json
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.pipeline import event_of, events_of
from airflow_provider_sparklineage.event.steps.size import reduced
from airflow_provider_sparklineage.lineage.application.accumulation import accumulate
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.representation import Adaptation, Representation
from airflow_provider_sparklineage.spark.capture.events import read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationReport,
    read_observations,
)
from tests.conftest import HEADER, golden
from tests.unit.lineage.test_binding import collected

CASES = ("staging_chain", "partitioned_writes", "iceberg_merge", "python_udf", "self_overwrite")
HOSTILE = (
    None,
    True,
    -1,
    10**40,
    1e308,
    "",
    "\0",
    "a\0b",
    "x" * 10_000,
    "żółw\N{TURTLE}\u202e",
    "s3a://me:pw@bucket/x?y=1#z",
    "/lake/../../etc=passwd/%2F%00",
    "dt=__HIVE_DEFAULT_PARTITION__",
    "SELECT * FROM (((",
    "pythonUDF0",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"type": "location", "locations": [""]},
    {"fields": None},
    {"fields": [{"name": None}]},
)


chances = st.integers(0, 10**9).map(random.Random)


@cache
def recorded_lines(case):
    return tuple(golden(case).read_text().splitlines())


def paths(value, above=()):
    """Give the path of everything in a document."""
    yield above
    entries = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else entries:
        yield from paths(inner, (*above, key))


def put(document, path, value):
    *above, last = path
    for key in above:
        document = document[key]
    document[last] = copy.deepcopy(value)  # what is put in may be spoiled itself


def spoiled(case, chance, count):
    """Replace some values of some events, wherever they stand; keep which application it is."""
    events = [json.loads(line) for line in recorded_lines(case) if line.startswith("{")]
    run_id = events[0]["run"]["runId"]
    for _ in range(count):
        event = chance.choice(events)
        places = [p for p in paths(event) if p and p[:2] != ("run", "runId")]
        put(event, chance.choice(places), chance.choice(HOSTILE))
    return run_id, [json.dumps(event).encode() + b"\n" for event in events]


def merged(run_id, lines, outcome=Outcome.COMPLETE):
    report = ReadReport()
    application = accumulate(read_events(lines, report, source="events"), run_id)
    return merge(application, outcome), report


def document(lineage, report, **options):
    return event_of(lineage, report, representation=Representation(**options), header=HEADER)


@settings(max_examples=20)
@given(st.sampled_from(CASES), chances, st.integers(1, 12))
def test_a_spoiled_value_costs_what_it_would_have_reported_and_nothing_else(case, chance, count):
    run_id, lines = spoiled(case, chance, count)
    for outcome in Outcome:
        lineage, report = merged(run_id, lines, outcome)
        event = document(lineage, report, explicit_lineage=True, redact_literals=count % 2 == 0)
        json.dumps(event, allow_nan=False)
        names = [(d["namespace"], d["name"]) for d in event["outputs"]]
        assert len(names) == len(set(names))


@settings(max_examples=10)
@given(st.sampled_from(CASES), chances, st.integers(0, 6))
def test_order_and_repetition_of_events_change_nothing(case, chance, count):
    run_id, lines = spoiled(case, chance, count)
    expected, report = merged(run_id, lines)
    shuffled = [*lines, *chance.sample(lines, min(5, len(lines)))]
    chance.shuffle(shuffled)
    found, _ = merged(run_id, shuffled)
    assert document(found, report)["inputs"] == document(expected, report)["inputs"]
    assert document(found, report)["outputs"] == document(expected, report)["outputs"]


@settings(max_examples=10)
@given(st.sampled_from(CASES), chances, st.integers(0, 40_000))
def test_a_spoiled_event_fits_where_it_must(case, chance, limit):
    lineage, report = merged(*spoiled(case, chance, 5))
    full = event_of(lineage, report, Representation(max_event_bytes=10**9))
    less, dropped = reduced(full, limit, "the limit")
    assert bool(dropped) == (less is not full)
    assert [d["name"] for d in less["outputs"]] == [d["name"] for d in full["outputs"]]


@settings(max_examples=15)
@given(st.sampled_from(CASES), chances, st.integers(1, 12))
def test_no_text_that_marquez_cannot_store_is_left(case, chance, count):
    lineage, report = merged(*spoiled(case, chance, count))
    event = events_of(lineage, Adaptation("marquez"), report, header=HEADER).adapted
    assert "\\u0000" not in json.dumps(event)


SPOILED_NAMES = ("\0", "", "x" * 5_000, "a=b/c=d", "żółw", "me:pw@host", " ", "..", "`q`.`r`")


@pytest.mark.parametrize("name", SPOILED_NAMES, ids=range(len(SPOILED_NAMES)))
def test_a_staging_table_is_one_whatever_it_is_called(name):
    lines = recorded_lines("staging_chain")
    odd = json.dumps(f"/lake/{name}/x")[1:-1]
    renamed = [
        line.replace("/lake/staging/enriched_orders", odd).encode() + b"\n" for line in lines
    ]
    run_id = json.loads(lines[0])["run"]["runId"]
    plain, _ = merged(run_id, [line.encode() + b"\n" for line in lines])
    lineage, report = merged(run_id, renamed)
    assert [d.name for d in lineage.inputs] == [d.name for d in plain.inputs]
    assert len(lineage.outputs) == len(plain.outputs)
    [revenue] = [d for d in lineage.outputs if d.name.name == "/lake/revenue"]
    [expected] = [d for d in plain.outputs if d.name.name == "/lake/revenue"]
    assert revenue.columns.fields.keys() == expected.columns.fields.keys()
    assert scrub(json.dumps(document(lineage, report))) == json.dumps(document(lineage, report))


SCORE = {
    "class": "x.AttributeReference",
    "num-children": 0,
    "name": "amount",
    "exprId": {"id": 1},
}
OBSERVATION = {
    "kind": "query",
    "version": 1,
    "query": 1,
    "function": "command",
    "started": 1_700_000_000_000,
    "ended": 1_700_000_001_000,
    "reads": [
        {
            "node": "FileSourceScanExec",
            "roots": ["file:/lake/orders"],
            "partition_filters": ["dt = '1'"],
            "layouts": [
                {
                    "base": "file:/lake/orders",
                    "dimensions": [{"field": "dt", "transform": "identity", "type": "string"}],
                    "partitions": [["1"], [None]],
                }
            ],
        }
    ],
    "writes": [
        {
            "node": "InsertIntoHadoopFsRelationCommand",
            "path": "file:/lake/scored_orders",
            "mode": "append",
            "how": "exact",
            "layouts": [{"base": "file:/lake/scored_orders", "dimensions": [], "partitions": [[]]}],
            "shared": [[]],
        }
    ],
    "python_udfs": [{"result": "pythonUDF0", "function": "f", "columns": ["amount"], "sql": "f"}],
    "command": {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": "file:/lake/scored_orders", "table": None},
        "columns": ["score"],
        "plan": [
            {"class": "x.Project", "num-children": 1, "projectList": [[SCORE]]},
            {"class": "x.LogicalRelation", "num-children": 0, "output": [[SCORE]]},
        ],
        "relations": [{"path": "file:/lake/orders", "table": None, "ids": [1]}],
    },
}


@settings(max_examples=20)
@given(chances, st.integers(1, 5))
def test_a_spoiled_observation_is_reported_or_read_and_never_raises(chance, count):
    record = json.loads(json.dumps(OBSERVATION))
    for _ in range(count):
        places = [p for p in paths(record) if p]
        put(record, chance.choice(places), chance.choice(HOSTILE))
    lines = recorded_lines("python_udf")
    run_id = json.loads(lines[0])["run"]["runId"]
    report = ReadReport()
    events = read_events([line.encode() + b"\n" for line in lines], report, source="events")
    application = accumulate(events, run_id)
    names = {d.name: set() for a in application.actions for d in (*a.inputs, *a.outputs)}
    observation_report = ObservationReport()
    records = list(read_observations([json.dumps(record).encode() + b"\n"], observation_report))
    assert records or observation_report.malformed
    lineage = merge(application, Outcome.COMPLETE, observations=collected(records, names))
    document(lineage, report)


def test_thousands_of_columns_without_a_schema_are_reported_once():
    lines = [json.loads(line) for line in recorded_lines("python_udf")]
    for event in lines:
        for dataset in event.get("outputs", ()):
            dataset["facets"]["schema"] = {"fields": [{"name": f"c{n}"} for n in range(3000)]}
    run_id = lines[0]["run"]["runId"]
    chance = random.Random(1)
    chance.shuffle(lines)
    lineage, report = merged(run_id, [json.dumps(line).encode() + b"\n" for line in lines])
    capture = document(lineage, report)["run"]["facets"]["sparkLineage_capture"]
    assert len(capture["degradations"]) == 100
    assert capture["degradationCounts"]["column_without_sources"] == 3000
