"""Merging bundles of tasks whose listener names datasets in the user's own way.

Names and paths are those that OpenLineage 1.53 and the observer gave on Spark 4.0 for such reads.
"""

from __future__ import annotations

import gc
import json

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.expectations.declared import TaskFields, declared
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.dataset import Accessed
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.model.allowance import Allowance
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import Partitions
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.templates import TracedText

APPLICATION = "1a430cb0-e4c5-4dff-9254-84949bb84288"
CONF = "spark.openlineage.dataset"
TRIMMER = "io.openlineage.client.dataset.partition.trimmer"
NO_KEY_VALUE = {f"{CONF}.disabledTrimmers": f"{TRIMMER}.KeyValueTrimmer"}
NO_VERSIONS = {f"{CONF}.removePath.pattern": "(?<remove>/v[0-9]+)"}
DT = {"field": "dt", "transform": "identity", "type": "string"}
HOUR = {"field": "hour", "transform": "identity", "type": "integer"}


def dataset(name, *locations, side="input"):
    document = {"namespace": "file", "name": name, "facets": {}}
    if locations:
        condition = {"type": "location", "locations": list(locations)}
        document[f"{side}Facets"] = {"subset": {f"{side}Condition": condition}}
    return document


def events(*inputs):
    """Give the events of one action that reads some datasets and writes another."""
    parent = {"run": {"runId": APPLICATION}, "job": {"namespace": "n", "name": "app"}}
    for number, kind in enumerate(["START", "COMPLETE"]):
        yield {
            "eventType": kind,
            "eventTime": f"1970-01-01T00:00:0{number + 1}.500Z",
            "run": {"runId": "01a203b5-f021-7af3-ae86-5641f1e9a9b4", "facets": {"parent": parent}},
            "job": {
                "namespace": "n",
                "name": "app.execute_insert_into_hadoop_fs_relation_command.lake_out",
                "facets": {"jobType": {"jobType": "SQL_JOB"}},
            },
            "inputs": list(inputs),
            "outputs": [dataset("/lake/out", side="output")],
        }


def scan(root, base, *partitions, dimensions=(), filters=()):
    layout = {"base": base, "dimensions": list(dimensions), "partitions": list(partitions)}
    found = {"node": "FileSourceScanExec", "roots": [root], "layouts": [layout]}
    return found | {"partition_filters": list(filters)}


@pytest.fixture
def merged(tmp_path):
    """Merge what a listener of some configuration reported, and the observer if it did."""

    def merged(naming, inputs, *reads, arguments=(), **record):
        manifest = Manifest(APPLICATION, naming=naming, outcome="COMPLETE")
        texts = [TracedText("application_args[0]", a, a) for a in arguments]
        known = declared(TaskFields(texts), manifest.locator, lambda _: None)
        bundle = capture.create(
            tmp_path / "captures",
            Manifest(
                APPLICATION, naming=naming, expectations=known.expectations, outcome="COMPLETE"
            ),
        )
        bundle.events_path.write_text("".join(f"{json.dumps(e)}\n" for e in events(*inputs)))
        if reads or record:
            query = {"kind": "query", "started": 1600, "ended": 2400, "reads": list(reads)} | record
            bundle.observations_path.write_text(f"{json.dumps(query)}\n")
        return task_lineage(capture.load(bundle.path))

    return merged


def only(datasets):
    [found] = datasets
    return found


def dt(value):
    return Partition.from_values([("dt", value)])


def codes(lineage):
    return [d.code for d in lineage.degradations]


@pytest.mark.parametrize(
    ("read", "seen"),
    [
        pytest.param(
            scan("file:/lake/orders/dt=1", "file:/lake/orders/dt=1", []), None, id="all of it"
        ),
        pytest.param(
            scan(
                "file:/lake/orders/dt=1",
                "file:/lake/orders/dt=1",
                ["3"],
                dimensions=[HOUR],
                filters=["hour = 3"],
            ),
            {Partition.from_values([("hour", "3")])},
            id="partitions below it",
        ),
        pytest.param(
            scan("file:/lake/orders/dt=1", "file:///lake/orders", ["1"], dimensions=[DT]),
            None,
            id="basePath",
        ),
        pytest.param(
            scan(
                "file:/lake/orders/dt=1",
                "file:///lake/orders",
                ["1", "3"],
                ["2", "4"],
                dimensions=[DT, HOUR],
                filters=["hour = 3"],
            ),
            {Partition.from_values([("hour", "3")])},
            id="partitions below it with basePath",
        ),
    ],
)
def test_a_partition_folder_that_is_not_trimmed_is_the_dataset_that_was_observed(
    merged, read, seen
):
    lineage = merged(NO_KEY_VALUE, [dataset("/lake/orders/dt=1")], read)
    orders = only(lineage.inputs)
    assert (orders.name.name, orders.observed) == ("/lake/orders/dt=1", True)
    assert (orders.subset and orders.subset.partitions) == seen
    assert DegradationCode.OBSERVATION_UNTIED not in codes(lineage)


@pytest.mark.parametrize(
    ("folders", "sources"),
    [
        pytest.param(["/lake/orders/dt=1"], {("/lake/orders/dt=1", "price")}, id="one"),
        pytest.param(["/lake/orders/dt=1", "/lake/orders/dt=2"], set(), id="two"),
    ],
)
def test_the_column_of_a_folder_that_is_not_trimmed_has_its_dataset(merged, folders, sources):
    price = {"class": "x.AttributeReference", "num-children": 0, "name": "price"}
    leaf = {"class": "x.LogicalRelation", "num-children": 0}
    command = {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": "file:/lake/out"},
        "columns": ["p"],
        "plan": [leaf | {"output": [[price | {"exprId": {"id": 1}}]]}],
        "relations": [{"path": "file:/lake/orders", "ids": [1]}],
    }
    lineage = merged(NO_KEY_VALUE, [dataset(name) for name in folders], command=command)
    fields = only(lineage.outputs).columns.fields
    assert {(c.dataset.name, c.field) for c in fields.get("p", ())} == sources
    assert DegradationCode.OBSERVATION_UNTIED not in codes(lineage)


@pytest.mark.parametrize(
    ("locations", "reads"),
    [
        pytest.param(["/lake/v7/orders/dt=1"], [], id="by its locations"),
        pytest.param(
            ["/lake/v7/orders/dt=1"],
            [scan("file:/lake/v7/orders/dt=1", "file:/lake/v7/orders/dt=1", [])],
            id="observed",
        ),
        pytest.param(
            [],
            [
                scan(
                    "file:/lake/v7/orders",
                    "file:/lake/v7/orders",
                    ["1"],
                    dimensions=[DT],
                    filters=["dt = 1"],
                )
            ],
            id="observed below its root",
        ),
    ],
)
def test_an_expected_path_meets_the_partition_of_a_dataset_without_removed_folders(
    merged, locations, reads
):
    inputs = [dataset("/lake/orders", *locations)]
    lineage = merged(NO_VERSIONS, inputs, *reads, arguments=["--in=/lake/v7/orders/dt=1"])
    orders = only(lineage.inputs)
    assert orders.name == DatasetName("file", "/lake/orders")
    assert orders.selected.condition == Partitions(frozenset({dt("1")}))
    assert orders.check.status is PartitionStatus.MATCHED


def test_another_partition_than_the_expected_path_is_a_mismatch(merged):
    inputs = [dataset("/lake/orders", "/lake/v7/orders/dt=2")]
    lineage = merged(NO_VERSIONS, inputs, arguments=["/lake/v7/orders/dt=1"])
    check = only(lineage.inputs).check
    assert (check.status, check.unexpected) == (PartitionStatus.UNEXPECTED, {dt("2")})


def test_a_table_with_data_in_and_outside_of_partitions_is_reported(merged):
    later = scan("file:/lake/orders", "file:/lake/orders", ["1"], dimensions=[DT], filters=["x"])
    later["layouts"].append({"base": "file:/lake/orders", "dimensions": [], "partitions": [[]]})
    lineage = merged({}, [dataset("/lake/orders")], later)
    orders = only(lineage.inputs)
    assert (orders.subset, orders.accessed) == (None, Accessed.UNKNOWN)
    [unknown] = [d for d in lineage.degradations if d.dataset == orders.name]
    assert (unknown.code, unknown.side) == (DegradationCode.PARTITIONS_UNKNOWN, Side.READ)
    assert "some of the data was in partitions, and some in none" in unknown.message


def test_a_date_above_a_partition_stays_a_location(merged):
    inputs = [dataset("/lake/orders", "/lake/orders/2024-05-06/dt=1")]
    read = scan("file:/lake/orders/2024-05-06/dt=1", "file:/lake/orders/2024-05-06/dt=1", [])
    lineage = merged({}, inputs, read, arguments=["/lake/orders/2024-05-06/dt=1"])
    orders = only(lineage.inputs)
    assert orders.selected.partitions is None
    assert orders.check.status is PartitionStatus.UNOBSERVED


@pytest.mark.parametrize(
    ("known", "is_why"),
    [
        (DegradationCode.OBSERVER_UNAVAILABLE, False),
        (DegradationCode.DECLARATION_UNUSABLE, False),
        (DegradationCode.LISTENER_UNAVAILABLE, True),
        (DegradationCode.DRIVER_ELSEWHERE, True),
    ],
)
def test_that_there_are_no_events_is_declared_unless_it_is_known_why(tmp_path, known, is_why):
    degradations = (Degradation(known, "Because."),)
    manifest = Manifest(application_run_id=APPLICATION, degradations=degradations)
    found = codes(task_lineage(capture.create(tmp_path, manifest)))
    assert (DegradationCode.NO_EVENTS in found) is not is_why


def test_what_only_a_scalar_subquery_reads_is_an_input_and_a_source(merged):
    def node(kind, arity=0, **fields):
        return {"class": f"x.{kind}", "num-children": arity, **fields}

    def column(number, name):
        return node("AttributeReference", name=name, exprId={"id": number})

    week = node("Alias", 1, name="m", exprId={"id": 3})
    latest = [
        node("Aggregate", 1, groupingExpressions=[], aggregateExpressions=[
            [week, node("AggregateExpression", 1), node("Max", 1), column(2, "week")]
        ]),
        node("LogicalRelation", output=[[column(2, "week")]]),
    ]  # fmt: skip
    made = [
        [column(1, "id")],
        [node("Alias", 1, name="w", exprId={"id": 4}), node("ScalarSubquery", plan=latest)],
    ]
    command = {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": "file:/lake/out"},
        "columns": ["id", "w"],
        "plan": [
            node("Project", 1, projectList=made),
            node("LogicalRelation", output=[[column(1, "id")]]),
        ],
        "relations": [
            {"path": "file:/lake/orders", "ids": [1]},
            {"path": "file:/lake/cal", "ids": [2]},
        ],
    }
    reads = [scan(f"file:/lake/{name}", f"file:/lake/{name}", []) for name in ("orders", "cal")]
    lineage = merged({}, [dataset("/lake/orders")], *reads, command=command)
    assert [d.name.name for d in lineage.inputs] == ["/lake/cal", "/lake/orders"]
    columns = only(lineage.outputs).columns
    assert {name: [c.dataset.name for c in edges] for name, edges in columns.fields.items()} == {
        "id": ["/lake/orders"],
        "w": ["/lake/cal"],
    }
    assert DegradationCode.SUBQUERY_UNSEEN not in codes(lineage)


def test_the_collector_of_garbage_is_paused_for_all_that_merges(recorded):
    seen = []

    def asked(answer):
        seen.append(gc.isenabled())
        return answer

    bundle = recorded("staging_chain").bundle()
    allowance = Allowance(lambda: asked(60.0))
    seen.clear()
    lineage = task_lineage(bundle, allowance)
    while_merging, while_making = set(seen), len(seen)
    merged_event(bundle, lineage, asked)
    assert (while_merging, set(seen[while_making:]), gc.isenabled()) == ({False}, {False}, True)


# --- a part that did not come from a driver in a cluster ------------------------------------------


@pytest.fixture
def run_of_two_days(tmp_path):
    """Merge a run that should have read two days, of which a part may not have been delivered."""

    def merged(*days, degradations=()):
        root = "file:/lake/orders"
        expected = Expectation(
            Kind.DECLARED,
            Side.READ,
            dataset=DatasetName("file", "/lake/orders"),
            partitions=(Partition((("dt", "5"),)), Partition((("dt", "6"),))),
        )
        manifest = Manifest(
            APPLICATION, outcome="COMPLETE", expectations=(expected,), degradations=degradations
        )
        bundle = capture.create(tmp_path / "captures", manifest)
        lines = [json.dumps(event) for event in events(dataset("/lake/orders"))]
        bundle.events_path.write_text("\n".join(lines) + "\n")
        read = scan(root, root, *([day] for day in days), dimensions=[DT])
        query = {"kind": "query", "started": 1000, "ended": 3000, "reads": [read], "writes": []}
        bundle.observations_path.write_text(f'{{"kind": "start"}}\n{json.dumps(query)}\n')
        return task_lineage(bundle).inputs[0].check

    return merged


UNDELIVERED = Degradation(DegradationCode.DELIVERY_INCOMPLETE, "A file is missing.")


@pytest.mark.parametrize(
    ("days", "degradations", "status", "missing"),
    [
        pytest.param(["5"], [], PartitionStatus.MISSING, 1, id="all of it"),
        pytest.param(["5"], [UNDELIVERED], PartitionStatus.UNOBSERVED, 0, id="missing"),
        pytest.param(["7"], [UNDELIVERED], PartitionStatus.UNEXPECTED, 0, id="unexpected"),
        pytest.param(["5", "6"], [UNDELIVERED], PartitionStatus.MATCHED, 0, id="matched"),
    ],
)
def test_of_a_part_nobody_knows_what_was_not_read(
    run_of_two_days, days, degradations, status, missing
):
    check = run_of_two_days(*days, degradations=tuple(degradations))
    assert (check.status, len(check.missing)) == (status, missing)


@pytest.mark.parametrize(
    ("degradations", "seconds", "is_reported"),
    [
        pytest.param((), 60.0, True, id="all events"),
        pytest.param((UNDELIVERED,), 60.0, False, id="not delivered"),
        pytest.param((), 0.0, False, id="not read"),
    ],
)
def test_a_missing_output_is_reported_only_if_all_events_are_known(
    recorded, tmp_path, degradations, seconds, is_reported
):
    recording = recorded("writes_nothing")
    manifest = replace(recording.bundle().manifest, degradations=degradations)
    bundle = capture.create(tmp_path / "captures", manifest)
    bundle.events_path.write_bytes(recording.path.read_bytes())
    left = iter([60.0])
    lineage = task_lineage(bundle, Allowance(lambda: next(left, seconds)))
    assert (DegradationCode.NOTHING_WRITTEN in codes(lineage)) is is_reported


def test_a_missing_output_is_not_reported_without_any_events(tmp_path):
    lineage = task_lineage(capture.create(tmp_path, Manifest(APPLICATION)))
    assert codes(lineage) == [DegradationCode.NO_EVENTS]


def test_partitions_of_which_some_are_missing_stay_uncertain_where_not_all_was_delivered(tmp_path):
    """The listener's locations were compared, though their outcome is weakened."""
    expected = Expectation(
        Kind.DECLARED,
        Side.READ,
        dataset=DatasetName("file", "/lake/orders"),
        partitions=(dt("5"), dt("6")),
    )
    manifest = Manifest(
        APPLICATION, outcome="COMPLETE", expectations=(expected,), degradations=(UNDELIVERED,)
    )
    bundle = capture.create(tmp_path / "captures", manifest)
    lines = [json.dumps(e) for e in events(dataset("/lake/orders", "/lake/orders/dt=5"))]
    bundle.events_path.write_text("\n".join(lines) + "\n")
    lineage = task_lineage(bundle)
    assert only(lineage.inputs).check.status is PartitionStatus.UNOBSERVED
    assert DegradationCode.PARTITIONS_INEXACT in codes(lineage)


# --- the observer of another version --------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "observers", "is_outdated"),
    [
        pytest.param("a1", ["a1"], False, id="the worker's"),
        pytest.param("a1", ["a1", "a1"], False, id="the worker's, in two contexts"),
        pytest.param("a1", ["b2"], True, id="another"),
        pytest.param("a1", ["a1", "b2"], True, id="another in one of two attempts"),
        pytest.param("a1", [None], True, id="one that does not know its digest"),
        pytest.param(None, ["b2"], False, id="a worker that expects none"),
    ],
)
def test_an_observer_of_another_version_is_reported(tmp_path, expected, observers, is_outdated):
    versions = {} if expected is None else {capture.OBSERVER: expected}
    manifest = Manifest(APPLICATION, outcome="COMPLETE", versions=versions)
    bundle = capture.create(tmp_path / "captures", manifest)
    start = {"kind": "start", "version": 1, "application_id": "a", "spark_version": "4", "time": 1}
    records = [start if one is None else {**start, "observer": one} for one in observers]
    lines = "".join(f"{json.dumps(one)}\n" for one in records)
    (bundle.path / "observations.ndjson").write_text(lines)
    codes = {d.code for d in task_lineage(bundle).degradations}
    assert (DegradationCode.OBSERVER_OUTDATED in codes) == is_outdated
