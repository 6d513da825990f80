"""Whether partitions were as expected, as DataHub's assertions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.assertions import partition_checks
from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.unit.datahub.partition_events import (
    ORDERS,
    RUN,
    captured,
    checked_write,
    event,
    output,
    partitions,
    stored_below,
)
from tests.unit.datahub.sdk import checked

_SEEN = captured(witness="both", accessed="part")
_URN = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"


def _assertions(document: dict[str, Any]) -> list[Any]:
    return checked(partition_checks(Subject(document, DEFAULT_CONVERSION)))


def _result(document: dict[str, Any]) -> Any:
    results = [o.aspect for o in _assertions(document) if o.aspect_name == "assertionRunEvent"]
    return results[0]["result"] if results else None


def _with(status: str, state: str = "COMPLETE", **entry: Any) -> dict[str, Any]:
    run = _SEEN | checked_write(status=status, **entry)
    return event(output(partitions("2026-01-01")), run=run, state=state)


def _reading(*statuses: str, write: str = "undeclared") -> dict[str, Any]:
    reads = [
        {"dataset": {"namespace": "s3://lake", "name": f"in{n}"}, "summary": "", "status": status}
        for n, status in enumerate(statuses)
    ]
    document = _with(write)
    document["run"]["facets"]["sparkLineage_partitionCheck"]["reads"] = reads
    return {**document, "inputs": [entry["dataset"] for entry in reads]}


@pytest.mark.parametrize(
    ("status", "result"),
    [("matched", "SUCCESS"), ("missing", "FAILURE"), ("unexpected", "FAILURE")],
)
def test_a_partition_that_is_not_as_expected_is_red(status, result):
    info, platform, run = _assertions(_with(status))

    assert info.urn == platform.urn == run.urn
    assert info.aspect["customAssertion"] == {"type": "Partitions", "entity": _URN}
    assert info.aspect["description"] == ("shop.revenue writes the partitions that are expected")
    assert platform.aspect == {"platform": "urn:li:dataPlatform:airflow"}
    assert run.aspect["result"]["type"] == result
    assert run.aspect["asserteeUrn"] == _URN
    assert run.aspect["runId"] == RUN
    assert run.aspect["batchSpec"] == {"nativeBatchId": "dt=2026-01-01"}


def test_what_nobody_saw_has_no_result_because_datahub_would_take_any_for_a_failure():
    found = [one.aspect_name for one in _assertions(_with("unobserved"))]

    assert found == ["assertionInfo", "dataPlatformInstance"]


@pytest.mark.parametrize("status", ["undeclared", "of tomorrow", None, ["missing"]])
def test_what_nothing_is_expected_of_is_no_assertion(status):
    assert _assertions(_with(status)) == []


def test_a_result_says_what_was_expected_and_what_was_observed():
    document = _with(
        "unexpected",
        expected={"summary": "dt=2026-01-02", "count": 1},
        missing={"summary": "dt=2026-01-02", "count": 1},
        unexpected={"summary": "dt=2026-01-01", "count": 1},
        observed={"summary": "dt=2026-01-01", "count": 1},
        **{"from": [{"field": "writes[0]", "template": "dt={{ ds }}"}]},
    )
    document["run"]["facets"]["airflow"] = {"taskInstance": {"log_url": "https://airflow/log"}}

    assert _result(document) == {
        "type": "FAILURE",
        "externalUrl": "https://airflow/log",
        "nativeResults": {
            "check": "unexpected",
            "expected": "dt=2026-01-02",
            "missing": "dt=2026-01-02",
            "unexpected": "dt=2026-01-01",
            "observed": "dt=2026-01-01",
            "expected from": "writes[0]: dt={{ ds }}",
        },
    }


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        (["matched", "missing"], "FAILURE"),
        (["unobserved", "unexpected"], "FAILURE"),
        (["matched", "unobserved"], None),
        (["matched", "undeclared"], "SUCCESS"),
        (["undeclared"], None),
    ],
)
def test_a_wrong_partition_that_was_read_is_red_on_what_was_made_of_it(statuses, result):
    found = _assertions(_reading(*statuses))

    assert {o.aspect["asserteeUrn"] for o in found if o.aspect_name == "assertionRunEvent"} == (
        {_URN} if result else set()
    )
    verdict = _result(_reading(*statuses))
    assert (verdict and verdict["type"]) == result


def test_reads_and_writes_are_assertions_of_their_own():
    found = _assertions(_reading("missing", write="matched"))

    results = [o.aspect["result"]["type"] for o in found if o.aspect_name == "assertionRunEvent"]
    assert results == ["SUCCESS", "FAILURE"]
    assert len({one.urn for one in found}) == 2


def test_a_result_of_many_reads_names_the_worst():
    found = _result(_reading(*["matched"] * 300, "missing"))

    assert len(found["nativeResults"]) == 20
    assert found["nativeResults"]["in300: check"] == "missing"


def test_an_assertion_is_the_same_for_each_run_of_the_job_and_its_results_are_kept():
    first = _with("matched")
    second = {**first, "run": {**first["run"], "runId": "another"}}
    (*_, one), (*_, again), (*_, other) = map(_assertions, (first, first, second))

    assert one.urn == other.urn
    assert stored_below(one) == stored_below(again) != stored_below(other)


def test_an_assertion_is_of_one_job():
    first = _with("matched")
    second = {**first, "job": {**first["job"], "name": "shop.other"}}

    assert {o.urn for o in _assertions(first)}.isdisjoint(o.urn for o in _assertions(second))


@pytest.mark.parametrize(
    "document",
    [
        _with("missing", state="START"),
        _with("missing", state="RUNNING"),
        event(
            output(partitions("2026-01-01")),
            run=captured(witness="listener", failed=True) | checked_write(status="missing"),
        ),
        event(ORDERS, run=captured(witness="declared") | checked_write(status="unobserved")),
        {**_with("missing"), "eventTime": None},
    ],
    ids=["a start", "a sign of life", "a failed write", "a declaration", "an event of no time"],
)
def test_nothing_is_judged_by(document):
    assert _assertions(document) == []


def test_a_failed_run_is_judged_by_what_it_wrote():
    assert _result(_with("missing", state="FAIL"))["type"] == "FAILURE"
