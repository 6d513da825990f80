"""The example DAGs load, and keep to the conventions that a reader may rely on."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

pytestmark = [
    pytest.mark.airflow,
    # Airflow's reading of .airflowignore uses what its own dependency has deprecated.
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
]

EXAMPLES = Path(__file__).parents[2] / "dags_examples"


@pytest.fixture(scope="module")
def dag_bag():
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=EXAMPLES)


def test_every_example_loads(dag_bag):
    assert dag_bag.import_errors == {}
    files = {path.stem for path in EXAMPLES.glob("example_*.py")}
    assert set(dag_bag.dags) == files
    assert files


def test_every_example_loads_where_executors_are_on_other_machines(monkeypatch):
    """There is no archive then, unless one is configured."""
    from airflow.dag_processing.dagbag import DagBag

    from airflow_provider_sparklineage.hooks import sources

    monkeypatch.setattr(sources, "remote_executors", lambda: ("CeleryExecutor",))
    assert sources.archive_url() == ""
    assert DagBag(dag_folder=EXAMPLES).import_errors == {}


def test_examples_are_tagged_as_such_and_start_at_a_fixed_date(dag_bag):
    for dag in dag_bag.dags.values():
        assert dag.tags == {"example"}
        assert dag.start_date is not None
        assert dag.doc_md


def test_the_example_of_adoption_is_the_other_one_with_stock_operators(dag_bag):
    stock = dag_bag.dags["example_adopt_operators"]
    ours = dag_bag.dags["example_report_flight_delays"]
    assert "airflow_provider_sparklineage" not in Path(stock.fileloc).read_text()
    assert [task.task_type for task in stock.tasks] == ["SparkSubmitOperator"] * 3
    for task in stock.tasks:
        other = ours.get_task(task.task_id)
        assert task.downstream_task_ids == other.downstream_task_ids
        for field in SparkSubmitOperator.template_fields:
            assert getattr(task, field) == getattr(other, field), (task.task_id, field)


def test_no_job_of_an_example_knows_of_lineage_or_airflow():
    jobs = list((EXAMPLES / "spark_jobs").glob("*.py"))
    assert jobs
    for job in jobs:
        text = job.read_text().lower()
        assert "lineage" not in text
        # Where it is copied to there is no .airflowignore: by this word Airflow finds DAGs.
        assert "airflow" not in text


def test_what_marquez_shows_of_the_names_of_tables_differs(dag_bag):
    [lake] = {dag.params["lake"] for dag in dag_bag.dags.values() if "lake" in dag.params}
    raw = ["raw/flights.csv", "raw/planes.csv", "raw/weather.csv"]
    tables = ["flights", "planes", "weather", "staging/flights_with_weather"]
    reports = ["carrier_delays", "daily_delays", "weekly_report"]
    # Its graph cuts a dataset's name after fifteen characters.
    labels = {f"{lake}/{name}"[:15] for name in (*raw, *tables, *reports)}
    assert len(labels) == len([*raw, *tables, *reports])
