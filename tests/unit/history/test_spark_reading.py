"""Texts of events become facts on Spark's executors as they do anywhere; here without Spark."""

from __future__ import annotations

import gzip
import json

import pytest

from airflow_provider_sparklineage.history.engines.spark.reading import (
    SKIPPED,
    facts_of_files,
    facts_of_lines,
    named,
)

EVENT = {
    "eventType": "COMPLETE",
    "eventTime": "2024-10-15T03:00:00Z",
    "run": {"runId": "a"},
    "job": {"namespace": "ns", "name": "dag.task"},
}
LINE = json.dumps(EVENT)
PRETTY = json.dumps([EVENT, EVENT], indent=1).encode()


def found(facts):
    """Give the run of each line of facts, or why it was skipped."""
    rows = [json.loads(line) for line in facts]
    return [row.get("run_id") or row[SKIPPED] for row in rows]


def test_each_line_is_an_event_and_what_is_none_says_why():
    rows = [("file:/x/a%20b.ndjson", line) for line in (LINE, "", "  ", "{", "{}")]
    assert found(facts_of_lines(rows, "/x")) == ["a", "no_json", "no_run_event"]
    [line, *_] = facts_of_lines(rows, "/x")
    assert json.loads(line)["source"] == "/x/a b.ndjson"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (LINE.encode(), ["a"]),
        (PRETTY, ["a", "a"]),
        (f"{LINE}\n{LINE}\n".encode(), ["a", "a"]),
        (b"", []),
        (b'{"torn', ["no_json"]),
        (None, ["too_large"]),
    ],
    ids=["one", "array", "lines", "empty", "torn", "too large"],
)
def test_a_file_holds_one_event_or_an_array_or_lines(content, expected):
    assert found(facts_of_files([("file:/x/a.json", content)], "/x")) == expected


def test_a_packed_file_that_ends_too_early_is_counted():
    packed = gzip.compress(PRETTY * 100)
    assert found(facts_of_files([("/x/a.json.gz", gzip.compress(PRETTY))], "/x")) == ["a", "a"]
    assert found(facts_of_files([("/x/a.json.gz", packed[:-9])], "/x")) == ["torn_file"]


def test_a_file_of_an_archive_says_by_its_path_which_try_it_is_of():
    place = "hdfs://lake:9000/archive/shop/manual__1/revenue/-1/2.json"
    ours = EVENT | {"run": {"runId": "a", "facets": {"sparkLineage_capture": {}}}}
    [line] = facts_of_files([(place, json.dumps(ours).encode())], "hdfs:///archive")
    facts = json.loads(line)
    assert (facts["dag_id"], facts["task_id"], facts["try_number"]) == ("shop", "revenue", 2)
    assert facts["source"] == "hdfs:///archive/shop/manual__1/revenue/-1/2.json"


@pytest.mark.parametrize(
    ("place", "source", "expected"),
    [
        ("file:/x/a", "/x", "/x/a"),
        ("file:/x/a", "file:///x", "file:///x/a"),
        ("s3a://lake/x/a", "s3a://lake/x", "s3a://lake/x/a"),
        ("hdfs://host:1/user/me/x/a", "x", "x/a"),
        ("hdfs://host:1/elsewhere", "../x", "hdfs://host:1/elsewhere"),
    ],
)
def test_a_file_is_named_as_its_source_was(place, source, expected):
    assert named(place, source) == expected
