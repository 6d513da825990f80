"""What commands refuse to read of an event, instead of failing in the middle of it."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event.model import Event, read_document
from airflow_provider_sparklineage.event.stored import last_run, readable
from airflow_provider_sparklineage.model.exceptions import DocumentError

COLUMN = {"inputFields": [], "transformationType": "DIRECT:IDENTITY"}


def event_of(column):
    lineage = {"fields": {"total": column}}
    dataset = {"namespace": "file", "name": "/lake/orders", "facets": {"columnLineage": lineage}}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-05-06T00:00:00Z",
        "job": {"namespace": "tests", "name": "shop.report"},
        "run": {"facets": {"sparkLineage_capture": {}}},
        "inputs": [],
        "outputs": [dataset],
    }


def test_what_commands_read_of_a_column_may_be_absent_or_null():
    for column in (COLUMN, {}, dict.fromkeys(COLUMN)):
        assert readable(event_of(column))


@pytest.mark.parametrize("key", COLUMN)
@pytest.mark.parametrize("wrong", [1, 0.5, True, {"type": "DIRECT"}, ["DIRECT", 1]], ids=str)
def test_what_commands_read_of_a_column_is_of_its_type(key, wrong):
    with pytest.raises(DocumentError, match=key):
        readable(event_of({**COLUMN, key: wrong}))


@pytest.mark.parametrize("wrong", [1, 0.5, True, {"type": "DIRECT"}, ["DIRECT", 1]], ids=str)
def test_who_reads_part_by_part_has_all_other_parts(wrong):
    [output] = read_document(event_of({**COLUMN, "transformationType": wrong})).outputs
    assert output.name == "/lake/orders"
    assert output.column_lineage.fields["total"].inputFields == []
    assert output.column_lineage.fields["total"].transformationType is None


def test_an_event_that_is_nested_too_deeply_is_refused():
    deep = {}
    for _ in range(300):
        deep = {"deep": deep}
    with pytest.raises(DocumentError, match="too deeply"):
        readable(event_of(deep))


def test_an_event_that_nobody_has_refused_is_empty_where_it_is_nested_too_deeply():
    deep = {}
    for _ in range(100_000):
        deep = {"deep": deep}
    assert read_document(event_of(deep)) == Event()
    assert not last_run(event_of(deep)).has_datasets


@pytest.mark.parametrize("facets", [None, [], "x", {"schema": 7}], ids=str)
def test_the_last_run_is_known_whatever_the_facets_of_its_datasets_are(facets):
    event = event_of(COLUMN)
    event["outputs"][0]["facets"] = facets
    event["inputs"] = [{"name": "/lake/raw"}]
    assert [one.name for one in last_run(event).outputs] == ["/lake/orders"]
    assert last_run(event).inputs == ()
