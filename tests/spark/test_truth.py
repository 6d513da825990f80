"""What the event of five queries reports is true; ``make truth`` asks all 22 on all formats."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="it is in the environment for development only")

from tests.spark import submissions
from tests.truth import opened
from tests.truth.job import FORMATS
from tests.truth.jobs import load as load_jobs
from tests.truth.queries import load
from tests.truth.running import Options, run
from tests.truth.running_jobs import run_jobs
from tests.truth.verdict import verdict

pytestmark = [pytest.mark.spark, pytest.mark.long]

# Dynamic pruning, blanks and escaped values, anti joins, two levels, a scalar subquery.
QUERIES = ("q05", "q07", "q12", "q16", "q22")


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    """Run the queries once; give what is right of their event, and what is wrong."""
    queries = load(QUERIES)
    options = Options(scale=0.005, trace=opened.why_not() is None)
    ran = run(spark, "parquet", queries, tmp_path_factory.mktemp("truth") / "parquet", options)
    return verdict(ran, queries)


def test_nothing_that_is_reported_is_wrong(found):
    assert found.wrong == []


def test_all_is_compared(found):
    assert found.right == found.asked == {"inputs": 18, "partition sets": 22, "columns": 16}


PARTS = 3
"""The jobs of a format are that many tests: all in one take too near to a test's time limit."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", FORMATS)
def test_of_each_job_all_is_right_or_declared(kind, part, spark, tmp_path):
    submissions.require(spark, None if kind == "parquet" else kind)
    jobs = dict([*load_jobs().items()][part::PARTS])
    assert run_jobs(spark, kind, jobs, tmp_path / "jobs").wrong == []
