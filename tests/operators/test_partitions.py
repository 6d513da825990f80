"""From templates and declarations to the partitions in the events of real operators."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pendulum
import pytest
from airflow.sdk import DAG, Asset
from airflow.sdk.execution_time.context import MacrosAccessor
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.expectations import DatasetSubset, PartitionRange
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# Locations of the recorded events that are partitions.
REPORTED = {"/lake/orders": [{"dt": "2024-05-06"}], "/lake/rates": [{"month": "2024-05"}]}


def operator(**kwargs):
    arguments = {"task_id": "revenue", "application": "job.py", "observe": False} | kwargs
    return SparkLineageSubmitOperator(**arguments)


@pytest.fixture
def run(spark_submit, execute, context):
    """Render and execute an operator for a day, as the task runner does."""

    def run(task, day="2024-05-06", **more):
        spark_submit.does("staging_chain")
        start = pendulum.parse(day)
        task = task.prepare_for_execution()
        of_run = {
            **context,
            "ds": day,
            "logical_date": start,
            "data_interval_start": start,
            "data_interval_end": start.add(days=1),
            "macros": MacrosAccessor(),
            "params": {},
            "task": task,
            **more,
        }
        task.render_template_fields(of_run)
        task.start = task.get_openlineage_facets_on_start()
        execute(task, of_run)
        task.complete = task.get_openlineage_facets_on_complete(None)
        return task

    return run


def partitions(datasets):
    """Give the partitions that the event names, by dataset."""
    found = {}
    for dataset in datasets:
        sides = (
            getattr(dataset, "inputFacets", None) or getattr(dataset, "outputFacets", None) or {}
        )
        if "subset" in sides:
            document = Serde.to_dict(sides["subset"])
            condition = document.get("inputCondition") or document["outputCondition"]
            found[dataset.name] = [p["dimensions"] for p in condition["partitions"]]
    return found


def sources(lineage, side="reads"):
    check = lineage.run_facets["sparkLineage_partitionCheck"]
    return {
        entry["dataset"]["name"]: [
            (s["kind"], s.get("dimension"), s["value"]) for s in entry["from"]
        ]
        for entry in getattr(check, side)
        if "from" in entry
    }


def codes(lineage):
    return [d["code"] for d in lineage.run_facets["sparkLineage_capture"].degradations]


def test_partitions_of_templated_paths_meet_the_datasets_that_spark_reports(run):
    task = run(
        operator(
            application_args=[
                "--orders=s3a://other/orders/dt={{ ds }}",
                "--customers", "/lake/customers/version={{ ds }}",
                "--output", "file:///lake/revenue/dt={{ ds }}",
                "--date", "{{ ds }}",
            ]
        )
    )  # fmt: skip
    assert partitions(task.complete.inputs) == REPORTED | {
        "/lake/customers": [{"version": "2024-05-06"}]
    }
    assert partitions(task.complete.outputs) == {"/lake/revenue": [{"dt": "2024-05-06"}]}
    assert sources(task.complete) == {"/lake/customers": [("path", "version", "2024-05-06")]}
    assert sources(task.complete, "writes") == {"/lake/revenue": [("path", "dt", "2024-05-06")]}
    # A path has no side, so it is in no event before Spark has reported.
    assert (task.start.inputs, task.start.outputs) == ([], [])


def test_declarations_are_in_the_event_from_the_start(run):
    task = run(
        operator(
            reads=[
                DatasetSubset("/lake/orders", PartitionRange("dt", "{{ macros.ds_add(ds, -1) }}",
                                                            "{{ macros.ds_add(ds, 1) }}")),
                "/lake/rates/month={{ ds[:7] }}",
            ],
            writes=[DatasetSubset(Asset("file:///lake/revenue"), {"dt": "{{ ds }}"})],
        )
    )  # fmt: skip
    read = {
        "/lake/orders": [{"dt": "2024-05-05"}, {"dt": "2024-05-06"}],
        "/lake/rates": [{"month": "2024-05"}],
    }
    written = {"/lake/revenue": [{"dt": "2024-05-06"}]}
    for lineage in (task.start, task.complete):
        assert partitions(lineage.inputs) == read
        assert partitions(lineage.outputs) == written
    assert sources(task.complete)["/lake/rates"] == [("declared", "month", "2024-05")]
    assert sources(task.complete)["/lake/orders"] == [
        ("declared", "dt", "2024-05-05"),
        ("declared", "dt", "2024-05-07"),
    ]


def test_two_runs_of_one_process_do_not_share_what_they_rendered(run):
    shared = operator(reads=[DatasetSubset("/lake/orders", {"dt": "{{ ds }}"})])
    days = ["2024-05-06", "2024-05-07"]
    tasks = [run(shared, day) for day in days]
    for day, task in zip(days, tasks, strict=True):
        assert partitions(task.complete.inputs)["/lake/orders"] == [{"dt": day}]
    assert shared.reads[0].partitions == {"dt": "{{ ds }}"}


def test_assets_of_inlets_and_outlets_are_identity_only(run):
    task = run(operator(inlets=[Asset("file:///lake/orders/dt=2024-05-06")]))
    assert [d.name for d in task.start.inputs] == ["/lake/orders"]
    assert partitions(task.start.inputs) == {}


@pytest.mark.parametrize(
    ("conf", "uri", "name"),
    [
        pytest.param(
            {"spark.openlineage.dataset.removePath.pattern": "(?<remove>/v[0-9]+)"},
            "file:///lake/v7/orders",
            "/lake/orders",
            id="removed of names",
        ),
        pytest.param(
            {
                "spark.openlineage.dataset.disabledTrimmers": (
                    "io.openlineage.client.dataset.partition.trimmer.KeyValueTrimmer"
                )
            },
            "file:///lake/orders/region=PL",
            "/lake/orders/region=PL",
            id="not trimmed",
        ),
    ],
)
def test_an_asset_and_its_uri_are_one_dataset_as_the_task_names_it(run, conf, uri, name):
    task = run(operator(conf=conf, inlets=[Asset(uri)], reads=[uri, DatasetSubset(Asset(uri))]))
    assert [d.name for d in task.start.inputs] == [name]


def test_rules_name_assets_too(run, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__PARTITIONING",
        '- {dataset: "/lake/*", layout: "{event_date:%Y/%m/%d}/{hour:%H}"}',
    )
    task = run(operator(inlets=[Asset("file:///lake/orders/2024/05/06/10")]))
    assert [d.name for d in task.start.inputs] == ["/lake/orders"]


def test_the_run_of_a_partition(run, context):
    task = operator(
        partition_key_dimensions="{dt}|{region}",
        application_args=["--output", "/lake/revenue/dt={{ partition_key.split('|')[0] }}"],
    )
    task = run(task, partition_key="2024-05-06|PL")
    assert partitions(task.complete.outputs) == {"/lake/revenue": [{"dt": "2024-05-06"}]}
    assert codes(run(operator(partition_key_dimensions=["a", "b"]), partition_key="x").complete)[
        :1
    ] == ["declaration_unusable"]


@pytest.mark.parametrize(
    ("reads", "message"),
    [
        pytest.param(
            [DatasetSubset("/lake/orders", "dt=1")], "reads[0]: The partitions of", id="text"
        ),
        pytest.param(["/lake/a", "what is this?"], "reads[1]: 'what is this?' names no", id="name"),
        pytest.param(
            [DatasetSubset("/lake/orders", PartitionRange("dt", "{{ ds }}", "later"))],
            "reads[0]: PartitionRange('dt', '2024-05-06', 'later', 'P1D')",
            id="range",
        ),
        pytest.param(
            [DatasetSubset("/lake/orders", where=["a = 1"])], "reads[0]: where= of", id="where"
        ),
        pytest.param(
            [DatasetSubset("/lake/orders", PartitionRange(5, "2024-05-01", "2024-05-02"))],
            "reads[0]: A dimension in the partitions",
            id="dimension",
        ),
        pytest.param(
            [DatasetSubset("/lake/orders", {"dt": "\ud800"})],
            "reads[0]: it cannot be written as JSON",
            id="no unicode",
        ),
        pytest.param([5], "reads[0]: No OpenLineage dataset is known for 5", id="number"),
        pytest.param(["/lake/dt={{ nope.x }}"], "reads cannot be rendered", id="template"),
        pytest.param(
            [DatasetSubset("/lake/orders", {"dt": "{{ nope.x }}"})],
            "reads cannot be rendered (UndefinedError: 'nope' is undefined)",
            id="nested template",
        ),
    ],
)
def test_what_makes_no_sense_is_reported_and_costs_no_task(run, reads, message):
    lineage = run(operator(reads=reads)).complete
    messages = [d["message"] for d in lineage.run_facets["sparkLineage_capture"].degradations]
    assert message in " ".join(messages)
    assert "declaration_unusable" in codes(lineage)


def test_an_argument_that_is_no_unicode_costs_no_task(run):
    lineage = run(operator(application_args=["/lake/orders/dt=\udcff"])).complete
    assert partitions(lineage.inputs) == REPORTED


def test_a_lineage_that_cannot_be_made_costs_no_task(run, monkeypatch):
    from airflow_provider_sparklineage.lineage import bundle as task
    from airflow_provider_sparklineage.lineage import declared_and_last_known

    def broken(*_):
        raise TypeError

    monkeypatch.setattr(task, "merged_lineage", broken)
    monkeypatch.setattr(declared_and_last_known, "unmerged", broken)
    assert "merge_failed" in codes(run(operator()).complete)


def test_a_password_in_a_uri_goes_nowhere(run, captures, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    uri = "s3a://key:hunter2@lake/t/dt={{ ds }}"
    lineage = run(operator(application_args=[uri], reads=[uri])).complete
    assert "hunter2" not in repr(lineage)
    [manifest] = captures()
    assert "hunter2" not in manifest.read_text()
    assert "declaration_unusable" in codes(lineage)


def test_native_rendering_leaves_declared_literals_alone(run):
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = operator(reads=[DatasetSubset("/lake/t", {"version": "1.10", "dt": "{{ ds }}"})])
    assert partitions(run(task).start.inputs) == {
        "/lake/t": [{"version": "1.10", "dt": "2024-05-06"}]
    }


def test_what_only_lineage_asks_for_is_not_rendered_without_it(run):
    task = operator(lineage=False, reads=["/lake/dt={{ nope.x }}"]).prepare_for_execution()
    task.render_template_fields({"task": task})
    assert task.reads == ["/lake/dt={{ nope.x }}"]


def test_what_else_is_in_an_argument_stays_there(run, captures, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    task = run(
        operator(
            application_args=["--token hunter2 --out /lake/revenue/dt={{ ds }} --day {{ ds }}"],
            conf={"spark.x": '{"password": "hunter2", "day": "{{ ds }}", "at": "/lake/customers"}'},
        )
    )
    lineage = task.complete
    facets = [Serde.to_json(f) for f in (*lineage.inputs, *lineage.outputs)]
    facets += [Serde.to_json(f) for f in lineage.run_facets.values()]
    assert "hunter2" not in "".join(facets)
    [manifest] = captures()
    assert "hunter2" not in manifest.read_text()
    check = lineage.run_facets["sparkLineage_partitionCheck"]
    [revenue] = [e for e in check.writes if e["dataset"]["name"] == "/lake/revenue"]
    assert [s["template"] for s in revenue["from"]] == ["/lake/revenue/dt={{ ds }}"]


def test_a_table_that_spark_does_not_report_is_a_degradation(run):
    lineage = run(operator(reads=["analytics.rates"])).complete
    assert "declaration_unbound" in codes(lineage)


def test_wrong_rules_are_named_and_cost_no_task(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__PARTITIONING", "- {datasett: x}")
    lineage = run(operator()).complete
    messages = [d["message"] for d in lineage.run_facets["sparkLineage_capture"].degradations]
    assert "datasett" in " ".join(messages)


def test_rules_name_the_partitions_of_folders_without_columns(run, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__PARTITIONING",
        '- {dataset: "/lake/*", layout: "{event_date:%Y/%m/%d}"}',
    )
    path = "/lake/customers/{{ logical_date.strftime('%Y/%m/%d') }}"
    task = run(operator(application_args=[path]))
    assert partitions(task.complete.inputs)["/lake/customers"] == [{"event_date": "2024-05-06"}]


def test_maxima_are_those_of_the_configuration(run, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_PARTITIONS", "1")
    days = PartitionRange("dt", "2024-05-01", "2024-05-04")
    lineage = run(operator(reads=[DatasetSubset("/lake/orders", days)])).complete
    [orders] = [d for d in lineage.inputs if d.name == "/lake/orders"]
    condition = Serde.to_dict(orders.inputFacets["subset"])["inputCondition"]
    assert (condition["type"], condition["operator"]) == ("binary", "AND")
    assert "partitions_cut" in codes(lineage)


def test_the_bundle_has_all_that_the_replay_needs(run, captures, monkeypatch):
    from airflow_provider_sparklineage.event import openlineage
    from airflow_provider_sparklineage.event.pipeline import merged_event
    from airflow_provider_sparklineage.lineage.bundle import task_lineage
    from airflow_provider_sparklineage.spark.capture import bundle as capture

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__PARTITIONING",
        '- {dataset: "/lake/*", layout: "{event_date:%Y/%m/%d}"}',
    )
    task = run(
        operator(
            application_args=["/lake/orders/{{ logical_date.strftime('%Y/%m/%d') }}"],
            writes=[DatasetSubset("/lake/revenue", {"dt": "{{ ds }}"})],
        )
    )
    [manifest] = captures()
    bundle = capture.load(manifest.parent)
    replayed = openlineage.parts(merged_event(bundle, task_lineage(bundle)))
    assert partitions(replayed.inputs) == partitions(task.complete.inputs)
    assert partitions(replayed.outputs) == partitions(task.complete.outputs)
    check = replayed.run_facets["sparkLineage_partitionCheck"]
    assert check == task.complete.run_facets["sparkLineage_partitionCheck"]


def test_values_under_a_name_like_token_reach_the_backend(run):
    from airflow.providers.openlineage.utils.utils import OpenLineageRedactor
    from airflow.sdk._shared.secrets_masker import _secrets_masker as masker

    task = run(operator(reads=[DatasetSubset("/lake/orders", {"token": "abc"})]))
    redactor = OpenLineageRedactor.from_masker(masker())
    redactor.sensitive_variables_fields = ["token"]
    redacted = redactor.redact(task.complete.inputs, max_depth=20)  # as Airflow's adapter calls it
    assert partitions(redacted)["/lake/orders"] == [{"token": "abc"}]


def test_a_declaration_is_serialized_alike_every_time():
    from airflow.serialization.serialized_objects import DagSerialization

    def serialized():
        with DAG("d", schedule=None):
            task = operator(
                reads=[DatasetSubset("/lake/orders", {"dt": ["{{ ds }}"]}, where="a = 1")],
                writes=[DatasetSubset(Asset("s3://lake/t"), PartitionRange("dt", "a", "b"))],
            )
        return json.dumps(DagSerialization.to_dict(task.dag), sort_keys=True)

    first = serialized()
    assert first == serialized()
    assert "{{ ds }}" in first
    assert "object at 0x" not in first


def test_a_mapped_declaration_is_serialized_alike_in_every_process():
    code = (
        "import json; from airflow.sdk import DAG;"
        "from airflow.serialization.serialized_objects import DagSerialization;"
        "from airflow_provider_sparklineage.expectations import DatasetSubset;"
        "from airflow_provider_sparklineage.operators.spark_submit import "
        "SparkLineageSubmitOperator as Operator;"
        "dag = DAG('d', schedule=None);"
        "Operator.partial(task_id='t', application='a', dag=dag)"
        ".expand(reads=[[DatasetSubset('/lake/t', {'country': {'PL', 'DE', 'FR', 'ES'}})]]);"
        "print(json.dumps(DagSerialization.to_dict(dag), sort_keys=True))"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.splitlines()[-1]
        for seed in ("1", "2")
    )
    assert first == second
    assert "'DE', 'ES', 'FR', 'PL'" in first


def test_mapped_declarations_are_rendered_for_each_instance():
    with DAG("mapped", schedule=None):
        mapped = SparkLineageSubmitOperator.partial(
            task_id="revenue",
            application="job.py",
            writes=[DatasetSubset("/lake/revenue", {"dt": "{{ ds }}"})],
        ).expand(
            reads=[[DatasetSubset("/lake/orders", {"dt": d})] for d in ("{{ ds }}", "2024-01-01")]
        )
    from airflow.serialization.serialized_objects import DagSerialization

    # No text of an object; "0x" alone is in the name of a temporary folder at times.
    assert " at 0x" not in json.dumps(DagSerialization.to_dict(mapped.dag))


def test_a_task_whose_result_is_in_a_declaration_is_upstream():
    with DAG("d", schedule=None):
        first = operator(task_id="first")
        second = operator(
            task_id="second", reads=[DatasetSubset("/lake/orders", {"dt": [first.output]})]
        )
    assert second.upstream_task_ids == {"first"}
