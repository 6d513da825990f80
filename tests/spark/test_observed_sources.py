"""Sources that need no connector: Hive tables, V2 file scans, streams; and the limits."""

from __future__ import annotations

import pytest

from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import Lake, distinct, planned_cases

pytestmark = [pytest.mark.spark, pytest.mark.long]

# Twice of what all cases need, and half of what the queries after them would.
BYTES = 120_000


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Run all cases in one application."""
    work = tmp_path_factory.mktemp("sources")
    conf = {
        "spark.sql.catalogImplementation": "hive",  # its Derby is made in the scratch folder
        "spark.sparklineage.limits": f"total_bytes={BYTES}",
    }
    application = record_events.APPLICATIONS / "observed_sources.py"
    submissions.submit(spark, application, work, conf=conf)
    return Lake(work, work / "lake")


@pytest.mark.parametrize("name", planned_cases("observed_sources.py"))
def test_what_is_read_is_what_was_planted(lake, name):
    case = lake.cases[name]
    expected = {folder: distinct(partitions) for folder, partitions in case["reads"].items()}
    assert lake.reads(case) == expected


@pytest.mark.parametrize("name", planned_cases("observed_sources.py"))
def test_what_is_written_is_what_the_lake_got(lake, name):
    case = lake.cases[name]
    truth = {folder: distinct(found["written"]) for folder, found in case["writes"].items()}
    assert lake.written(case) == truth


def test_the_mode_of_a_write_is_the_commands(lake):
    for case in lake.cases.values():
        for folder, mode in case.get("modes", {}).items():
            assert {w["mode"] for f, w in lake.writes(case) if f == folder} == {mode}, case["name"]


def test_every_write_is_known_exactly(lake):
    how = {write["how"] for case in lake.cases.values() for _, write in lake.writes(case)}
    assert how == {"exact"}


def test_hive_tables_are_read_by_hive(lake):
    """Or the cases would show what Spark's own sources do."""
    nodes = {
        name: {read["node"] for record in lake.during(case) for read in record["reads"]}
        for name, case in lake.cases.items()
    }
    assert nodes["hive_text_filtered"] == {"HiveTableScanExec"}
    assert nodes["hive_parquet_filtered"] == {"FileSourceScanExec"}
    assert nodes["v2_filtered"] == {"BatchScanExec"}


def test_beyond_its_size_the_file_reports_it_and_ends(lake):
    assert lake.records[-1] == {"kind": "cut", "cut": [f"observations exceed {BYTES} bytes"]}
    assert len([r for r in lake.records if r.get("kind") == "cut"]) == 1
    assert lake.size <= BYTES + 100
