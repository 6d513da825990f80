"""Each partition that was observed or committed is in the event, or a degradation names it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.observed import corrections
from tests.conftest import OBSERVED
from tests.observed_partitions import lost, observed


def lost_of(bundle):
    return lost(bundle.observations_path, merged_event(bundle, task_lineage(bundle)))


@pytest.mark.parametrize(("spark", "case"), OBSERVED)
def test_no_observed_partition_is_lost(recorded, spark, case):
    assert lost_of(recorded(case, spark).bundle(is_observed=True)) == []


def test_a_file_of_an_output_that_only_the_driver_reads_is_not_lost(recorded, tmp_path):
    """The job counts the rows of one file, by its own path, before it appends to the folder."""
    bundle = recorded("append_then_read").bundle(is_observed=True)
    file = "file:/lake/reports/path/old.parquet"
    layout = {"base": file, "dimensions": [], "partitions": [[]]}
    read = {"node": "FileSourceScanExec", "roots": [file], "layouts": [layout]}
    query = {"kind": "query", "function": "count", "started": 1000, "ended": 2000, "reads": [read]}
    (tmp_path / "observed").mkdir()
    [events] = bundle.files
    (tmp_path / events.name).write_text(events.read_text())
    records = f"{json.dumps(query)}\n{bundle.observations_path.read_text()}"
    (tmp_path / "observed" / events.name).write_text(records)
    assert lost_of(replace(bundle, files=(tmp_path / events.name,))) == []


def test_the_recordings_have_partitions_to_lose(recorded):
    records = recorded("partitioned_writes").bundle(is_observed=True).observations_path.read_text()
    seen = list(observed(map(json.loads, records.splitlines())))
    assert {one.side for one in seen if one.partition} == {"read", "write"}


# --- the test can fail ----------------------------------------------------------------------------


def without_first_partition(part):
    """Spoil the accesses of a read or write: each loses a partition."""

    def spoiled(access):
        found = sorted(access.scope.partitions or ())
        scope = access.scope._replace(partitions=frozenset(found[1:]))
        return access._replace(scope=scope) if found else access

    return part._replace(accesses=tuple(map(spoiled, part.accesses)))


def of_reads(query):
    return replace(query, reads=tuple(map(without_first_partition, query.reads)))


def of_writes(query):
    return replace(query, writes=tuple(map(without_first_partition, query.writes)))


def of_reports(query):
    """Forget a write that only the observer saw."""
    is_report = any(name.name == "/lake/revenue_report" for name in query.modes)
    return replace(query, writes=(), command=None) if is_report else query


@pytest.mark.parametrize(
    ("spoiled", "case", "named"),
    [
        pytest.param(of_reads, "glob_reads", "read /lake/orders", id="a partition of a read"),
        pytest.param(
            of_writes, "partitioned_writes", "write /lake/sales_full", id="a partition of a write"
        ),
        pytest.param(of_reports, "delta_tables", "write /lake/revenue_report", id="a write"),
    ],
)
def test_a_correction_that_loses_something_is_found(recorded, monkeypatch, spoiled, case, named):
    def correction(seen):
        return seen._replace(queries=tuple(map(spoiled, seen.queries)))

    spoilt = (correction, *corrections.CORRECTIONS)
    monkeypatch.setattr(corrections, "CORRECTIONS", spoilt)
    found = lost_of(recorded(case).bundle(is_observed=True))
    assert any(one.startswith(named) for one in found), found
