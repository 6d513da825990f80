"""What was written, as DataHub's operations."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.partitions import operations
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.unit.datahub.partition_events import (
    captured,
    event,
    output,
    partitions,
    stored_below,
)
from tests.unit.datahub.sdk import checked

_MILLIS = 1767323045678
_SEEN = captured(witness="both", accessed="part")


def _operations(document: dict[str, Any]) -> list[Any]:
    return checked(operations(Subject(document, DEFAULT_CONVERSION)))


def _of(document: dict[str, Any]) -> list[tuple[str, str]]:
    specs = [one.aspect["partitionSpec"] for one in _operations(document)]
    return [(spec["type"], spec["partition"]) for spec in specs]


def _days(number: int) -> list[str]:
    return [str(date(2026, 1, 1) + timedelta(days=day)) for day in range(number)]


def test_each_partition_that_spark_wrote_is_an_operation(recorded):
    found = _operations(recorded("staging_chain").event)

    [revenue] = [one for one in found if one.urn.endswith("lake/revenue,PROD)")]
    assert revenue.aspect_name == "operation"
    assert revenue.aspect["partitionSpec"] == {"partition": "dt=2024-05-06", "type": "PARTITION"}
    assert revenue.aspect["operationType"] == "INSERT"
    assert revenue.aspect["customProperties"]["lifecycle"] == "OVERWRITE"
    assert revenue.aspect["numAffectedRows"] == 2


def test_an_operation_names_its_job_and_its_run():
    [found] = _operations(event(output(partitions("2026-01-01"), rows=7)))

    assert found.aspect == {
        "timestampMillis": _MILLIS,
        "lastUpdatedTimestamp": _MILLIS,
        "messageId": "01890000-0000-7000-8000-000000000001",
        "partitionSpec": {"partition": "dt=2026-01-01", "type": "PARTITION"},
        "operationType": "INSERT",
        "sourceType": "DATA_PROCESS",
        "numAffectedRows": 7,
        "customProperties": {
            "job": "urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),revenue)",
            "run": "urn:li:dataProcessInstance:01890000-0000-7000-8000-000000000001",
        },
    }


def test_gms_keeps_each_partition_of_each_run_and_an_event_that_is_sent_twice_once():
    document = event(output(partitions("2026-01-01", "2026-01-02")))
    other = {**document, "run": {**document["run"], "runId": "another"}}

    first, again, of_other = (
        {stored_below(one) for one in _operations(sent)} for sent in (document, document, other)
    )

    assert len(first) == 2
    assert again == first
    assert first.isdisjoint(of_other)


def test_rows_of_several_partitions_are_not_claimed_of_each():
    found = _operations(event(output(partitions("2026-01-01", "2026-01-02"), rows=7)))

    assert all("numAffectedRows" not in one.aspect for one in found)
    assert [one.aspect["customProperties"]["rows of all partitions"] for one in found] == ["7", "7"]


def test_partitions_are_named_to_a_maximum_and_then_a_range_in_one():
    hundred, more = (event(output(partitions(*_days(number)), rows=7)) for number in (100, 101))

    assert len(_of(hundred)) == 100
    assert _of(more) == [("QUERY", "dt=2026-01-01 … dt=2026-04-11 (101 partitions)")]
    assert _operations(more)[0].aspect["numAffectedRows"] == 7


def test_operations_of_many_outputs_are_shared_out():
    outputs = [{**output(partitions(*_days(9))), "name": f"t{n}"} for n in range(200)]

    few, many = _of(event(*outputs[:100])), _of(event(*outputs))
    assert len(few) == 900
    assert many == [("QUERY", ", ".join(f"dt={day}" for day in _days(9)))] * 200


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        (output(), [("QUERY", "partitions not known")]),
        (
            output(lifecycleStateChange={"lifecycleStateChange": "OVERWRITE"}),
            [("QUERY", "partitions not known")],
        ),
        (
            output(lifecycleStateChange={"lifecycleStateChange": "CREATE"}),
            [("FULL_TABLE", "FULL_TABLE_SNAPSHOT")],
        ),
        (
            output({"type": "location", "locations": ["a/b", "a/c"]}),
            [("PARTITION", "a/b"), ("PARTITION", "a/c")],
        ),
        (
            output(
                {
                    "type": "compare",
                    "comparison": "GREATER_THAN",
                    "left": {"type": "literal", "value": "9"},
                    "right": {"type": "field", "field": "hour"},
                }
            ),
            [("QUERY", "hour < 9")],
        ),
        (
            output(
                {"type": "compare", "comparison": "EQUAL"},
                sparkLineage_partitions={"count": 300, "summary": "dt=1 … dt=300 (300 partitions)"},
            ),
            [("QUERY", "dt=1 … dt=300 (300 partitions)")],
        ),
        (
            {
                **output(),
                "outputFacets": {"sparkLineage_subsetDescription": {"description": "x>y"}},
            },
            [("QUERY", "x>y")],
        ),
        (
            output(
                {"type": "partition", "partitions": [{"dimensions": {"dt": None, "a/b": "c=d"}}]}
            ),
            [("PARTITION", "dt=__HIVE_DEFAULT_PARTITION__/a%2Fb=c%3Dd")],
        ),
    ],
    ids=[
        "no statement",
        "an overwrite, maybe of a partition",
        "a table that was created",
        "locations",
        "condition",
        "too many",
        "words",
        "no identifier",
    ],
)
def test_what_was_written_is_named_in_the_form_that_the_event_has(written, parts):
    assert _of(event(written)) == parts


def test_a_long_name_of_a_partition_is_bounded_and_still_its_own():
    found = _of(event(output(partitions("a" * 5000 + "1", "a" * 5000 + "2"))))

    assert len(set(found)) == 2
    assert all(len(name) <= 1000 for _, name in found)


@pytest.mark.parametrize(
    ("state", "facets"),
    [
        ("START", {}),
        ("RUNNING", {}),
        ("FAIL", {}),
        ("ABORT", {}),
        ("COMPLETE", captured(witness="declared", accessed="part")),
        ("COMPLETE", captured(witness="listener", accessed="unknown", failed=True)),
        ("COMPLETE", captured(witness="both", accessed="none")),
        ("COMPLETE", captured()),
        ("COMPLETE", {"processing_engine": {"name": "spark", "version": "4.0.5"}}),
    ],
    ids=[
        "a start",
        "a sign of life",
        "a failure that shows nothing",
        "an abort that shows nothing",
        "a declaration",
        "a write that failed",
        "a write of nothing",
        "what the last run did",
        "a job below the task, which has it as well",
    ],
)
def test_nothing_is_claimed_by(state, facets):
    written = output(partitions("2026-01-01"), rows=7)

    assert _operations(event(written, state=state, run=facets)) == []


def test_what_was_written_before_a_failure_is_claimed(recorded):
    found = _operations(recorded("killed_driver").event)

    assert [one.urn.rpartition("/")[2] for one in found] == ["good_orders,PROD)"]
    assert _of(event(output(partitions("2026-01-01")), state="FAIL", run=_SEEN)) == [
        ("PARTITION", "dt=2026-01-01")
    ]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("CREATE", "CREATE"),
        ("OVERWRITE", "INSERT"),
        ("TRUNCATE", "DELETE"),
        ("DROP", "DROP"),
        ("ALTER", "ALTER"),
        ("RENAME", "ALTER"),
    ],
)
def test_a_change_of_the_dataset_is_an_operation_of_its_kind(change, kind):
    facet = {"lifecycleStateChange": change}
    [found] = _operations(event(output(lifecycleStateChange=facet)))

    assert found.aspect["operationType"] == kind
    assert found.aspect["customProperties"]["lifecycle"] == change


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("INSERT OVERWRITE t SELECT 1", "INSERT"),
        ("-- daily\n/* of\nall */ merge into t using s on t.a = s.a", "UPDATE"),
        ("DELETE FROM t;", "DELETE"),
        ("TRUNCATE TABLE t", "DELETE"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("DELETE FROM t; INSERT INTO t SELECT 1", "UNKNOWN"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "UNKNOWN"),
        ("/* never ends", "UNKNOWN"),
        (["INSERT"], "UNKNOWN"),
    ],
)
def test_a_single_statement_is_an_operation_of_its_kind(query, kind):
    [found] = _operations(event(output(), job={"sql": {"query": query}}))

    assert found.aspect["operationType"] == kind


def test_a_statement_is_of_none_of_several_outputs():
    outputs = [output(), {**output(), "name": "customers"}]
    found = _operations(event(*outputs, job={"sql": {"query": "DELETE FROM orders"}}))

    assert [one.aspect["operationType"] for one in found] == ["UNKNOWN", "UNKNOWN"]


def test_a_dataset_that_is_there_twice_is_written_once():
    assert len(_operations(event(output(), output()))) == 1


def test_an_event_without_a_time_has_no_operation():
    assert _operations({**event(output()), "eventTime": "yesterday"}) == []


def test_partitions_of_files_and_of_the_table_that_they_are_of_are_all_operations_of_it():
    symlink = {"namespace": "hive://metastore:9083", "name": "shop.orders", "type": "TABLE"}
    path = output(partitions("2026-01-01"), symlinks={"identifiers": [symlink]})
    table = {**output(partitions("2026-01-01", "2026-01-02")), **symlink}

    found = _operations(event(path, table))
    assert len({one.urn for one in found}) == 1
    assert [one.aspect["partitionSpec"]["partition"] for one in found] == [
        "dt=2026-01-01",
        "dt=2026-01-02",
    ]
