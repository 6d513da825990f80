"""A stream's batch is one action, and its files are in the folder that the stream reads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.observed.binding import Observed
from airflow_provider_sparklineage.lineage.observed.corrections import corrected, with_real_batches
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.spark.capture.observations import (
    Layout,
    ObservationRecord,
    ReadRecord,
    RecordDimension,
)
from tests.unit.lineage.test_observed_actions import at, reported

DAYS = Layout("file:/lake/days", partitions=((),))
ORDERS = Layout("file:/lake/orders", [RecordDimension("dt")], (("1",),))


def batch(*layouts, started=1, ended=2, function="stream"):
    reads = [ReadRecord("FileSourceScanExec", layouts=list(layouts))]
    return ObservationRecord(
        "query", started=started * 1000, ended=ended * 1000, function=function, reads=reads
    )


def names(actions):
    return [
        tuple([d.name.name.removeprefix("/lake/") for d in side] for side in (a.inputs, a.outputs))
        for a in actions
    ]


def after(*actions, records):
    application = SparkApplication("run", "ns", "app", actions)
    return names(with_real_batches(Observed.of(application, records)).application.actions)


def test_files_without_partitions_become_their_folder():
    action = reported(1, 2, ["days/a.json", "days/b.json", "users/c.json"], ["days"])
    assert after(action, records=[batch(DAYS)]) == [(["days", "users/c.json"], ["days"])]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(batch(DAYS, function="count"), id="no stream"),
        pytest.param(batch(DAYS, started=5, ended=6), id="at another time"),
        pytest.param(batch(ORDERS), id="another folder"),
        pytest.param(batch(Layout("file:/lake/day", partitions=((),))), id="a name that begins so"),
    ],
)
def test_other_files_stay_datasets_of_their_own(record):
    action = reported(1, 2, ["days/a.json"])
    assert after(action, records=[record]) == [(["days/a.json"], [])]


def test_a_file_of_a_stream_is_no_dataset_where_another_query_reads_it_alone():
    application = SparkApplication("run", "ns", "app", (reported(1, 2, ["days/a.json"]),))
    alone = batch(Layout("file:/lake/days/a.json", partitions=((),)), started=5, ended=6)
    records = [batch(DAYS), replace(alone, function="count")]
    done = corrected(Observed.of(application, records))
    assert names(done.application.actions) == [(["days"], [])]
    assert done.observations().unmatched == ()


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        pytest.param(reported(1.2, 1.5, ["a"], ["b"]), 1, id="of the same"),
        pytest.param(reported(1.2, 1.5, ["a"], ["c"]), 2, id="of another output"),
        pytest.param(reported(1.2, 1.5, ["c"], ["b"]), 2, id="of another input"),
        pytest.param(reported(1.2, 1.95, ["a"], ["b"]), 2, id="that ends later"),
        pytest.param(reported(1.2, 1.5, ["a"]), 2, id="that writes nothing"),
    ],
)
def test_a_step_of_a_batch_is_no_action(inner, expected):
    outer = reported(1.1, 1.9, ["a"], ["b"])
    assert len(after(outer, inner, records=[batch(ORDERS)])) == expected


def test_actions_of_no_batch_are_all_kept():
    pair = reported(1.1, 1.9, ["a"], ["b"]), reported(1.2, 1.5, ["a"], ["b"])
    assert len(after(*pair, records=[batch(ORDERS, started=5, ended=6)])) == 2
    assert len(after(*pair, records=[])) == 2


def test_the_log_of_a_delta_table_is_no_dataset():
    """A stream that reads the table has it among its inputs and outputs."""
    actions = (
        reported(1, 2, ["changes/_delta_log"], ["changes/_delta_log"]),
        reported(2, 3, ["changes", "changes/_delta_log"], ["mirror"]),
        reported(2, 3, ["changes/_delta_log/00000000000000000000.json"]),
        reported(3, 4),
        reported(4, 5, ["my_delta_log"]),
    )
    assert names(repaired(SparkApplication("run", "ns", "app", actions)).actions) == [
        (["changes"], ["mirror"]),
        ([], []),
        (["my_delta_log"], []),
    ]


FILE, FOLDER = (DatasetName("file", f"/lake/{name}") for name in ("days/a.json", "days"))


def missed(**more):
    """Give a batch of which the observer knows the source alone, and what the listener says."""
    cut = ReadRecord("FileSourceScanExec", roots=["file:/lake/days"], cut="too late")
    record = replace(batch(), reads=[cut])
    action = replace(reported(1.1, 1.9, ["days"]), is_stream=True, moved={FILE: FOLDER})
    application = SparkApplication("run", "ns", "app", (replace(action, **more),))
    return corrected(Observed.of(application, [record])).observations().reads[FOLDER]


def test_a_batch_that_was_missed_read_the_file_that_the_listener_names():
    [read] = missed()
    assert (read.scope.partitions, read.chosen) == (frozenset({Partition()}), True)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"is_stream": False}, id="no stream"),
        pytest.param({"moved": {}}, id="the folder alone"),
        pytest.param({"started": at(5), "ended": at(6)}, id="at another time"),
    ],
)
def test_what_a_missed_batch_read_is_not_known_otherwise(more):
    assert {read.scope.partitions for read in missed(**more)} == {None}
