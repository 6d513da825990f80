"""The line of facts of an event: its keys, its run, and that one event has one id."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.history import tables
from airflow_provider_sparklineage.history.facts import Reason, facts_of
from airflow_provider_sparklineage.history.facts.line import Access, Edge, Facts
from tests.unit.history.facts.events import dataset, event, facts, ours, part


@pytest.mark.parametrize(
    ("struct", "table", "more"),
    [
        (Facts, tables.FACTS, {"event_id", "source", "columns"}),
        (Access, tables.ACCESS, set()),
        (Edge, tables.EDGE, set()),
    ],
    ids=["facts", "access", "edge"],
)
def test_a_line_has_the_columns_of_the_tables(struct, table, more):
    assert {*struct.__struct_fields__} | more == {column.name for column in table.columns}


def test_an_event_is_a_line_with_its_run_and_its_source():
    line = facts(event(), "s3://lineage/events.ndjson")
    assert line["run_id"] == "01890a5d-ac96-774b-bcce-b302099a8057"
    assert (line["namespace"], line["job"]) == ("tests", "shop.report")
    assert (line["event_type"], line["event_time"]) == ("COMPLETE", "2024-10-15T03:00:00.000000")
    assert line["source"] == "s3://lineage/events.ndjson"


def test_one_event_in_two_files_has_one_id_and_another_event_has_another():
    first, again = facts(event(), "a"), facts(event(), "b")
    other = facts(event(eventTime="2024-10-15T03:00:01Z"), "a")
    assert first["event_id"] == again["event_id"] != other["event_id"]


def test_a_line_is_one_line():
    found = facts_of(json.dumps(event(inputs=[dataset("a\nb")]), indent=1), "a\nb")
    assert found.text.count(b"\n") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"run": {"runId": "1"', Reason.NO_JSON),
        (b"\xff\xfe\x00", Reason.NO_JSON),
        (b"", Reason.NO_JSON),
        (b"[" * 100_000, Reason.NO_JSON),
        (b"null", Reason.NO_RUN_EVENT),
        (b"[1]", Reason.NO_RUN_EVENT),
        (b"{}", Reason.NO_RUN_EVENT),
        (json.dumps(event(eventTime="soon")).encode(), Reason.NO_RUN_EVENT),
        (json.dumps(event(run={"facets": {}})).encode(), Reason.NO_RUN_EVENT),
        (json.dumps(event(job=None)).encode(), Reason.NO_RUN_EVENT),
    ],
    ids=[
        "torn", "no text", "empty", "deep", "null", "list", "object", "no time", "no run", "no job"
    ],
)  # fmt: skip
def test_what_is_no_run_event_is_skipped_with_a_reason(text, reason):
    assert facts_of(text, "") == reason


def test_partitions_are_named_as_folders_and_joined_by_their_cells():
    read = dataset(inputFacets=part({"region": "eu", "dt": "2024-10-15"}))
    (access,) = facts(ours(reads=[(read, {"witness": "both", "accessed": "part"})]))["accesses"]
    assert access["partition"] == "region=eu/dt=2024-10-15"
    assert (access["cell"], access["dims"]) == ("dt=2024-10-15/region=eu", "dt,region")
    assert (access["extent"], access["evidence"]) == ("partition", "both")
