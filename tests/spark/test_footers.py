"""The rows of files by their footers, in a real driver."""

from __future__ import annotations

import json

import pytest

from tests import record_events
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_rows_are_those_of_each_file_and_only_a_damaged_one_has_none(spark, tmp_path):
    application = record_events.APPLICATIONS / "counted_files.py"
    submissions.submit(spark, application, tmp_path)
    counted = json.loads((tmp_path / "counted.json").read_text())
    assert counted.keys() == {"parquet", "orc"}
    for found in counted.values():
        assert found["whole"] == found["true"]
        assert sum(found["true"].values()) == 1000
        assert len(set(found["true"].values())) > 1
        assert found["left"] == found["true"] | {found["damaged"]: None}
        assert {*found["over"].values(), *found["late"].values()} == {None}
