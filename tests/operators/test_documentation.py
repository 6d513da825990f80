"""The job's text in the backend: what its run did, then the user's own."""

from __future__ import annotations

import pytest
from airflow.providers.openlineage.utils.utils import get_task_documentation
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.operators.attempt.other_runs import EarlierLineage
from airflow_provider_sparklineage.operators.attempt.prepare import Prepared, operator_lineage
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.resolution import resolve

pytestmark = pytest.mark.airflow


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


@pytest.fixture
def executed(spark_submit, execute):
    def run(task):
        spark_submit.does("staging_chain")
        execute(task)
        return get_task_documentation(task)[0]

    return run


@pytest.mark.parametrize(
    ("kwargs", "own"),
    [
        ({"doc": "Revenue by day."}, "Revenue by day."),
        ({"doc_md": "# Revenue"}, "# Revenue"),
        ({"doc": "Revenue by day.", "doc_md": "# Revenue"}, "Revenue by day."),
    ],
    ids=["doc", "doc_md", "both"],
)
def test_what_the_run_did_comes_before_the_tasks_text(executed, kwargs, own):
    task = operator(**kwargs)
    assert get_task_documentation(task)[0] == own
    first, line, rest = executed(task).split("\n\n")
    assert first == Descriptions(task.lineage_try.collected).of_run()
    assert (line, rest) == ("—", own)


@pytest.mark.parametrize(
    ("kwargs", "own"),
    [
        ({"doc_md": "# The DAG", "description": "short"}, "# The DAG"),
        ({"description": "short"}, "short"),
        ({}, None),
    ],
    ids=["its page", "its description", "none"],
)
def test_of_a_task_without_a_text_it_comes_before_the_dags(executed, kwargs, own):
    with DAG("shop", schedule=None, **kwargs):
        task = operator()
    assert get_task_documentation(task) == (None, None)
    first, *rest = executed(task).split("\n\n—\n\n")
    assert ": wrote " in first
    assert rest == ([own] if own else [])


LOG = "https://airflow.example/team/dags/shop/runs/manual/tasks/revenue"


def test_texts_lead_to_airflow_where_its_url_is_set(executed, context, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/team/")
    context["ti"].log_url = f"{LOG}?try_number=1"
    task = operator(doc="Revenue by day.")
    run, link, *rest = executed(task).split("\n\n")
    assert run == Descriptions(task.lineage_try.collected).of_run()
    assert link == f"— Lineage: {LOG}/plugin/spark-lineage?try_number=1"
    assert rest == ["—", "Revenue by day."]
    page = "https://airflow.example/team/plugin/spark-lineage-history"
    for output in task.get_openlineage_facets_on_complete(None).outputs:
        _, link = output.facets["documentation"].description.split("\n\n")
        assert link.startswith(f"— Lineage: {page}?namespace={output.namespace}&name={output.name}")


def test_texts_lead_nowhere_where_airflow_only_guesses_its_url(executed, context):
    context["ti"].log_url = "http://localhost:8080/dags/shop/runs/manual/tasks/revenue"
    task = operator(doc="Revenue by day.")
    run, *rest = executed(task).split("\n\n")
    assert run == Descriptions(task.lineage_try.collected).of_run()
    assert rest == ["—", "Revenue by day."]
    for output in task.get_openlineage_facets_on_complete(None).outputs:
        assert "http" not in output.facets["documentation"].description


@pytest.mark.parametrize(
    ("option", "value"), [("BACKEND", "generic"), ("DESCRIBE_DATASETS", "False")]
)
def test_where_no_backend_shows_it_the_text_is_the_users(executed, monkeypatch, option, value):
    monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option}", value)
    assert executed(operator(doc="Revenue by day.")) == "Revenue by day."


def test_what_cannot_be_described_leaves_the_users_text(executed, monkeypatch):
    def fails(_self):
        raise RuntimeError

    monkeypatch.setattr(Descriptions, "of_run", fails)
    assert executed(operator(doc="Revenue by day.")) == "Revenue by day."


def test_it_does_not_pile_up_when_the_task_runs_again(executed):
    task = operator(doc="Revenue by day.")
    assert executed(task).count("—") == 1
    assert executed(task).count("—") == 1


def test_the_dag_file_has_the_users_text_alone():
    with DAG("shop", schedule=None) as dag:
        operator(doc="Revenue by day.")
    [task] = DagSerialization.to_dict(dag)["dag"]["tasks"]
    assert task["__var"]["doc"] == "Revenue by day."


def test_a_damaged_event_of_the_last_run_takes_no_description_from_this_one(executed):
    task = operator()
    executed(task)
    made = task.lineage_try.events
    event = made.kept
    damaged = {**event, "outputs": [{**d, "facets": None} for d in event["outputs"]]}
    prepared = Prepared(resolve(), sent=EarlierLineage(event=damaged))
    sent = operator_lineage(made, resolve().adaptation, prepared)
    assert all("documentation" in dataset.facets for dataset in sent.outputs)
