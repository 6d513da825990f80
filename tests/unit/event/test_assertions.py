"""Checks in OpenLineage's own facets: what is in them, where, and what Marquez shows of it."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.json import encode
from msgspec.structs import replace

from airflow_provider_sparklineage.event.assertions import MAX_TEXT, freshness_check
from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.event.model import ASSERTIONS_KEY
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_LIMITS,
    MismatchPolicy,
    Representation,
)
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.checked_runs import (
    CASES,
    RAW,
    READ,
    REPORT,
    REVENUE,
    WROTE,
    Runs,
    accessed,
    days,
    freshness,
    neutral,
)
from tests.conftest import HEADER
from tests.marquez_model import MarquezModel
from tests.openlineage_spec import validate_event

MARQUEZ = BACKENDS["marquez"]


def assertions(dataset, place):
    return dataset[place].get("dataQualityAssertions", {}).get("assertions", [])


def run_tests(event):
    return event["run"]["facets"].get("test", {}).get("tests", [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_checks_on_the_pages_of_marquez(case):
    case(Runs(MarquezModel()))


def test_a_mismatch_is_a_failed_assertion_on_its_side_and_a_test_of_the_run():
    event = neutral(
        [accessed(RAW, Side.READ, ("04",), "05")],
        [accessed(REVENUE, Side.WRITE, ("05",), "05")],
    )
    validate_event(event)
    [read], [written] = event["inputs"], event["outputs"]
    facet = read["inputFacets"]["dataQualityAssertions"]
    assert facet["_schemaURL"].endswith("/1-1-0/DataQualityAssertionsDatasetFacet.json")
    assert facet["assertions"] == [
        {
            "assertion": READ,
            "success": False,
            "severity": "warn",
            "description": "The job reads the partitions of this dataset that are expected.",
            "expected": "dt=05",
            "actual": "dt=04",
            "params": {"origin": "declared"},
        }
    ]
    [passed] = assertions(written, "facets")
    assert (passed["assertion"], passed["success"], passed["actual"]) == (WROTE, True, "dt=05")
    assert assertions(read, "facets") == assertions(written, "outputFacets") == []
    assert [(t["name"], t["status"], t["type"]) for t in run_tests(event)] == [
        (f"{WROTE} of /lake/revenue", "pass", "partitions"),
        (f"{READ} of /lake/raw", "fail", "partitions"),
    ]
    assert event["run"]["facets"]["test"]["_schemaURL"].endswith("/1-0-1/TestRunFacet.json")


def test_what_nobody_observed_is_skipped_and_no_assertion():
    event = neutral([], [accessed(REVENUE, Side.WRITE, None, "05")])
    validate_event(event)
    assert assertions(event["outputs"][0], "facets") == []
    assert [t["status"] for t in run_tests(event)] == ["skip"]


@pytest.mark.parametrize(
    "dataset",
    [
        accessed(REVENUE, Side.WRITE, ("05",)),
        accessed(REVENUE, Side.WRITE, ("05",), "05", failed=True),
    ],
    ids=["nothing is expected", "the write failed"],
)
def test_what_is_not_checked_is_in_no_facet(dataset):
    event = neutral([], [dataset])
    assert assertions(event["outputs"][0], "facets") == run_tests(event) == []


def test_dates_in_arguments_check_nothing_as_they_can_only_match():
    event = neutral([], [accessed(REVENUE, Side.WRITE, ("05",), "05", kind=Kind.INFERRED)])
    assert assertions(event["outputs"][0], "facets") == run_tests(event) == []


@pytest.mark.parametrize(
    ("policy", "severity"),
    [
        (MismatchPolicy("warn"), "warn"),
        (MismatchPolicy("fail"), "error"),
        (MismatchPolicy("ignore"), None),
        (MismatchPolicy("fail", ("reads",)), None),
        (MismatchPolicy("fail", ("writes", "*/revenue")), "error"),
        (MismatchPolicy("fail", ("*/other",)), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("day", ["05", "06"], ids=["wrong", "right"])
def test_the_severity_is_the_consequence_of_a_mismatch(policy, severity, day):
    event = neutral([], [accessed(REVENUE, Side.WRITE, (day,), "06")], policy)
    [found] = assertions(event["outputs"][0], "facets")
    assert found.get("severity") == severity
    assert run_tests(event)[0].get("severity") == severity


def test_a_mismatch_that_is_not_certain_warns_as_it_fails_no_task():
    dimensions = (Dimension.of_column("dt"),)
    seen = Subset(dimensions, frozenset(days("05")), exact=False)
    expected = Expectation(Kind.DECLARED, Side.WRITE, REVENUE, partitions=days("06"))
    dataset = LineageDataset(REVENUE, observed=True, subset=seen, witness=Witness.BOTH)
    report = SubsetReport([expected], DEFAULT_LOCATOR, DEFAULT_LIMITS)
    event = neutral([], [report.of(dataset, Side.WRITE)], MismatchPolicy("fail"))
    assert [a["severity"] for a in assertions(event["outputs"][0], "facets")] == ["warn"]


def test_texts_are_the_same_in_each_run():
    first, second = (
        neutral([], [accessed(REVENUE, Side.WRITE, (day,), day)], day=int(day))
        for day in ("05", "06")
    )
    one, other = (assertions(event["outputs"][0], "facets")[0] for event in (first, second))
    assert one["assertion"] == other["assertion"]
    assert [t["name"] for t in run_tests(first)] == [t["name"] for t in run_tests(second)]


def where(predicate):
    expected = Expectation(Kind.DECLARED, Side.READ, RAW, where=predicate)
    subset = Subset((Dimension.of_column("dt"),), frozenset(days("05")))
    dataset = LineageDataset(RAW, observed=True, subset=subset, witness=Witness.BOTH)
    report = SubsetReport([expected], DEFAULT_LOCATOR, DEFAULT_LIMITS)
    return TaskLineage(Outcome.COMPLETE, (report.of(dataset, Side.READ),))


def test_literals_of_a_predicate_are_hidden_on_request():
    lineage = where("dt = '06'")
    shown = event_of(lineage, ReadReport(), header=HEADER)
    [hidden] = assertions(
        event_of(lineage, ReadReport(), Representation(redact_literals=True), header=HEADER)[
            "inputs"
        ][0],
        "inputFacets",
    )
    assert assertions(shown["inputs"][0], "inputFacets")[0]["expected"] == "dt = '06'"
    assert hidden["expected"] == "dt = ?"


def test_long_texts_are_truncated():
    names = ", ".join(f"'{n:04}'" for n in range(200))
    event = event_of(where(f"dt IN ({names})"), ReadReport(), header=HEADER)
    assert len(run_tests(event)[0]["expected"]) == MAX_TEXT


# --- Marquez --------------------------------------------------------------------------------------


def test_each_output_says_of_what_it_was_made():
    event = neutral(
        [accessed(RAW, Side.READ, ("04",), "05")],
        [accessed(REVENUE, Side.WRITE, ("05",), "05"), accessed(REPORT, Side.WRITE, ("05",))],
    )
    repaired = MARQUEZ.repaired(event)
    validate_event(repaired)
    assert assertions(repaired["inputs"][0], "inputFacets") == []
    texts = [[a["assertion"] for a in assertions(d, "facets")] for d in repaired["outputs"]]
    assert texts == [[WROTE, f"{READ} of /lake/raw"], [f"{READ} of /lake/raw"]]
    assert MARQUEZ.repaired(repaired) == repaired
    assert event["run"]["facets"]["test"] == repaired["run"]["facets"]["test"]
    assert repaired["run"]["facets"]["sparkLineage_capture"]["degradations"] == []


def test_an_event_without_checks_is_the_same_object_but_for_its_sources():
    event = MARQUEZ.repaired(neutral([accessed(RAW, Side.READ, ("04",))], []))
    assert MARQUEZ.repaired(event)["inputs"] == event["inputs"]


@pytest.mark.parametrize("findings", ["", "dt=05 is stale"])
def test_a_freshness_check_is_an_assertion_on_its_dataset(findings):
    event = freshness(REVENUE, findings)
    validate_event(event)
    [found] = assertions(event["inputs"][0], "inputFacets")
    assert (found["assertion"], found["success"]) == ("is up to date", not findings)
    assert (found["expected"], found["actual"]) == ("up to date", findings or "up to date")
    [tested] = run_tests(event)
    assert (tested["name"], tested["type"]) == ("/lake/revenue is up to date", "freshness")


# --- assertions of other producers, and what is not certain ---------------------------------------


NOT_NULL = {"assertion": "not_null", "success": True, "column": "id"}


def with_foreign(dataset, place, facet):
    """Give a dataset the facet of another producer, as the listener forwards it."""
    envelope = {"_producer": "https://example.com", "_schemaURL": "https://example.com/1.json"}
    return replace(dataset, **{place: {ASSERTIONS_KEY: Raw(encode({**envelope, **facet}))}})


def test_assertions_of_other_producers_stay():
    foreign = {"assertions": [NOT_NULL]}
    event = neutral(
        [with_foreign(accessed(RAW, Side.READ, ("04",), "05"), "side_facets", foreign)],
        [with_foreign(accessed(REVENUE, Side.WRITE, ("05",), "05"), "facets", foreign)],
    )
    [read], [written] = event["inputs"], event["outputs"]
    assert [a["assertion"] for a in assertions(read, "inputFacets")] == ["not_null", READ]
    assert [a["assertion"] for a in assertions(written, "facets")] == ["not_null", WROTE]
    repaired = MARQUEZ.repaired(event)
    assert assertions(repaired["inputs"][0], "inputFacets") == [NOT_NULL]
    texts = [a["assertion"] for a in assertions(repaired["outputs"][0], "facets")]
    assert texts == ["not_null", WROTE, f"{READ} of /lake/raw"]


def test_without_outputs_assertions_of_other_producers_stay():
    read = accessed(RAW, Side.READ, ("04",), "05")
    event = neutral([with_foreign(read, "side_facets", {"assertions": [NOT_NULL]})], [])
    [read] = MARQUEZ.repaired(event)["inputs"]
    assert assertions(read, "inputFacets") == [NOT_NULL]


def test_a_read_without_other_facets_stays_in_an_event_without_outputs():
    event = neutral([accessed(RAW, Side.READ, ("04",), "04")], [])
    [read] = event["inputs"]
    bare = {
        **read,
        "facets": {},
        "inputFacets": {ASSERTIONS_KEY: read["inputFacets"][ASSERTIONS_KEY]},
    }
    repaired = MARQUEZ.repaired({**event, "inputs": [bare]})
    assert [(d["name"], d["inputFacets"]) for d in repaired["inputs"]] == [("/lake/raw", {})]


@pytest.mark.parametrize("odd", [None, "text", [None], [{"column": "id"}], {}])
def test_odd_assertions_of_other_producers_do_no_harm(odd):
    read = accessed(RAW, Side.READ, ("04",), "05")
    dataset = with_foreign(read, "side_facets", {"assertions": odd})
    for outputs in ([], [accessed(REVENUE, Side.WRITE, ("05",))]):
        repaired = MARQUEZ.repaired(neutral([dataset], outputs))
        assert [d["name"] for d in repaired["inputs"]] == ["/lake/raw"]


def test_a_match_that_is_not_certain_is_no_success():
    exact = accessed(REVENUE, Side.WRITE, ("05",), "05")
    assert exact.subset is not None
    inexact = replace(exact, subset=replace(exact.subset, exact=False))
    event = neutral([], [inexact])
    assert assertions(event["outputs"][0], "facets") == []
    assert [one["status"] for one in run_tests(event)] == ["skip"]


def test_a_freshness_check_of_some_partitions_does_not_speak_for_all():
    check = freshness_check(REVENUE, "", "error", ["dt=05", "dt=06"])
    assert (check.text, check.actual) == (
        "has up-to-date partitions",
        "up to date (dt=05, dt=06)",
    )
