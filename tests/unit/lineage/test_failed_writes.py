"""What a failed action may have half written: named, and not claimed."""

import pytest

from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER

FAILED = DatasetName("file", "/lake/checked_orders")
GOOD = DatasetName("file", "/lake/good_orders")


def expectation(name, kind=Kind.PATH, side=None, **more):
    partitions = (Partition.from_values([("dt", "2024-05-06")]),)
    return Expectation(
        kind, side, name, partitions=partitions, dimensions=(Dimension.of_column("dt"),), **more
    )


@pytest.fixture
def merged(recorded):
    """Merge the recorded job whose second write failed."""

    def run(outcome, *expectations):
        application = recorded("failing_action").application
        return merge(application, outcome, expectations=expectations)

    return run


def note(lineage):
    [found] = [d.message for d in lineage.degradations if d.dataset == FAILED]
    return found


@pytest.mark.parametrize(
    "expected",
    [expectation(FAILED), expectation(FAILED, Kind.DECLARED, Side.WRITE)],
    ids=["path", "declared"],
)
@pytest.mark.parametrize("outcome", Outcome)
def test_partitions_that_may_be_half_written_are_named(merged, outcome, expected):
    message = note(merged(outcome, expected))
    assert message.endswith("is not claimed. It may have half written dt=2024-05-06.")


@pytest.mark.parametrize(
    ("spark", "kind"),
    [
        ("3.5", "org.apache.spark.SparkException"),
        ("4.0", "org.apache.spark.SparkRuntimeException [USER_RAISED_EXCEPTION]"),
        ("4.2", "org.apache.spark.SparkRuntimeException [USER_RAISED_EXCEPTION]"),
    ],
)
def test_of_an_exception_its_class_is_reported_and_nothing_of_its_text(recorded, spark, kind):
    lineage = merge(recorded("failing_action", spark).application, Outcome.FAIL)
    assert f"was to write /lake/checked_orders failed ({kind});" in note(lineage)
    assert "negative" not in note(lineage)  # raise_error('negative amount')


def test_nothing_is_claimed_of_them(merged):
    lineage = merged(Outcome.FAIL, expectation(FAILED), expectation(GOOD))
    outputs = {d.name: d for d in lineage.outputs}
    assert outputs[FAILED].check.status == "unobserved"
    document = event_of(lineage, ReadReport(), header=HEADER)
    reported = {d["name"]: d for d in document["outputs"]}
    assert not reported["/lake/checked_orders"].get("outputFacets")
    assert "subset" in reported["/lake/good_orders"]["outputFacets"]
    check = document["run"]["facets"]["sparkLineage_partitionCheck"]["writes"]
    [entry] = [e for e in check if e["dataset"]["name"] == "/lake/checked_orders"]
    assert "condition" not in entry
    assert entry["expected"]["summary"] == "dt=2024-05-06"


def test_of_a_task_that_went_on_it_is_no_output(merged):
    lineage = merged(Outcome.COMPLETE, expectation(FAILED))
    assert [d.name for d in lineage.outputs] == [GOOD]


@pytest.mark.parametrize(
    "expected",
    [
        [],
        [expectation(FAILED, Kind.DECLARED, Side.READ)],
        [expectation(FAILED, is_glob=True)],
        [expectation(GOOD)],
    ],
    ids=["nothing", "read", "glob", "another"],
)
def test_where_nobody_knows_none_are_named(merged, expected):
    assert note(merged(Outcome.FAIL, *expected)).endswith("is not claimed.")
