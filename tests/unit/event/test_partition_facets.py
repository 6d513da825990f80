"""Observed partitions in the merged event and on the screen: capped, and reported as capped."""

import io

import pytest

from airflow_provider_sparklineage.cli.show import print_event
from airflow_provider_sparklineage.event.facets import check_facet
from airflow_provider_sparklineage.event.model import read_document
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.lineage.merge import LineageDataset, Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import Reconciliation
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_LIMITS,
    Limits,
    Representation,
)
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

T = DatasetName("file", "/lake/t")


DT = (Dimension.of_column("dt"),)


def reported(side, *expectations, limits=DEFAULT_LIMITS, **known):
    known = {"witness": Witness.BOTH} | known
    return SubsetReport(expectations, DEFAULT_LOCATOR, limits).of(LineageDataset(T, **known), side)


def lineage(count, **known):
    values = frozenset(Partition.from_values([("dt", f"{n:04}")]) for n in range(count))
    known |= {"observed": True, "subset": Subset(DT, values)}
    sides = [reported(side, **known) for side in Side]
    return TaskLineage(Outcome.COMPLETE, (sides[0],), (sides[1],))


def event(task, **more):
    return event_of(task, ReadReport(), header=HEADER, **more)


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


def test_beyond_a_hundred_the_form_is_skipped_and_the_truncation_declared():
    document = event(lineage(101))
    validate_event(document)
    [output] = document["outputs"]
    assert "subset" not in output["outputFacets"]
    described = output["outputFacets"]["sparkLineage_subsetDescription"]["description"]
    assert described == "dt=0000 … dt=0100 (101 partitions)"
    facet = output["facets"]["sparkLineage_partitions"]
    assert (facet["count"], facet["truncated"]) == (101, True)
    assert (facet["first"], facet["last"]) == ("dt=0000", "dt=0100")


def test_a_truncation_is_a_degradation_that_names_the_option():
    report = SubsetReport((), DEFAULT_LOCATOR, Limits(partitions=1))
    subset = Subset(
        DT, frozenset({Partition.from_values([("dt", "a")]), Partition.from_values([("dt", "b")])})
    )
    report.of(LineageDataset(T, observed=True, subset=subset), Side.READ)
    [degradation] = report.degradations()
    assert (degradation.code, degradation.dataset) == ("partitions_cut", T)
    assert "2 partitions of /lake/t were read" in degradation.message
    assert "max_partitions" in degradation.message


@pytest.mark.parametrize(
    ("where", "subset", "description"),
    [
        pytest.param(
            "country = 'PL' AND name LIKE 'a%'",
            {
                "type": "compare",
                "left": {"type": "field", "field": "country"},
                "right": {"type": "literal", "value": "PL"},
                "comparison": "EQUAL",
            },
            "name LIKE 'a%'",
            id="the part of an AND that can be written",
        ),
        pytest.param(
            "country = 'PL' OR name LIKE 'a%'",
            None,
            "country=PL OR name LIKE 'a%'",
            id="an OR is written in full or not at all",
        ),
    ],
)
def test_what_the_specification_cannot_express_is_a_description(where, subset, description):
    task = TaskLineage(
        Outcome.COMPLETE,
        (
            SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS).of(
                LineageDataset(T, observed=True), Side.READ, predicates.condition(where)
            ),
        ),
    )
    document = event(task)
    validate_event(document)
    sides = document["inputs"][0]["inputFacets"]
    assert (sides.get("subset") or {}).get("inputCondition") == subset
    assert sides["sparkLineage_subsetDescription"]["description"] == description


def test_the_check_facet_names_where_a_value_comes_from():
    source = Source(
        Kind.PATH, "application_args[5]", "/lake/t/dt={{ ds }}", "1", "dt", ("ds",), ("ds",)
    )
    expectation = Expectation(
        Kind.PATH,
        dataset=T,
        partitions=(Partition.from_values([("dt", "1")]),),
        dimensions=DT,
        sources=(source,),
    )
    task = TaskLineage(Outcome.COMPLETE, (reported(Side.READ, expectation),))
    document = event(task)
    validate_event(document)
    facet = document["run"]["facets"]["sparkLineage_partitionCheck"]
    assert facet["summary"] == "read t dt=1"
    [entry] = facet["reads"]
    assert entry["from"] == [
        {
            "value": "1",
            "kind": "path",
            "field": "application_args[5]",
            "template": "/lake/t/dt={{ ds }}",
            "dimension": "dt",
            "expressions": ["ds"],
            "variables": ["ds"],
        }
    ]
    assert entry["expected"] == {"summary": "dt=1", "count": 1, "first": "dt=1", "last": "dt=1"}
    assert entry["dimensions"] == [{"fields": ["dt"], "transform": "identity"}]
    assert "observed" not in entry
    assert "sparkLineage_partitions" not in (document["inputs"][0].get("facets") or {})


PLANNED = frozenset(Partition.from_values([("dt", f"{n}")]) for n in range(10))
READ = frozenset(Partition.from_values([("dt", f"{n}")]) for n in range(7))


@pytest.mark.parametrize(
    ("planned", "summary", "text"),
    [
        pytest.param(
            PLANNED,
            "t dt=0 … dt=9 (10 partitions), ended early",
            "planned to read t dt=0 … dt=9 (10 partitions), ended early",
            id="all of them",
        ),
        pytest.param(
            PLANNED - READ,
            "t dt=0 … dt=9 (10 partitions), 3 of them only planned",
            "read t dt=0 … dt=9 (10 partitions), 3 of them only planned",
            id="some of them",
        ),
    ],
)
def test_partitions_that_may_not_have_been_opened_are_planned(planned, summary, text):
    report = SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    subset = Subset(DT, PLANNED, planned=planned)
    known = {"observed": True, "subset": subset, "witness": Witness.BOTH}
    document = event(
        TaskLineage(Outcome.COMPLETE, (report.of(LineageDataset(T, **known), Side.READ),))
    )
    validate_event(document)
    check = document["run"]["facets"]["sparkLineage_partitionCheck"]
    [entry] = check["reads"]
    assert (check["summary"], entry["summary"]) == (text, summary)
    assert entry["planned"]["count"] == len(planned)
    [inexact] = report.degradations()
    assert (inexact.code, inexact.side) == ("partitions_inexact", Side.READ)
    assert f"{len(planned)} of them were planned to be read" in inexact.message


def test_a_summary_says_all_of_it_of_reads_alone():
    """To an unpartitioned output, rows may have been added."""
    subset = Subset(DT, frozenset({Partition.from_values([("dt", "1")])}), full=True)
    read = reported(Side.READ, observed=True, subset=subset)
    document = event(TaskLineage(Outcome.COMPLETE, (read,), (reported(Side.WRITE, observed=True),)))
    check = document["run"]["facets"]["sparkLineage_partitionCheck"]
    assert check["summary"] == "read t all of it; wrote t unpartitioned"


@pytest.mark.parametrize(
    ("witness", "unreported", "how"),
    [
        pytest.param(Witness.DECLARED, "declared", "declared to", id="declared alone"),
        pytest.param(None, "last_known", "last known to", id="of the last run"),
    ],
)
def test_what_nobody_reported_is_not_called_read_or_written(witness, unreported, how):
    expectation = Expectation(
        Kind.DECLARED, dataset=T, partitions=(Partition.from_values([("dt", "1")]),), dimensions=DT
    )
    read, written = (reported(side, expectation, witness=witness) for side in Side)
    document = event(TaskLineage(Outcome.COMPLETE, (read,), (written,)))
    validate_event(document)
    check = document["run"]["facets"]["sparkLineage_partitionCheck"]
    assert check["summary"] == f"{how} read t dt=1; {how} write t dt=1"
    assert [e["unreported"] for e in (*check["reads"], *check["writes"])] == [unreported] * 2
    file = io.StringIO()
    print_event(read_document(document), file)
    assert f"{how} be read " in file.getvalue()


def test_a_failed_write_is_what_was_to_be_written():
    expectation = Expectation(
        Kind.PATH, dataset=T, partitions=(Partition.from_values([("dt", "1")]),), dimensions=DT
    )
    report = SubsetReport((expectation,), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    failed = report.of(LineageDataset(T), Side.WRITE, has_failed=True)
    read = reported(Side.READ, observed=True)
    document = event(TaskLineage(Outcome.FAIL, (read,), (failed,)))
    validate_event(document)
    check = document["run"]["facets"]["sparkLineage_partitionCheck"]
    assert check["summary"] == "read t all of it; was to write t, which failed"
    [entry] = check["writes"]
    assert (entry["failed"], entry["accessed"]) == (True, "unknown")
    [output] = document["outputs"]
    assert output["facets"] == output["outputFacets"] == {}
    file = io.StringIO()
    print_event(read_document(document), file)
    assert "was to be written" in file.getvalue()


def test_a_task_without_partitions_has_no_check_facet():
    document = event(TaskLineage(Outcome.COMPLETE, (reported(Side.READ, observed=True),)))
    assert "sparkLineage_partitionCheck" not in document["run"]["facets"]


def test_the_proposals_facet_has_the_proposals_body_on_request():
    [output] = event(lineage(1), representation=Representation(bare_partitions=True))["outputs"]
    assert "partitions" not in event(lineage(1))["outputs"][0]["facets"]
    facet = output["facets"]["partitions"]
    assert {k: v for k, v in facet.items() if not k.startswith("_")} == {
        "dimensions": [{"fields": ["dt"], "transform": "identity"}],
        "description": "PARTITIONED BY (dt)",
    }


@pytest.mark.parametrize(
    ("dimensions", "description"),
    [
        ((Dimension.of_column("dt"), Dimension.of_column("region")), "PARTITIONED BY (dt, region)"),
        ((Dimension.of_column("ts", "day", "ts_day"),), "PARTITIONED BY (day(ts))"),
        (
            (Dimension.of_column("id", "bucket[16]", "id_bucket"),),
            "PARTITIONED BY (bucket(16, id))",
        ),
        ((Dimension(("a", "b"), "foo(a, b)", "ab"),), "PARTITIONED BY (foo(a, b))"),
    ],
)
def test_partitioning_is_described_as_in_the_proposal(dimensions, description):
    partition = Partition.from_values([(d.label, "1") for d in dimensions])
    subset = Subset(dimensions, frozenset({partition}))
    task = TaskLineage(
        Outcome.COMPLETE, outputs=(reported(Side.WRITE, observed=True, subset=subset),)
    )
    [output] = event(task)["outputs"]
    assert output["facets"]["sparkLineage_partitions"]["description"] == description


def test_observed_partitions_go_before_locations():
    document = event(lineage(1, locations=frozenset({"/lake/t/dt=0000"})))
    [read] = document["inputs"]
    assert read["inputFacets"]["subset"]["inputCondition"]["type"] == "partition"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "no partition"), (2, "dt=0000, dt=0001"), (9, "dt=0000 … dt=0008 (9 partitions)")],
)
def test_show_names_a_few_partitions_and_sums_up_many(count, text):
    file = io.StringIO()
    print_event(read_document(event(lineage(count))), file)
    datasets, _, _ = file.getvalue().partition("Expected against observed")
    assert datasets.count(text) == 2


@pytest.mark.parametrize(
    ("reads", "writes", "status"),
    [
        pytest.param(["undeclared"], [], "undeclared", id="one"),
        pytest.param(["matched", "undeclared"], [], "matched", id="of the reads"),
        pytest.param(["matched"], ["missing", "unobserved"], "missing", id="of both sides"),
    ],
)
def test_the_worst_status_sums_up(reads, writes, status):
    datasets = [
        [
            LineageDataset(T, expected=Expected(Kind.DECLARED), check=Reconciliation(each))
            for each in side
        ]
        for side in (reads, writes)
    ]
    assert check_facet(*datasets)["status"] == status
