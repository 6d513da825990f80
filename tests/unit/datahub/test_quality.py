"""What a task tested, as DataHub's assertions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.assertions import quality
from airflow_provider_sparklineage.datahub.configuration import Conversion, FieldPaths
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.model.terms import Side
from tests.checked_runs import RAW, REVENUE, accessed, freshness, neutral
from tests.unit.datahub.partition_events import ORDERS, event, stored_below
from tests.unit.datahub.sdk import checked

_URN = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"


def _tested(*tests: Any, state: str = "COMPLETE", place: str = "inputFacets") -> list[Any]:
    read = {**ORDERS, place: {"dataQualityAssertions": {"assertions": list(tests)}}}
    how = Conversion(field_paths=FieldPaths.V1)
    return checked(quality(Subject(event(inputs=[read], state=state), how)))


def _results(found: list[Any]) -> list[str]:
    return [o.aspect["result"]["type"] for o in found if o.aspect_name == "assertionRunEvent"]


@pytest.mark.parametrize("place", ["inputFacets", "facets"])
@pytest.mark.parametrize(("success", "result"), [(True, "SUCCESS"), (False, "FAILURE")])
def test_a_test_of_a_column_is_an_assertion_on_it(success, result, place):
    test = {"assertion": "not_null", "success": success, "column": "amount", "actual": "5"}

    info, platform, run = _tested(test, place=place)
    assert info.aspect["description"] == "not_null of amount"
    assert info.aspect["customAssertion"] == {
        "type": "Data quality",
        "entity": _URN,
        "field": f"urn:li:schemaField:({_URN},amount)",
    }
    assert platform.aspect_name == "dataPlatformInstance"
    assert run.aspect["result"] == {"type": result, "nativeResults": {"actual": "5"}}


def test_tests_are_assertions_of_their_own_and_the_same_in_each_run():
    tests = [
        {"assertion": "min", "success": True, "column": "a"},
        {"assertion": "min", "success": True, "column": "b"},
        {"assertion": "min", "success": False, "column": "a"},
        {"assertion": "row_count", "success": True, "name": "enough", "description": "Enough."},
    ]

    first, again = _tested(*tests), _tested(*tests)
    assert first == again
    runs = [one for one in first if one.aspect_name == "assertionRunEvent"]
    assert len({stored_below(one) for one in runs}) == len({one.urn for one in runs}) == 4
    assert first[-3].aspect["description"] == "Enough."


def test_the_tests_of_a_task_that_they_fail_are_red():
    assert _results(_tested({"assertion": "min", "success": False}, state="FAIL")) == ["FAILURE"]


@pytest.mark.parametrize(
    "test", [None, {}, {"assertion": "min"}, {"assertion": "min", "success": "yes"}, {"success": 1}]
)
def test_a_test_of_another_shape_is_none(test):
    assert _tested(test) == []


def test_tests_are_bounded():
    found = _tested(*({"assertion": f"test {n}", "success": True} for n in range(600)))

    assert len(_results(found)) == 500


def test_a_start_has_tested_nothing():
    assert _tested({"assertion": "min", "success": True}, state="START") == []


def test_the_partition_checks_of_this_package_have_no_second_assertion():
    run = neutral(
        [accessed(RAW, Side.READ, ("04",), "05")],
        [accessed(REVENUE, Side.WRITE, ("05",), "06")],
    )
    converted = proposals(run)
    infos = [one.aspect for one in converted if one.aspect_name == "assertionInfo"]
    assert [info["customAssertion"]["type"] for info in infos] == ["Partitions", "Partitions"]
    assert all("lake/revenue" in info["customAssertion"]["entity"] for info in infos)


@pytest.mark.parametrize(("findings", "result"), [("", "SUCCESS"), ("dt=05 is stale", "FAILURE")])
def test_a_freshness_check_is_green_or_red(findings, result):
    how = Conversion(field_paths=FieldPaths.V1)
    found = checked(quality(Subject(freshness(REVENUE, findings), how)))
    assert _results(found) == [result]
