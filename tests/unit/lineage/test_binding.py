"""The observer's records bound to the datasets that the listener names, only by evidence."""

import json
from datetime import UTC, datetime

import pytest

from airflow_provider_sparklineage.lineage.application.accesses import Scope
from airflow_provider_sparklineage.lineage.observed.binding import bind, observations
from airflow_provider_sparklineage.lineage.observed.places import DatasetIndex, at_roots
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationRecord,
    ObservationReport,
    read_observations,
)

ORDERS = DatasetName("file", "/lake/orders")
SALES = DatasetName("file", "/lake/warehouse/sales")
LINK = DatasetName("file:/lake/warehouse", "default.sales")
DT = {"field": "dt", "transform": "identity", "type": "date"}
REGION = {"field": "region", "transform": "identity", "type": "string"}


def layout(base, partitions, *dimensions):
    return {"base": base, "dimensions": list(dimensions), "partitions": partitions}


def scan(*layouts, **more):
    return {"node": "FileSourceScanExec", "layouts": list(layouts), **more}


def write(path, mode, partitions, *dimensions, **more):
    found = {"node": "x", "path": path, "mode": mode, "how": "exact"}
    return found | {"layouts": [layout(path, partitions, *dimensions)]} | more


def decoded(*, reads=(), writes=()):
    query = {"kind": "query", "started": 1000, "ended": 2000}
    line = json.dumps(query | {"reads": list(reads), "writes": list(writes)}).encode()
    return list(read_observations([line + b"\n"], ObservationReport()))


def collected(records, identities):
    """Bind records to datasets, each with its symlinks, and collect the accesses of these."""
    return observations(bind(records, DatasetIndex(identities, DEFAULT_LOCATOR)), set(identities))


def bound(datasets=((ORDERS, ()), (SALES, (LINK,))), **record):
    return collected(decoded(**record), dict(datasets))


def p(**values):
    return Partition.from_values(values.items())


@pytest.mark.parametrize(
    ("base", "dimensions", "values", "partition"),
    [
        pytest.param(
            "file:/lake/orders", [DT, REGION], ["1", None], p(dt="1", region=None), id="root"
        ),
        pytest.param("file:///lake/orders", [DT], ["1"], p(dt="1"), id="three slashes"),
        pytest.param("/lake/orders/", [DT], ["1"], p(dt="1"), id="bare path"),
        pytest.param(
            "file:/lake/orders/dt=1", [REGION], ["us"], p(dt="1", region="us"), id="below"
        ),
        pytest.param("file:/lake/orders/dt=a%2Fb", [], [], p(dt="a/b"), id="partition folder"),
        pytest.param("file:/lake/orders", [], [], Partition(), id="unpartitioned"),
    ],
)
def test_partitions_are_completed_from_the_path(base, dimensions, values, partition):
    [read] = bound(reads=[scan(layout(base, [values], *dimensions))]).reads[ORDERS]
    assert read.scope.partitions == {partition}
    assert read.started == datetime.fromtimestamp(1, UTC)


def test_the_empty_text_is_a_value_where_a_format_keeps_it_apart_from_null():
    """As Iceberg does; of others the observer reports null."""
    [read] = bound(reads=[scan(layout("file:/lake/orders", [[""]], REGION))]).reads[ORDERS]
    assert read.scope.partitions == {Partition((("region", ""),))}


def test_date_folders_without_a_column_are_not_guessed():
    [read] = bound(reads=[scan(layout("file:/lake/orders/2024-05-06", [[]]))]).reads[ORDERS]
    assert read.scope.partitions is None


def test_a_transform_goes_by_its_own_name():
    day = {"field": "ts", "transform": "day", "name": "ts_day", "type": "date"}
    [read] = bound(reads=[scan(layout("file:/lake/orders", [["2024-05-06"]], day))]).reads[ORDERS]
    assert read.dimensions == (Dimension.of_column("ts", "day", "ts_day"),)
    assert read.scope.partitions == {p(ts_day="2024-05-06")}


@pytest.mark.parametrize("table", ["spark_catalog.default.sales", "default.sales"])
def test_a_table_of_another_path_is_found_by_its_symlink(table):
    observed = bound(reads=[scan(layout("file:/moved/x", [["1"]], DT), table=table)])
    assert list(observed.reads) == [SALES]


def test_a_table_name_that_two_datasets_have_is_bound_to_none():
    other = DatasetName("file", "/other/sales")
    both = ((SALES, (LINK,)), (other, (DatasetName("x", "default.sales"),)))
    observed = bound(
        both, reads=[scan(layout("file:/moved/x", [["1"]], DT), table="default.sales")]
    )
    assert observed.reads == {}
    assert observed.unmatched == ("/moved/x",)


@pytest.mark.parametrize(
    ("file", "partition"),
    [
        pytest.param("file:/lake/orders/dt=1/part-0.csv", p(dt="1"), id="in a partition"),
        pytest.param("file:/lake/orders/part-0.csv", Partition(), id="in the folder"),
    ],
)
def test_a_single_file_of_a_dataset_shows_the_partition_that_it_is_in(file, partition):
    observed = bound(reads=[scan(layout(file, [[]]), roots=[file])])
    [read] = observed.reads[ORDERS]
    assert read.scope == Scope(full=False, partitions=frozenset({partition}))
    assert (read.chosen, observed.unmatched) == (True, ())


def test_a_file_of_a_log_shows_no_partition():
    observed = bound(reads=[scan(layout("file:/lake/orders/_delta_log/00.json", [[]]))])
    assert (observed.reads, observed.unmatched) == ({}, ())


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("file:/lake/orders/dt=1/a%20b.csv", id="in a partition"),
        pytest.param("file:/lake/orders/a.csv", id="in the folder"),
        pytest.param("file:/lake/orders", id="the dataset itself"),
    ],
)
def test_looking_for_the_columns_of_files_reads_no_partition_of_their_dataset(file):
    read = {"node": "FileSourceScanExec", "inference": True, "roots": [file, "file:/else/b.csv"]}
    observed = bound(reads=[read])
    [access] = observed.reads[ORDERS]
    assert access.scope == Scope(partitions=frozenset())
    assert (set(observed.reads), observed.unmatched) == ({ORDERS}, ())


@pytest.mark.parametrize(
    ("more", "base", "full"),
    [
        pytest.param({"roots": ["file:/lake/orders"]}, "file:///lake/orders", True, id="all"),
        pytest.param(
            {"roots": ["file:/lake/orders"], "partition_filters": ["dt = 1"]},
            "file:/lake/orders",
            False,
            id="filtered",
        ),
        pytest.param(
            {"roots": ["file:/lake/orders"], "pushed_filters": ["dt = 1"]},
            "file:/lake/orders",
            False,
            id="pushed down",
        ),
        pytest.param(
            {"roots": ["file:/lake/orders"], "chosen": True},
            "file:/lake/orders",
            False,
            id="chosen before",
        ),
        pytest.param(
            {"roots": ["file:/lake/orders/dt=1"]}, "file:/lake/orders", False, id="basePath"
        ),
        pytest.param(
            {"roots": ["file:/lake/orders/dt=1"]}, "file:/lake/orders/dt=1", False, id="folder"
        ),
    ],
)
def test_a_read_is_full_only_if_nothing_restricts_it(more, base, full):
    [read] = bound(reads=[scan(layout(base, [["1"]], REGION), **more)]).reads[ORDERS]
    assert read.scope.full is full


class CountingLocator:
    def __init__(self):
        self.asked = 0

    def locate(self, path):
        self.asked += 1
        return DEFAULT_LOCATOR.locate(path)


def test_the_roots_of_a_read_without_partitions_are_not_compared_with_each_layout():
    roots = [f"file:/lake/raw/{number}" for number in range(100)]
    layouts = [layout(root, [[]]) for root in roots]
    [record] = decoded(reads=[scan(*layouts, roots=roots)])
    locator = CountingLocator()
    assert at_roots(record, locator) == record
    assert locator.asked <= len(roots)


@pytest.mark.parametrize(
    ("mode", "more", "owned"),
    [
        pytest.param("dynamic", {}, {p(dt="1"), p(dt="2")}, id="replaced"),
        pytest.param("whole", {}, {p(dt="1"), p(dt="2")}, id="all of it replaced"),
        pytest.param("append", {"shared": [["2"]]}, {p(dt="1")}, id="what others had is not ours"),
        pytest.param("append", {}, set(), id="append that was not listed"),
        pytest.param("rows", {}, set(), id="rows"),
        pytest.param("dynamic", {"how": "unknown"}, set(), id="unknown"),
    ],
)
def test_what_a_write_owns(mode, more, owned):
    wrote = write("file:/lake/orders", mode, [["1"], ["2"]], DT, **more)
    [access] = bound(writes=[wrote]).writes[ORDERS]
    assert access.owned == Scope(mode == "whole", frozenset(owned))
    assert (access.scope.partitions is None) == (more.get("how") == "unknown")


@pytest.mark.parametrize("mode", ["whole", "create"])
def test_overwriting_a_partition_folder_is_no_full_overwrite(mode):
    [access] = bound(writes=[write("file:/lake/orders/dt=1", mode, [[]])]).writes[ORDERS]
    assert access.scope.partitions == {p(dt="1")}
    assert access.owned == Scope(full=False, partitions=frozenset({p(dt="1")}))


def test_a_commit_has_its_own_time():
    wrote = write("/lake/orders", "append", [["1"]], DT, time=5000)
    [access] = bound(writes=[wrote]).writes[ORDERS]
    assert access.started == access.ended == datetime.fromtimestamp(5, UTC)


@pytest.mark.parametrize("planned", [{"planned": True}, {}], ids=["planned", "finished"])
def test_a_read_is_planned_where_its_query_may_have_ended_before(planned):
    [access] = bound(reads=[scan(layout("/lake/orders", [["1"]], DT), **planned)]).reads[ORDERS]
    assert access.planned == bool(planned)


def test_a_read_that_was_not_finished_has_its_reason():
    read = {"node": "x", "roots": ["file:/lake/orders"], "cut": "too many"}
    [access] = bound(reads=[read]).reads[ORDERS]
    assert (access.scope.partitions, access.why_unknown) == (None, "too many")


def test_folders_that_are_gone_are_so_of_their_datasets():
    record = ObservationRecord(kind="end", gone=["file:/lake/orders", "file:/lake/staging"])
    assert collected([record], {ORDERS: ()}).gone == {ORDERS}


def test_an_empty_record_is_bound_to_nothing():
    assert collected([ObservationRecord()], {}).unmatched == ()
