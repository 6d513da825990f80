"""SparkLineageFreshnessCheck in a DAG: what runs after it runs if its inputs are up to date."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from tests.conftest import long_after

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

RECORDED = Path(__file__).parents[1] / "golden" / "history"
FRESH, STALE = (datetime(2013, 1, day, tzinfo=UTC) for day in (16, 15))


@pytest.fixture
def gauges(monkeypatch):
    """Collect Airflow's metrics, which go to a server otherwise."""
    from airflow.providers.common.compat.sdk import Stats

    found = {}

    def gauge(name, value, *_, tags=None, **__):
        found[name, (tags or {}).get("dataset")] = value

    monkeypatch.setattr(Stats, "gauge", gauge, raising=False)
    return found


@pytest.fixture
def states(run_dag, tmp_path):
    """Run a check and what comes after it, for a day; give the states of both."""
    folder = str(tmp_path / "history")
    sources = [str(RECORDED / f"flights_{name}.ndjson.gz") for name in ("month", "rewritten")]
    assert cli.main(["history", "build", *sources, "--store", folder]) == 0

    def states(day, on_finding):
        from airflow.sdk import DAG, task

        from airflow_provider_sparklineage.operators.freshness_check import (
            SparkLineageFreshnessCheck,
        )

        name = f"freshness_{on_finding}_{day:%d}"
        start = datetime(2013, 1, 1, tzinfo=UTC)
        with DAG(name, schedule="@daily", start_date=start, catchup=False) as dag:

            @task
            def report():
                return "made"

            check = SparkLineageFreshnessCheck(
                task_id="check",
                dataset="{{ 'daily' }}_delays",
                partitions=["flight_date={{ ds }}"],
                store=folder,
                on_finding=on_finding,
            )
            check >> report()
        run = run_dag(dag, day)
        return {one.task_id: one.state for one in run.get_task_instances()}

    return states


@pytest.mark.parametrize("on_finding", long_after(0, ["fail", "skip"]))
def test_what_follows_runs_if_the_partition_of_the_day_is_up_to_date(states, gauges, on_finding):
    assert states(FRESH, on_finding) == {"check": "success", "report": "success"}
    dataset = "file:/flights/lake/daily_delays"
    assert (
        gauges.items()
        >= {
            ("sparklineage.stale_partitions", dataset): 1,
            ("sparklineage.gaps", dataset): 0,
        }.items()
    )


@pytest.mark.parametrize(
    ("on_finding", "expected"),
    [
        ("fail", {"check": "failed", "report": "upstream_failed"}),
        ("skip", {"check": "skipped", "report": "skipped"}),
    ],
)
def test_what_follows_a_stale_partition_does_not_run(states, on_finding, expected, events_of):
    assert states(STALE, on_finding) == expected
    *_, sent = events_of(f"freshness_{on_finding}_15.check", 2)
    [read] = sent["inputs"]
    [found] = read["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (found["assertion"], found["success"]) == ("has up-to-date partitions", False)
    [tested] = sent["run"]["facets"]["test"]["tests"]
    assert tested["status"] == "fail"
