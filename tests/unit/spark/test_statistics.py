"""Queries that Spark answers without a scan; the driver's JVM is doubled."""

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.unit.spark.test_write_commands import SCHEMA, Leaf, Plan, answers, json_of


@pytest.fixture
def reads_without_scan(monkeypatch):
    """Give the observer's function as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer.relations import reads_without_scan

    return reads_without_scan


def query(*leaves):
    for leaf in leaves:
        leaf.schema = answers(schema=answers(json=json_of(SCHEMA))).schema
    return answers(analyzed=Plan(leaves=leaves))


def parts(*sizes, scans=()):
    rows = [answers(rows=answers(size=size)) for size in sizes]
    return SimpleNamespace(scans=scans, rows=rows)


def test_a_table_that_is_answered_for_by_its_statistics_was_read(reads_without_scan):
    [read] = reads_without_scan(parts(1), query(Leaf("file:/lake/in")))
    assert (read["roots"], read["schema"]) == (["file:/lake/in"], SCHEMA)
    assert "layouts" not in read
    assert "statistics" in read["cut"]


@pytest.mark.parametrize(
    ("found", "leaf"),
    [
        pytest.param(parts(), Leaf("file:/lake/in"), id="no rows in the plan"),
        pytest.param(parts(0), Leaf("file:/lake/in"), id="nothing is left of the query"),
        pytest.param(parts(1, scans=["a scan"]), Leaf("file:/lake/in"), id="a scan next to it"),
        pytest.param(parts(1), Leaf(text="LocalRelation [a#1]"), id="rows of the job itself"),
    ],
)
def test_other_queries_read_nothing_without_a_scan(reads_without_scan, found, leaf):
    assert reads_without_scan(found, query(leaf)) == []
