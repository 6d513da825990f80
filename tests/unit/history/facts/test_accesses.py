"""What was read and written: how much, which partitions, whose word that is, and how."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.event.facets import check_facet, subset_facets
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.history.facts.cells import cell_of, cell_of_text
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.selection import Evidence, selected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import Limits
from airflow_provider_sparklineage.model.terms import Witness
from tests.unit.history.facts.events import OF_SPARK, dataset, event, facts, ours, part

SEEN = {"witness": "both", "accessed": "part"}
COUNTED = {"count": 3, "first": "dt=2024-10-01", "last": "dt=2024-10-09"}
NAMED = {"namespace": "file", "name": "/lake/orders"}
WHERE = {
    "type": "compare",
    "left": {"type": "field", "field": "amount"},
    "comparison": "GREATER_THAN",
    "right": {"type": "literal", "value": "0"},
}


def read(of: dict, entry: dict | None = None, check: dict | None = None) -> list[dict]:
    checked = check and {"status": "matched", "reads": [{"dataset": NAMED, **check}], "writes": []}
    return facts(ours(reads=[(of, entry or SEEN)], check=checked))["accesses"]


def written(of: dict, entry: dict | None = None, **changes) -> list[dict]:
    return facts(ours(writes=[(of, entry or SEEN)], **changes))["accesses"]


def lifecycle(state: object) -> dict:
    return {"lifecycleStateChange": {"lifecycleStateChange": state}}


def subset(condition: object, key: str = "inputCondition") -> dict:
    return {"subset": {key: condition}}


# --- how much -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facets", "entry", "extent"),
    [
        ({}, {"accessed": "all"}, "all"),
        ({}, {"accessed": "none"}, "none"),
        ({}, {"accessed": "unknown"}, "unknown"),
        ({}, {"accessed": "part"}, "unknown"),
        (part(), {"accessed": "none"}, "none"),
        (part({}), {"accessed": "all"}, "all"),
        (part({"dt": "2024-10-15"}), {"accessed": "part"}, "partition"),
        (subset(WHERE), {"accessed": "part"}, "condition"),
        (subset(WHERE), {"accessed": "none"}, "none"),
        (subset({"type": "location", "locations": ["/lake/orders/x"]}), SEEN, "condition"),
        ({"sparkLineage_subsetDescription": {"description": "new"}}, SEEN, "condition"),
    ],
)
def test_how_much_was_read_is_what_the_event_says_of_it(facets, entry, extent):
    (access,) = read(dataset(inputFacets=facets), {"witness": "both", **entry})
    assert access["extent"] == extent


def test_of_more_partitions_than_an_event_names_the_ends_and_the_count_are_known():
    (access,) = read(dataset(inputFacets=subset(WHERE)), check={"observed": COUNTED})
    assert access["extent"] == "range"
    assert (access["first_partition"], access["last_partition"]) == (
        "dt=2024-10-01",
        "dt=2024-10-09",
    )
    assert access["partition_count"] == 3
    assert json.loads(access["condition"]) == WHERE


@pytest.mark.parametrize(
    ("counted", "extent"),
    [({"count": 0}, "none"), ({"count": 1, "first": "dt=1", "last": "dt=1"}, "partition")],
)
def test_a_count_of_one_is_that_partition_and_of_none_nothing(counted, extent):
    (access,) = read(dataset(), check={"observed": counted})
    assert access["extent"] == extent


def test_what_was_only_expected_says_nothing_of_what_was_read():
    (access,) = read(
        dataset(), {"witness": "listener", "accessed": "unknown"}, {"expected": COUNTED}
    )
    assert access["extent"] == "unknown"


def test_of_what_is_only_declared_the_expected_partitions_are_all_that_is_known():
    check = {"unreported": "declared", "expected": COUNTED}
    (access,) = read(dataset(), {"witness": "declared", "accessed": "part"}, check)
    assert (access["extent"], access["evidence"]) == ("range", "declared")


def test_the_partitions_of_an_output_are_in_its_own_facet_where_there_is_no_check():
    of = dataset(facets={"sparkLineage_partitions": {**COUNTED, "truncated": True}})
    (access,) = written(of)
    assert (access["extent"], access["partition_count"]) == ("range", 3)


def test_an_output_whose_partitions_are_not_known_is_not_one_without_any():
    of = dataset(facets={"sparkLineage_partitions": {"count": 0}})
    assert written(of, {"witness": "listener", "accessed": "unknown"})[0]["extent"] == "unknown"


def test_ranges_of_events_that_this_package_makes_are_read_as_such():
    days = frozenset(Partition((("dt", f"2024-10-{day:02}"),)) for day in range(1, 30, 2))
    observed = Subset(partitions=days, dimensions=(Dimension.of_column("dt"),))
    of = LineageDataset(
        DatasetName("file", "/lake/orders"),
        observed=True,
        subset=observed,
        selected=selected(Evidence(observed=True, subset=observed), Limits(10)),
        witness=Witness.BOTH,
    )
    (access,) = read(
        dataset(inputFacets=subset_facets(of, "read")),
        {"witness": str(of.witness), "accessed": str(of.accessed)},
        check_facet([of], [])["reads"][0],
    )
    assert (access["extent"], access["partition_count"]) == ("range", len(days))


@pytest.mark.parametrize("producer", ["https://airflow", OF_SPARK, None])
def test_another_producer_that_names_no_part_says_nothing_of_how_much(producer):
    accesses = facts(event(producer=producer, inputs=[dataset()], outputs=[dataset()]))["accesses"]
    assert [(a["side"], a["extent"], a["evidence"]) for a in accesses] == [
        ("read", "unknown", "other"),
        ("write", "unknown", "other"),
    ]


@pytest.mark.parametrize(
    ("locations", "cells"),
    [
        (["/lake/orders/dt=2024-10-15", "/lake/orders/dt=7/"], ["2024-10-15", "7"]),
        (["s3://b/lake/orders/dt=2024-10-15"], ["2024-10-15"]),
        (["/lake/orders/dt=2024-10-15", "/lake/orders"], None),
        (["/lake/orders/dt=2024-10-15/part-0.parquet"], None),
        (["/lake/orders_old/dt=2024-10-15"], None),
        ([], None),
    ],
)  # fmt: skip
def test_locations_are_partitions_if_all_of_them_are_folders_of_some(locations, cells):
    condition = {"type": "location", "locations": locations}
    of = dataset(inputFacets=subset(condition))
    accesses = facts(event(producer=OF_SPARK, inputs=[of]))["accesses"]
    found = [one["cell"].removeprefix("dt=") for one in accesses if one["extent"] == "partition"]
    assert (found or None) == cells


# --- which partitions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimensions", "partition", "cell", "dims"),
    [
        ({"dt": "2024-10-15"}, "dt=2024-10-15", "dt=2024-10-15", "dt"),
        ({"b": "1", "a": "2"}, "b=1/a=2", "a=2/b=1", "a,b"),
        ({"a": "2", "b": "1"}, "a=2/b=1", "a=2/b=1", "a,b"),
        ({"dt": None}, "dt=__HIVE_DEFAULT_PARTITION__", "dt=__HIVE_DEFAULT_PARTITION__", "dt"),
        ({"dt": ""}, "dt=__HIVE_DEFAULT_PARTITION__", "dt=__HIVE_DEFAULT_PARTITION__", "dt"),
        ({"c": "a/b=c%d'e"}, "c=a%2Fb%3Dc%25d%27e", "c=a%2Fb%3Dc%25d%27e", "c"),
        ({"c": "ü é\n😀"}, "c=ü é%0A😀", "c=ü é%0A😀", "c"),
        ({"x,y": "1"}, "x,y=1", "x,y=1", "x%2Cy"),
        ({"month": "05"}, "month=05", "month=5", "month"),
        ({"month": 5}, "month=5", "month=5", "month"),
        ({"dt": "20241015"}, "dt=20241015", "dt=2024-10-15", "dt"),
        ({"is_late": True, "p": 0.5}, "is_late=true/p=0.5", "is_late=true/p=0.5", "is_late,p"),
    ],
)
def test_a_partition_is_a_folder_and_its_cell_the_same_for_all_who_mean_it(
    dimensions, partition, cell, dims
):
    of = dataset(inputFacets=part(dimensions))
    (access,) = facts(event(inputs=[of]))["accesses"]
    assert (access["partition"], access["cell"], access["dims"]) == (partition, cell, dims)


@pytest.mark.parametrize(
    "dimensions", [{"dt": "2024-10-15"}, {"b": "x/y", "a": "%2F"}, {"month": "05"}, {"dt": None}]
)
def test_what_a_person_writes_is_the_cell_of_the_event(dimensions):
    cell = cell_of(dimensions)
    assert cell_of_text(cell.partition) == cell
    assert cell_of_text("/".join(reversed(cell.partition.split("/")))).cell == cell.cell


@pytest.mark.parametrize("text", ["", "2024-10-15", "dt", "=x", "dt=1/x", "dt=1/x/y=2", "/"])
def test_what_is_no_partition_has_no_cell(text):
    assert cell_of_text(text) is None


def test_each_partition_is_an_access_and_one_that_is_named_twice_is_one():
    days = [{"dt": "2024-10-15"}, {"dt": "2024-10-16"}, {"dt": "2024-10-15"}]
    assert [one["cell"] for one in read(dataset(inputFacets=part(*days)))] == [
        "dt=2024-10-15",
        "dt=2024-10-16",
    ]


def test_partitions_that_cannot_be_read_leave_a_row_that_more_was_read():
    named = [{"dimensions": {"dt": "1"}}, {"dimensions": 7}, {"identifier": "part-0"}]
    facets = subset({"type": "partition", "partitions": named})
    accesses = read(dataset(inputFacets=facets))
    assert [one["extent"] for one in accesses] == ["partition", "unknown"]


def test_an_identifier_is_read_where_there_are_no_dimensions():
    facets = subset({"type": "partition", "partitions": [{"identifier": "dt=1/h=2"}]})
    assert read(dataset(inputFacets=facets))[0]["cell"] == "dt=1/h=2"


# --- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "rows"), [(1, 9), (2, None)])
def test_rows_are_of_an_access_if_it_is_the_only_one_of_its_dataset(days, rows):
    named = part(*({"dt": f"2024-10-{day}"} for day in range(10, 10 + days)))
    of = dataset(inputFacets={**named, "inputStatistics": {"rowCount": 9, "size": 100}})
    accesses = read(of)
    assert [one.get("row_count") for one in accesses] == [rows] * days


@pytest.mark.parametrize("count", [-1, 2**63, 1.5, "9", None, True])
def test_a_count_that_is_none_is_left_out(count):
    of = dataset(outputFacets={"outputStatistics": {"rowCount": count, "size": 5}})
    (access,) = written(of)
    assert (access.get("row_count"), access["byte_count"]) == (None, 5)


# --- whose word, and how --------------------------------------------------------------------------


@pytest.mark.parametrize("witness", ["both", "observer", "listener", "declared"])
def test_evidence_is_the_witness_of_the_capture(witness):
    assert read(dataset(), {"witness": witness, "accessed": "all"})[0]["evidence"] == witness


def test_what_nobody_of_this_try_saw_is_last_known():
    document = ours(reads=[(dataset("/lake/other"), SEEN)])
    document["inputs"] = [dataset()]
    assert facts(document)["accesses"][0]["evidence"] == "last_known"


def test_of_more_datasets_than_the_capture_names_the_check_says_who_saw_them():
    document = ours(check={"reads": [{"dataset": NAMED, "accessed": "all"}], "writes": []})
    document["inputs"] = [dataset()]
    (access,) = facts(document)["accesses"]
    assert (access["extent"], access["evidence"]) == ("all", "listener")


def test_the_start_of_a_task_of_this_package_is_known_by_what_is_declared():
    of = dataset(facets={"dataSource": {"_producer": "urn:airflow-provider-sparklineage:0.1.0"}})
    start = event(eventType="START", inputs=[of], outputs=[dataset("/lake/report")])
    line = facts(start)
    assert line["is_ours"]
    assert [one["evidence"] for one in line["accesses"]] == ["declared", "last_known"]


@pytest.mark.parametrize(
    ("state", "mode"),
    [
        ("OVERWRITE", "overwrite"),
        ("CREATE", "create"),
        ("DROP", "drop"),
        ("TRUNCATE", "truncate"),
        ("RENAME", "rename"),
        ("ALTER", "alter"),
        ("EXPLODE", "unknown"),
        (None, "append"),
        ({}, "append"),
    ],
)
def test_the_mode_of_a_write_is_its_lifecycle_and_spark_gives_none_for_appends(state, mode):
    assert written(dataset(facets=lifecycle(state)))[0]["mode"] == mode


@pytest.mark.parametrize(
    ("document", "mode"),
    [
        (event(outputs=[dataset()]), "unknown"),
        (event(outputs=[dataset()], producer=OF_SPARK), "append"),
        (ours(writes=[(dataset(), {"witness": "declared", "accessed": "part"})]), "unknown"),
    ],
    ids=["other producer", "Spark", "declared"],
)
def test_without_a_lifecycle_the_mode_is_known_of_what_spark_was_seen_to_write(document, mode):
    assert facts(document)["accesses"][0]["mode"] == mode


@pytest.mark.parametrize(
    ("state", "extent"),
    [("CREATE", "all"), ("DROP", "all"), ("OVERWRITE", "unknown"), ("TRUNCATE", "unknown")],
)
def test_what_is_created_or_dropped_is_all_of_it_if_no_part_is_named(state, extent):
    of = dataset(facets=lifecycle(state))
    assert facts(event(outputs=[of]))["accesses"][0]["extent"] == extent


def test_reads_have_no_mode():
    assert "mode" not in read(dataset(facets=lifecycle("OVERWRITE")))[0]


def test_a_write_that_failed_is_one_that_failed_and_its_run_is_no_success():
    line = facts(ours(eventType="FAIL", writes=[(dataset(), {**SEEN, "failed": True})]))
    assert (line["event_type"], line["accesses"][0]["is_failed"]) == ("FAIL", True)


def test_credentials_in_names_of_other_producers_are_not_kept():
    document = event(inputs=[dataset("t", namespace="postgres://user:hunter2@db:5432")])
    assert "hunter2" not in json.dumps(facts(document))


def test_sides_are_those_of_the_package():
    accesses = facts(event(inputs=[dataset()], outputs=[dataset()]))["accesses"]
    assert [one["side"] for one in accesses] == [Side.READ, Side.WRITE]
