"""Column lineage that cannot fit is left out before it is made into facets."""

import pytest

from airflow_provider_sparklineage.event import column_lineage
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.unit.event.test_size import output

LINEAGE = TaskLineage(Outcome.COMPLETE, (), (output("revenue", 30), output("costs", 10)))


@pytest.fixture(autouse=True)
def _at_any_size(monkeypatch):
    monkeypatch.setattr(column_lineage, "CHEAP", 0)


def test_lineage_that_may_fit_is_the_same_object():
    assert column_lineage.bounded(LINEAGE, 10**9, "max") is LINEAGE


def test_column_lineage_goes_the_largest_first_and_each_kind_is_named():
    less = column_lineage.bounded(LINEAGE, 4 * 1024, "max")
    assert [d.columns is None for d in less.outputs] == [True, False]
    messages = [d.message for d in less.degradations]
    assert [m.split(" of column")[0].split(" ", 1)[1] for m in messages[:2]] == [
        "descriptions",
        "INDIRECT edges",
    ]
    assert any("revenue" in m for m in messages[2:])


@pytest.mark.parametrize("max_bytes", [2 * 1024, 6 * 1024, 12 * 1024, 30 * 1024, 60 * 1024])
def test_nothing_goes_that_the_size_policy_would_keep(max_bytes, monkeypatch):
    representation = Representation(max_event_bytes=max_bytes)

    def made():
        event = event_of(LINEAGE, ReadReport(), representation)
        return [d["facets"].get("columnLineage") for d in event["outputs"]]

    foreseen_first = made()
    monkeypatch.setattr(column_lineage, "CHEAP", 10**12)
    assert foreseen_first == made()
