"""A query that Spark plans for seconds, while another thread writes: each has its partitions."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import accumulate
from operator import itemgetter
from statistics import median

import pytest

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from airflow_provider_sparklineage.spark.capture.events import read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def work(spark, orders_lake, tmp_path_factory):
    """Run the application once, listened to and observed."""
    work = tmp_path_factory.mktemp("planned")
    submissions.submit_on(orders_lake, spark, "planned_meanwhile.py", work)
    return work


def events_of(work):
    lines = (work / EVENTS).read_bytes().splitlines(keepends=True)
    return [*read_events(lines, ReadReport(), source=EVENTS)]


def lineage_of(work, *, is_observed=True):
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    manifest = Manifest(first["run"]["runId"], injected=("py_files",), outcome="COMPLETE")
    if not is_observed:
        shutil.copytree(work, work / "unobserved", ignore=shutil.ignore_patterns("obs*", "lake"))
        work = work / "unobserved"
    return task_lineage(CaptureBundle(work, manifest))


def partitions(datasets):
    return {
        d.name.name.rpartition("/lake/")[2]: d.subset and {*map(str, d.subset.partitions)}
        for d in datasets
    }


def test_a_start_stands_after_a_later_end(work, spark):
    """As it does since Spark 4; else the rest proves nothing."""
    events = events_of(work)
    times = [event.event_time for event in events]
    early = [
        latest - event.event_time
        for event, latest in zip(events, accumulate(times, max), strict=True)
        if event.event_type == "START"
    ]
    assert (max(early) > timedelta(seconds=1)) == (spark.line >= "4.0")


def test_each_read_and_write_has_its_partitions(work):
    lineage = lineage_of(work)
    assert partitions(lineage.inputs) == {
        "orders": {"dt=2024-05-06"},
        "sales_session": {"dt=2024-05-04"},
    }
    assert partitions(lineage.outputs) == {
        "planned": None,
        "small": {f"day={n}" for n in range(10)},
    }


def test_each_query_takes_as_long_as_its_action(work, spark):
    """As it does since Spark 4; before, the action's start is reported when it is planned.

    A listener that lags does not report the start.
    """
    spans: dict[str, dict[str, datetime]] = defaultdict(dict)
    for event in events_of(work):
        if event.job_type == "SQL_JOB":
            spans[event.run.run_id][event.event_type] = event.event_time
    lines = (work / OBSERVATIONS).read_text().splitlines()
    queries = [record for record in map(json.loads, lines) if "duration" in record]
    queries.sort(key=itemgetter("ended"))
    actions = sorted(spans.values(), key=itemgetter("COMPLETE"))
    took, longer = [], []
    for query, action in zip(queries, actions, strict=True):
        if "START" in action:
            took.append(timedelta(milliseconds=query["duration"]))
            longer.append(took[-1] - (action["COMPLETE"] - action["START"]))
    assert len(longer) > len(actions) / 2
    if spark.line >= "4.0":
        # The clock of the durations may differ from that of the times by 1 ms in a second, and one
        # of them may be corrected in between by some ms at once.
        off = [abs(one) - of / 1000 for one, of in zip(longer, took, strict=True)]
        assert median(off) <= timedelta(milliseconds=1)
        assert max(off) <= timedelta(milliseconds=5)
    else:
        assert min(longer) >= timedelta()


@pytest.mark.parametrize("is_observed", [True, False])
def test_no_clock_seems_to_be_put_back(work, is_observed):
    codes = {d.code for d in lineage_of(work, is_observed=is_observed).degradations}
    assert "clock_went_backwards" not in codes
