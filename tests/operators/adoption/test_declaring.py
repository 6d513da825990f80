"""Declarations in a file, of tasks that are adopted: as if their operator had the arguments."""

from __future__ import annotations

import pendulum
import pytest
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import DAG, TaskGroup
from airflow.sdk.execution_time.context import MacrosAccessor

from airflow_provider_sparklineage.cli import explanation
from airflow_provider_sparklineage.expectations import DatasetSubset, PartitionRange
from airflow_provider_sparklineage.model.rules import NO_RULES
from airflow_provider_sparklineage.operators import lineage_mixin
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.observed_writes import written

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DECLARED = """\
- dag_id: shop
  task_id: ["etl.*", revenue]
  reads:
    - /lake/rates/month={{ ds[:7] }}
    - dataset: /lake/orders
      partitions:
        dt: {start: "{{ macros.ds_add(ds, -1) }}", end: "{{ macros.ds_add(ds, 1) }}"}
  writes: {dataset: /lake/revenue, partitions: {dt: "{{ ds }}"}, where: "day = '{{ ds }}'"}
  on_partition_mismatch: ignore
"""
ARGUMENTS = {
    "reads": [
        "/lake/rates/month={{ ds[:7] }}",
        DatasetSubset(
            "/lake/orders",
            {
                "dt": PartitionRange(
                    "dt", "{{ macros.ds_add(ds, -1) }}", "{{ macros.ds_add(ds, 1) }}"
                )
            },
        ),
    ],
    "writes": [DatasetSubset("/lake/revenue", {"dt": "{{ ds }}"}, "day = '{{ ds }}'")],
    "on_partition_mismatch": "ignore",
}


@pytest.fixture
def declared(tmp_path, monkeypatch):
    def write(text):
        path = tmp_path / "declarations.yaml"
        path.write_text(text)
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DECLARATIONS", str(path))
        return path

    return write


def adopted(task_id="revenue", cls=SparkSubmitOperator, **arguments):
    with DAG("shop", schedule=None):
        task = cls(task_id=task_id, application="job.py", **arguments)
    adopting.adopt(task)
    return task


def mapped(values, task_id="revenue"):
    with DAG("shop", schedule=None):
        task = SparkSubmitOperator.partial(task_id=task_id, application="job.py").expand(
            application_args=values
        )
    adopting.adopt(task)
    return task


@pytest.fixture
def rendered(context):
    """Render a task for a day, as the task runner does."""

    def render(task, **more):
        of_run = {
            **context,
            "ds": "2024-05-06",
            "logical_date": pendulum.datetime(2024, 5, 6),
            "macros": MacrosAccessor(),
            "params": {},
            "dag": task.dag,
            "task": task,
        } | more
        task.render_template_fields(of_run)
        return of_run["task"]  # of a mapped one, the instance

    return render


@pytest.fixture
def run(spark_submit, execute, context, rendered):
    def run(task, day="2024-05-06", **more):
        spark_submit.does("staging_chain", observations=written(day))
        task = rendered(task.prepare_for_execution(), **more)
        task.start = task.get_openlineage_facets_on_start()
        execute(task, {**context, "task": task})
        task.complete = task.get_openlineage_facets_on_complete(None)
        return task

    return run


def check(lineage):
    """Give what the event has of expected and observed partitions."""
    return lineage.run_facets["sparkLineage_partitionCheck"]


def problems(lineage):
    degradations = lineage.run_facets["sparkLineage_capture"].degradations
    return [d["message"] for d in degradations if d["code"] == "declaration_unusable"]


def names(lineage):
    return [sorted(d.name for d in side) for side in (lineage.inputs, lineage.outputs)]


def test_the_events_are_those_of_an_operator_that_has_the_arguments(declared, run):
    declared(DECLARED)
    theirs = run(adopted())
    with DAG("shop", schedule=None):
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **ARGUMENTS)
    ours = run(task)
    assert (
        names(theirs.start)
        == names(ours.start)
        == [["/lake/orders", "/lake/rates"], ["/lake/revenue"]]
    )
    assert check(theirs.complete) == check(ours.complete)
    assert "{{ ds }}" in str(check(theirs.complete).writes)
    assert problems(theirs.complete) == []


def test_a_mapped_task_has_them_in_each_of_its_instances(declared, run, context):
    declared(DECLARED)
    ti = context["ti"]
    ti = type(ti)(**{**vars(ti), "map_index": 1, "is_mapped": lambda: True})
    task = run(mapped([["a"], ["b"]]), ti=ti)
    assert task.application_args == ["b"]
    assert task.writes == [
        DatasetSubset("/lake/revenue", {"dt": "2024-05-06"}, "day = '2024-05-06'")
    ]
    assert "2024-05-06" in str(check(task.complete).writes)


def test_a_task_is_called_with_the_group_that_it_is_in(declared, rendered):
    declared(DECLARED)
    with DAG("shop", schedule=None), TaskGroup("etl"):
        load = SparkSubmitOperator(task_id="load", application="job.py")
    adopting.adopt(load)
    assert rendered(load).on_partition_mismatch == "ignore"


def test_a_task_whose_driver_is_its_own_process_has_them_too(declared, rendered):
    declared(DECLARED)
    with DAG("shop", schedule=None):
        revenue = PySparkOperator(task_id="revenue", python_callable=lambda: None)
    adopting.adopt(revenue)
    task = rendered(revenue)
    assert task.reads[0] == "/lake/rates/month=2024-05"
    assert "writes[0].partitions[dt]" in {text.field for text in task.lineage_try.rendered.texts}


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(lambda: adopted("other"), id="of another name"),
        pytest.param(
            lambda: SparkLineageSubmitOperator(
                task_id="revenue", application="job.py", dag=DAG("shop", schedule=None)
            ),
            id="of an operator that has arguments",
        ),
    ],
)
def test_other_tasks_have_nothing_declared(declared, rendered, task):
    declared(DECLARED)
    task = rendered(task())
    assert (task.reads, task.writes, task.on_partition_mismatch) == (None, None, "warn")


def test_a_policy_that_is_declared_fails_the_task(declared, run):
    declared(
        "- dag_id: shop\n  on_partition_mismatch: fail\n"
        "  writes: {dataset: /lake/revenue, partitions: {dt: '{{ ds }}'}}\n"
    )
    run(adopted())
    with pytest.raises(AirflowFailException, match="2024-05-07"):
        run(adopted(), "2024-05-07")


@pytest.mark.parametrize("policy", lineage_mixin.MISMATCH_POLICIES)
def test_each_policy_of_the_operator_can_be_declared(declared, rendered, policy):
    declared(f"- dag_id: shop\n  on_partition_mismatch: {policy}\n")
    assert rendered(adopted()).on_partition_mismatch == policy


def test_a_file_that_cannot_be_used_is_in_the_event_and_harms_nothing(declared, run, caplog):
    path = declared("- dag_id: shop\n  read: /lake/orders\n")
    task = run(adopted())
    (problem,) = problems(task.complete)
    assert problem == (
        f"Declarations, {path}, line 2, rule 1, key read: the key 'read' is not known. "
        "Did you mean 'reads'?"
    )
    assert sum(str(path) in record.getMessage() for record in caplog.records) == 1
    assert "/lake/revenue" in names(task.complete)[1]


def test_a_file_that_is_not_there_is_in_the_event(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DECLARATIONS", "/no/such.yaml")
    (problem,) = problems(run(adopted()).complete)
    assert "/no/such.yaml: the file cannot be read" in problem


def test_a_template_that_cannot_be_rendered_is_a_problem_of_that_argument_alone(declared, run):
    declared("- task_id: revenue\n  reads: '/lake/{{ nothing.at.all }}'\n  writes: /lake/revenue\n")
    task = run(adopted())
    (problem,) = problems(task.complete)
    assert problem.startswith("reads cannot be rendered (UndefinedError")
    assert names(task.start) == [[], ["/lake/revenue"]]


def test_what_was_declared_before_is_gone_with_its_rule(declared, rendered):
    declared(DECLARED)
    task = rendered(adopted())
    assert task.on_partition_mismatch == "ignore"
    declared("- task_id: other\n  reads: /lake/x\n")
    task = rendered(task)
    assert (task.reads, task.writes, task.on_partition_mismatch) == (None, None, "warn")


def test_they_are_explained_before_the_task_runs(declared, monkeypatch):
    declared(DECLARED)
    task = adopted()
    monkeypatch.setattr("airflow.utils.cli.get_bagged_dag", lambda *_: task.dag)
    run = explanation.DryRun(pendulum.datetime(2024, 5, 6))
    explained = explanation.explain_task("shop", "revenue", run, NO_RULES)
    found = {
        str(expectation.dataset): [p.values for p in expectation.partitions or ()]
        for expectation in explained.declared.expectations
    }
    assert found["/lake/revenue"] == [(("dt", "2024-05-06"),)]
    assert found["/lake/orders"] == [(("dt", "2024-05-05"),), (("dt", "2024-05-06"),)]


def test_rendered_templates_have_what_is_declared_and_nothing_else(declared, rendered):
    fields = tuple(SparkSubmitOperator.template_fields)
    assert tuple(rendered(adopted()).template_fields) == fields
    declared(DECLARED)
    assert tuple(rendered(adopted()).template_fields) == (*fields, "reads", "writes")
    assert tuple(adopted().template_fields) == fields


def test_a_serialised_dag_has_nothing_of_them(declared):
    from airflow.serialization.serialized_objects import DagSerialization

    before = DagSerialization.to_dict(adopted().dag)
    declared(DECLARED)
    assert DagSerialization.to_dict(adopted().dag) == before
