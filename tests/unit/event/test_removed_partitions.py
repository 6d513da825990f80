"""Partitions that a job emptied are a kind of write of their own, in each reader of the event."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.history.facts.accesses import accesses, reporter
from airflow_provider_sparklineage.lineage.application.accesses import Access, Scope
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import ObservedAccesses, Subset
from airflow_provider_sparklineage.lineage.observed.binding import bind, observations
from airflow_provider_sparklineage.lineage.observed.places import DatasetIndex
from airflow_provider_sparklineage.lineage.partitions.comparison import reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS, Limits
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationReport,
    read_observations,
)
from tests.conftest import GOLDEN, HEADER
from tests.openlineage_spec import validate_event

SALES = DatasetName("s3://lake", "sales")
DT = (Dimension.of_column("dt"),)
START = datetime(2024, 5, 6, tzinfo=UTC)
ALL = frozenset({Partition()})


def days(*names):
    return frozenset(Partition.from_values([("dt", n)]) for n in names)


# --- what was observed ----------------------------------------------------------------------------


def access(second, written, removed=frozenset(), dimensions=DT):
    at = START + timedelta(seconds=second)
    scope = Scope(partitions=written)
    return Access(SALES, Side.WRITE, at, at, scope, dimensions=dimensions, removed=removed)


@pytest.mark.parametrize(
    ("writes", "written", "removed"),
    [
        ([(days(), days("1"))], "", "1"),
        ([(days("1"), days()), (days(), days("1"))], "", "1"),
        ([(days(), days("1")), (days("1"), days())], "1", ""),
        ([(days("2"), days("1", "3"))], "2", "13"),
        ([(days("1"), days()), (days("2"), days("1")), (days("3"), days("2"))], "3", "12"),
        ([(days("1"), ALL)], "1", ""),
    ],
    ids=[
        "a DELETE",
        "written before",
        "written again",
        "an overwrite of all",
        "one after another",
        "files from before it was partitioned",
    ],
)
def test_the_last_write_of_a_partition_tells_if_it_is_there(writes, written, removed):
    found = ObservedAccesses(writes=[access(n, *one) for n, one in enumerate(writes)])
    subset = found.subset(Side.WRITE)
    assert (subset.partitions, subset.removed) == (days(*written), days(*removed))
    assert not found.is_empty(Side.WRITE)


@pytest.mark.parametrize(
    ("writes", "is_emptied"),
    [
        ([(days(), ALL)], True),
        ([(days(), ALL), (ALL, days())], False),
        ([(ALL, days()), (days(), ALL)], True),
        ([(days(), ALL), (days(), days())], True),
        ([(days(), days())], False),
    ],
    ids=["a TRUNCATE", "written again", "written before", "and then nothing", "nothing"],
)
def test_an_unpartitioned_dataset_may_be_emptied(writes, is_emptied):
    accesses = [access(n, *one, dimensions=()) for n, one in enumerate(writes)]
    assert ObservedAccesses(writes=accesses).is_emptied() is is_emptied


def test_what_is_written_to_an_emptied_partition_is_the_jobs_own():
    read = access(3, days("1"))._replace(side=Side.READ)
    emptied = access(1, days(), days("1"))
    filled = access(2, days("1"))
    assert ObservedAccesses([read], [emptied, filled]).subset(Side.READ).partitions == days()
    assert ObservedAccesses([read], [filled]).subset(Side.READ).partitions == days("1")


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["whole"], True),
        (["create"], True),
        (["append", "whole"], True),
        (["whole", "append"], True),
        (["static"], False),
        (["dynamic", "append"], False),
    ],
    ids=str,
)
def test_a_write_that_replaces_a_whole_dataset_leaves_no_other_partition(modes, expected):
    writes = [
        {"node": "InsertIntoHadoopFsRelationCommand", "path": "/lake", "mode": mode}
        | {"how": "exact", "layouts": [layout("1")]}
        for mode in modes
    ]
    records = [
        {"kind": "commits", "started": n, "ended": n + 1, "reads": [], "writes": [write]}
        for n, write in enumerate(writes, 1)
    ]
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    name = DatasetName("file", "/lake")
    index = DatasetIndex({name: ()}, DEFAULT_LOCATOR)
    bound = bind(list(read_observations(lines, ObservationReport())), index)
    found = ObservedAccesses(writes=observations(bound, {name}).writes[name])
    assert found.subset(Side.WRITE).is_replaced is expected


def layout(*values):
    dimensions = [{"field": "dt", "transform": "identity", "type": "string"}]
    return {"base": "/lake", "dimensions": dimensions, "partitions": [[one] for one in values]}


@pytest.mark.parametrize(
    ("layouts", "removed", "emptied", "expected"),
    [
        ([], ["1", "2"], ["1"], ("2", "1")),
        (["1"], ["1"], [], ("1", "")),
        (["1"], ["1", "2"], ["2"], ("1", "2")),
        ([], ["1"], None, ("", "")),
    ],
    ids=["a part of the files", "rewritten", "both", "nobody looked"],
)
def test_a_partition_that_has_files_left_was_written_and_another_removed(
    layouts, removed, emptied, expected
):
    write = {"node": "DeltaCommit", "path": "/lake", "mode": "rows", "how": "exact"}
    write |= {"layouts": [layout(*layouts)], "removed": [layout(*removed)]}
    write |= {"emptied": [layout(*emptied)]} if emptied is not None else {}
    record = {"kind": "commits", "started": 1000, "ended": 2000, "reads": [], "writes": [write]}
    lines = [json.dumps(record).encode() + b"\n"]
    records = list(read_observations(lines, ObservationReport()))
    name = DatasetName("file", "/lake")
    index = DatasetIndex({name: ()}, DEFAULT_LOCATOR)
    [found] = observations(bind(records, index), {name}).writes[name]
    assert (found.scope.partitions, found.removed) == tuple(days(*one) for one in expected)


def test_of_the_writes_of_a_real_job_one_replaces_a_whole_dataset():
    file = GOLDEN / "spark-4.0" / "observed" / "partitioned_writes.ndjson"
    records = list(read_observations(file.read_bytes().splitlines(True), ObservationReport()))
    paths = ("full", "append", "static")
    names = {DatasetName("file", f"/lake/sales_{path}") for path in paths}
    writes = observations(
        bind(records, DatasetIndex(dict.fromkeys(names, ()), DEFAULT_LOCATOR)), names
    ).writes
    found = {
        name.name: ObservedAccesses(writes=of_name).subset(Side.WRITE).is_replaced
        for name, of_name in writes.items()
    }
    assert found == {f"/lake/sales_{path}": path == "full" for path in paths}


# --- the event ------------------------------------------------------------------------------------


def event(written="", removed="1", limits=DEFAULT_LIMITS, *, is_replaced=False, **more):
    subset = Subset(DT, days(*written), removed=days(*removed), is_replaced=is_replaced)
    known = {"observed": True, "subset": subset, "witness": Witness.OBSERVER} | more
    report = SubsetReport((), DEFAULT_LOCATOR, limits)
    output = report.of(LineageDataset(SALES, **known), Side.WRITE)
    lineage = TaskLineage(Outcome.COMPLETE, (), (output,), degradations=report.degradations())
    document = event_of(lineage, ReadReport(), header=HEADER)
    validate_event(document)
    return document


def entry(document, key="sparkLineage_partitionCheck"):
    facet = document["run"]["facets"][key]
    return SimpleNamespace(**(facet["writes"] if "writes" in facet else facet["datasets"])[0])


def facts(document):
    read = model.read_document(document)
    return [(one.extent, one.partition, one.mode) for one in accesses(read, reporter(read))]


def operations(document):
    return [
        (one.aspect["operationType"], one.aspect["partitionSpec"]["partition"])
        for one in proposals(document)
        if one.aspect_name == "operation"
    ]


def printed(document):
    text = io.StringIO()
    show.print_event(model.read_document(document), text)
    return text.getvalue()


def test_a_removed_partition_is_neither_nothing_nor_a_written_one():
    document = event()
    assert document["run"]["facets"]["sparkLineage_partitionCheck"]["removed from sales"] == "dt=1"
    assert (entry(document).accessed, entry(document).removed["count"]) == ("removed", 1)
    seen = entry(document, "sparkLineage_capture")
    assert (seen.accessed, seen.removed) == ("removed", 1)
    [output] = document["outputs"]
    assert output["facets"]["sparkLineage_partitions"]["removed"] == {
        "summary": "dt=1",
        "count": 1,
        "first": "dt=1",
        "last": "dt=1",
        "partitions": [{"dimensions": {"dt": "1"}, "identifier": "dt=1"}],
    }
    assert facts(document) == [("partition", "dt=1", "removed")]
    assert operations(document) == [("DELETE", "dt=1")]
    assert Descriptions(document).of_run().endswith("removed from sales dt=1.")
    text = Descriptions(document).of_datasets()[Side.WRITE, SALES].text
    assert text.startswith("dt=1 removed by")
    assert "removed: dt=1" in printed(document)
    assert "no partition" not in printed(document)


@pytest.mark.parametrize("written", ["12", ""])
def test_what_a_whole_overwrite_has_not_written_is_gone(written):
    document = event(written, "", is_replaced=True)
    assert document["outputs"][0]["facets"]["sparkLineage_partitions"]["replaced"] == "all"
    named = [("partition", f"dt={one}", "append") for one in written]
    assert facts(document) == [*named, ("all", None, "truncate")]


def test_of_a_range_nobody_knows_what_a_whole_overwrite_left():
    document = event("123", "", Limits(partitions=2), is_replaced=True)
    assert [extent for extent, _, _ in facts(document)] == ["range"]


def test_a_write_may_both_write_and_remove():
    document = event("2", "13")
    line = "dt=2 (removed: dt=1 … dt=3 (2 partitions))"
    assert document["run"]["facets"]["sparkLineage_partitionCheck"]["wrote sales"] == line
    assert (entry(document).accessed, entry(document).removed["count"]) == ("part", 2)
    assert facts(document) == [
        ("partition", "dt=2", "append"),
        ("partition", "dt=1", "removed"),
        ("partition", "dt=3", "removed"),
    ]
    assert operations(document) == [("INSERT", "dt=2"), ("DELETE", "dt=1"), ("DELETE", "dt=3")]
    assert f"wrote sales {line}" in Descriptions(document).of_run()
    assert "removed: dt=1 … dt=3" in printed(document)


def test_an_unpartitioned_dataset_that_was_emptied_is_removed_as_a_whole():
    document = event(subset=None, is_emptied=True)
    assert entry(document, "sparkLineage_capture").accessed == "removed"
    assert facts(document) == [("all", None, "removed")]
    assert operations(document) == [("DELETE", "FULL_TABLE_SNAPSHOT")]
    assert "all data removed" in printed(document)


def test_many_removed_partitions_are_a_range_and_declared():
    document = event("", [f"{n:02}" for n in range(20)], Limits(partitions=9))
    [degradation] = document["run"]["facets"]["sparkLineage_capture"]["degradations"]
    assert degradation["code"] == "partitions_cut"
    assert degradation["message"].startswith("20 partitions of s3://lake/sales were emptied")
    assert (
        "partitions" not in document["outputs"][0]["facets"]["sparkLineage_partitions"]["removed"]
    )
    assert facts(document) == [("range", None, "removed")]
    assert operations(document) == [("DELETE", "dt=00 … dt=19 (20 partitions)")]


def test_a_declared_write_of_a_partition_that_was_only_removed_is_missing():
    expected = Expected(Kind.DECLARED, days("1"), DT)
    found = reconcile(expected, Subset(DT, days(), removed=days("1")))
    assert (str(found.status), found.missing) == ("missing", days("1"))
