"""Observed partitions in the merged event and on the screen: capped, and said so."""

import io

import pytest

from airflow_provider_sparklineage.datasets import DatasetName
from airflow_provider_sparklineage.lineage import facets
from airflow_provider_sparklineage.lineage.merge import LineageDataset, Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.observed import Subset
from airflow_provider_sparklineage.partitioning import Dimension, Partition
from airflow_provider_sparklineage.show import print_event
from airflow_provider_sparklineage.spark.events import ReadReport
from tests.openlineage_spec import validate_event

T = DatasetName("file", "/lake/t")


def lineage(count, *, locations=None):
    values = frozenset(Partition.of([("dt", f"{n:04}")]) for n in range(count))
    dataset = LineageDataset(T, locations=locations, subset=Subset((Dimension.of("dt"),), values))
    return TaskLineage(Outcome.COMPLETE, (dataset,), (dataset,))


def event(task):
    return facets.run_event(
        task,
        ReadReport(),
        run_id="018f4b33-3c00-7c1b-9334-33d444edfa00",
        job_namespace="airflow",
        job_name="shop.revenue",
        event_time="2024-05-06T00:00:00Z",
    )


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_partition_is_named_on_both_sides(count):
    document = event(lineage(count))
    validate_event(document)
    [read], [written] = document["inputs"], document["outputs"]
    for condition in (
        read["inputFacets"]["subset"]["inputCondition"],
        written["outputFacets"]["subset"]["outputCondition"],
    ):
        assert condition["type"] == "partition"
        named = [p["dimensions"]["dt"] for p in condition["partitions"]]
        assert named == [f"{n:04}" for n in range(count)]
    assert facets.partition_cuts(lineage(count)) == []


def test_beyond_a_hundred_the_cut_is_declared():
    document = event(lineage(101))
    [output] = document["outputs"]
    assert len(output["outputFacets"]["subset"]["outputCondition"]["partitions"]) == 100
    facet = output["facets"]["sparkLineage_partitions"]
    assert (facet["count"], facet["truncated"]) == (101, True)
    assert (facet["first"], facet["last"]) == ("dt=0000", "dt=0100")
    cuts = facets.partition_cuts(lineage(101))
    assert [(d.code, d.dataset) for d in cuts] == [("partitions_cut", T), ("partitions_cut", T)]


def test_observed_partitions_go_before_locations():
    document = event(lineage(1, locations=frozenset({"/lake/t/dt=0000"})))
    [read] = document["inputs"]
    assert read["inputFacets"]["subset"]["inputCondition"]["type"] == "partition"


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "no partition"), (2, "dt=0000, dt=0001"), (9, "dt=0000 … dt=0008 (9 partitions)")],
)
def test_show_names_a_few_partitions_and_sums_up_many(count, said):
    file = io.StringIO()
    print_event(event(lineage(count)), file)
    assert file.getvalue().count(said) == 2
