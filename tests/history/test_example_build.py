"""The example that builds the history on Spark, run twice: what it did is in what it builds."""

from __future__ import annotations

import gzip
import importlib
import json
from datetime import UTC, datetime
from importlib.util import find_spec

import pytest

from airflow_provider_sparklineage import cli
from tests.conftest import GOLDEN
from tests.dag_runs.conftest import airflow_db, run_dag, spark_on_path, stacks

pytestmark = [
    pytest.mark.long,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.skipif(
        not all(map(find_spec, ("duckdb", "pyspark"))), reason="it takes DuckDB and a Spark"
    ),
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

__all__ = ["airflow_db", "run_dag", "spark_on_path", "stacks"]  # fixtures of the DAG runs as well

TABLES = (
    *("accesses", "bindings", "bindings_by_run", "changes", "changes_by_run", "columns"),
    *("facts", "runs"),
)
JOB = "example_build_history.build_history"


@pytest.fixture
def lineage(tmp_path, monkeypatch):
    """Configure an archive, which has the recorded month; give the folder that it is in."""
    folder = tmp_path / "lineage"
    (folder / "archive").mkdir(parents=True)
    month = gzip.decompress((GOLDEN / "history" / "flights_month.ndjson.gz").read_bytes())
    (folder / "archive" / "month.ndjson").write_bytes(month)
    archive = (folder / "archive").as_uri()
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", archive)
    return folder


@pytest.fixture
def build(lineage, spark_on_path, run_dag):
    from airflow_provider_sparklineage.spark.submit import listener_selection

    listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")
    example = importlib.import_module("dags_examples.example_build_history")
    return lambda day: run_dag(example.dag, datetime(2013, 1, day, tzinfo=UTC)).state


@pytest.fixture
def ask(lineage, capsys):
    def ask(*argv):
        capsys.readouterr()
        assert cli.main([*argv, "--store", str(lineage / "history"), "--json"]) == 0
        return list(map(json.loads, capsys.readouterr().out.splitlines()))

    return ask


def test_what_the_first_build_did_is_in_the_tables_of_the_second(build, lineage, ask):
    assert (build(8), build(9)) == ("success", "success")

    datasets = {
        row["dataset"]["name"].removeprefix(f"{lineage}/"): (row["written_by"], row["read_by"])
        for row in ask("history", "show")
        if row["dataset"]["name"].startswith(str(lineage))
    }
    assert datasets == {"archive": (0, 1), **{f"history/{name}": (1, 0) for name in TABLES}}

    first, *before = ask("trace", "history/accesses")
    assert first["run"]["job"] == JOB
    assert [hop["dataset"]["name"] for hop in before] == [f"{lineage}/archive"]
