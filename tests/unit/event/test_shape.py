"""What commands refuse to read of an event, instead of failing in the middle of it."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event.model import readable
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
