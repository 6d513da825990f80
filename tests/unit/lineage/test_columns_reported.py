"""The column lineage that the listener reported of a write, remembered where it comes again."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import Action, ActionState
from airflow_provider_sparklineage.lineage.columns import reported
from airflow_provider_sparklineage.lineage.columns.reported import ReportedColumns
from airflow_provider_sparklineage.model.datasets import DatasetName

START = datetime(2026, 1, 1, tzinfo=UTC)
TABLE, FOLDER = DatasetName("file", "/table"), DatasetName("file", "/lake")
MOVED = DatasetName("file", "/moved")
FILE = DatasetName("file", "/lake/part.csv")


def facet(column="a", source=FILE):
    entry = {"namespace": source.namespace, "name": source.name, "field": column}
    return json.dumps({"fields": {column: {"inputFields": [entry]}}}).encode()


def action(*inputs, moved=()):
    datasets = tuple(ActionDataset(name, {}, {}) for name in inputs)
    complete = ActionState.COMPLETE
    return Action("run", "job", "SQL_JOB", START, START, complete, datasets, (), moved=dict(moved))


def of_write(read, written, facet):
    output = ActionDataset(TABLE, {"columnLineage": msgspec.Raw(facet)}, {})
    return read.of_write(written, output)


def sources(lineage):
    return {column.dataset for edges in lineage.fields.values() for column in edges}


@pytest.fixture
def decoded(monkeypatch):
    """Give the facets that are decoded."""
    found = []
    decode = reported.decode

    def noted(facet, *others):
        found.append(facet)
        return decode(facet, *others)

    monkeypatch.setattr(reported, "decode", noted)
    return found


def test_what_is_written_again_and_again_is_decoded_once(decoded):
    read = ReportedColumns()
    every = [of_write(read, action(FOLDER), facet()) for _ in range(3)]
    assert decoded == [facet()]
    assert every == [reported.decode(facet(), lambda _: FOLDER)] * 3


def test_the_names_in_a_facet_stand_for_the_datasets_of_each_action():
    read = ReportedColumns()
    renamed = action(moved={FILE: MOVED}.items())
    actions = [action(FOLDER), action(FILE), action(), renamed, action(FOLDER)]
    found = [sources(of_write(read, written, facet())) for written in actions]
    assert found == [{FOLDER}, {FILE}, {FILE}, {MOVED}, {FOLDER}]


@pytest.mark.parametrize("room", [0, len(facet()), 2 * len(facet())])
def test_no_more_is_remembered_than_there_is_room_for(monkeypatch, decoded, room):
    monkeypatch.setattr(reported, "MAX_REMEMBERED_BYTES", room)
    read = ReportedColumns()
    for column in "abcab":
        lineage = of_write(read, action(), facet(column))
        assert list(lineage.fields) == [column]
        remembered = sum(map(len, read._decoded))
        assert remembered <= room
    assert len(decoded) == 5


def test_a_facet_that_cannot_be_read_is_none_the_next_time_either():
    read = ReportedColumns()
    for _ in range(2):
        with pytest.raises(reported.UnreadableColumnsError):
            of_write(read, action(), b'{"fields": 1}')
