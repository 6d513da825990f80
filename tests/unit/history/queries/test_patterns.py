"""Patterns, gaps and drift of the runs in the tables."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec
import pytest

pytest.importorskip("duckdb", reason="the extra history has it")

from airflow_provider_sparklineage.history.queries.answers import values_of
from airflow_provider_sparklineage.history.queries.drift import compare, drift
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.patterns.inverse import InverseRelation
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    learned_of,
    patterns,
    writes_of,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.unit.history.queries.answers import START, Answers

REVENUE = DatasetName("ns", "revenue")


def day(number: int) -> str:
    return f"dt={date(2024, 1, 1) + timedelta(number)}"


@pytest.fixture
def answers():
    return Answers()


def daily(answers, days=20, without=()):
    for n in range(days):
        if n not in without:
            answers.run(n, [day(n - 1)], [day(n)])


# --- patterns -------------------------------------------------------------------------------------


def test_a_pattern_is_of_an_input_a_task_and_an_output(answers):
    daily(answers)
    answers.run(20, [("rates", None)], [day(20)], task="repair")
    found = patterns(answers, REVENUE)
    assert [(p.job, p.input.name, p.relation, p.support, p.seen) for p in found] == [
        ("dag.build", "orders", "dt = dt - 1 day", 20, 20),
        ("dag.repair", "rates", "the whole dataset", 1, 1),
    ]


def test_a_pattern_is_json(answers):
    daily(answers)
    answers.run(20, [day(3)], [day(20)])
    document = msgspec.json.decode(msgspec.json.encode(patterns(answers, REVENUE)[0]))
    assert document["rules"] == [
        {
            "labels": ["dt"],
            "of": ["dt"],
            "kind": "offset",
            "unit": "day",
            "first": -1,
            "last": -1,
            "first_of": "day",
            "last_of": "day",
        }
    ]
    assert [one["run"]["run_id"] for one in document["exceptions"]] == ["build-20"]
    assert document["exceptions"][0]["unexpected"] == [day(3)]


def test_a_failed_run_supports_nothing_and_breaks_nothing(answers):
    daily(answers)
    answers.run(20, [day(3)], [day(20)], state="FAIL")
    assert [(p.support, p.seen) for p in patterns(answers, REVENUE)] == [(20, 20)]


def test_a_run_of_which_it_is_not_known_what_it_read_is_unclear(answers):
    daily(answers)
    answers.run(20, [], [day(20)])
    names = {"namespace": "ns", "name": "orders", "job": "dag.build"}
    answers.add("accesses", run_id="build-20", side="read", extent="condition", **names)
    assert [(p.seen, p.unclear) for p in patterns(answers, REVENUE)] == [(20, 1)]


@pytest.mark.parametrize(("count", "seen"), [(31, 21), (30, 20)])
def test_a_range_without_holes_is_its_partitions(answers, count, seen):
    daily(answers)
    answers.run(20, [], [day(20)])
    ends = {"first_partition": day(-10), "last_partition": day(20), "partition_count": count}
    names = {"namespace": "ns", "name": "orders", "job": "dag.build"}
    answers.add("accesses", run_id="build-20", side="read", extent="range", **names, **ends)
    assert [p.seen for p in patterns(answers, REVENUE)] == [seen]


def test_what_a_whole_output_is_made_of_follows_from_the_dates_of_the_run(answers):
    for n in range(20):
        answers.run(n, [day(n - 2)], [("latest", None)])
    pattern = patterns(answers, DatasetName("ns", "latest"))[0]
    assert pattern.relation == "dt = data_interval_start - 2 days"


def test_what_does_not_follow_from_the_output_may_follow_from_the_dates_of_the_run(answers):
    for n in range(60):
        answers.run(n, [day(n - 1)], [f"month={date(2024, 1, 1) + timedelta(n):%Y-%m}"])
    pattern = patterns(answers, REVENUE)[0]
    assert (pattern.relation, pattern.support) == ("dt = data_interval_start - 1 day", 60)


def test_days_of_a_month_are_its_days_though_it_is_not_over(answers):
    for n in range(20):
        answers.run(n, [day(k) for k in range(n + 1)], ["month=2024-01"])
    assert patterns(answers, REVENUE)[0].relation == "dt = days of month"


def test_a_partition_that_was_never_written_is_planned_by_the_pattern(answers):
    daily(answers)
    (_, learned), *_ = learned_of(answers, writes_of(answers, [REVENUE]))[REVENUE]
    days = [day(n) for n in range(390, 410)]
    inverse = InverseRelation(learned.relation, [values_of(one) for one in days])
    assert [days[number] for number in inverse.leading_to(day(400))] == [day(401)]


def test_a_dataset_that_nobody_wrote_has_no_patterns_and_no_gaps(answers):
    assert (patterns(answers, REVENUE), gaps(answers, REVENUE)) == ([], [])


# --- gaps -----------------------------------------------------------------------------------------


def found_gaps(answers):
    return [(gap.cell, gap.reason, gap.run and gap.run.run_id) for gap in gaps(answers, REVENUE)]


def test_a_schedule_that_was_kept_has_no_gap(answers):
    daily(answers)
    assert found_gaps(answers) == []


def test_each_gap_says_why_it_is_one(answers):
    daily(answers, 20, without={5, 7, 9, 11, 13})
    answers.run(5, [], [day(5)], state="FAIL")
    answers.run(7, [], [], task="other")
    answers.run(11, [], [day(3)])
    answers.run(13, [], [], state="RUNNING")
    assert found_gaps(answers) == [
        (day(5), "failed", "build-5"),
        (day(7), "no_run", None),
        (day(9), "no_run", None),
        (day(11), "not_written", "build-11"),
        (day(13), "running", "build-13"),
    ]
    at = [gap.dag_run_id for gap in gaps(answers, REVENUE)]
    assert at == ["scheduled-5", "scheduled-7", None, "scheduled-11", "scheduled-13"]


@pytest.mark.parametrize("label", ["hour", "hr", "event_hour"])
def test_an_hour_without_a_run_and_one_of_a_failed_run_are_missing(label):
    answers = Answers()
    for n in range(120):
        start = START.replace(hour=0) + timedelta(hours=n)
        dates = {"logical_date": start, "data_interval_start": start}
        dates |= {"data_interval_end": start + timedelta(hours=1)}
        cell = f"dt={start:%Y-%m-%d}/{label}={start:%H}"
        if n != 47:
            state, cells = ("FAIL", []) if n == 51 else ("COMPLETE", [cell])
            answers.run(n, [], cells, state=state, **dates)
    found = [(gap.partition, gap.reason) for gap in gaps(answers, REVENUE)]
    assert found == [
        ({"dt": "2024-01-02", label: "23"}, "no_run"),
        ({"dt": "2024-01-03", label: "03"}, "failed"),
    ]


def test_a_failed_try_that_was_repeated_leaves_no_gap(answers):
    daily(answers)
    answers.run(5, [], [day(5)], state="FAIL", run_id="first try", try_number=0)
    assert found_gaps(answers) == []


def test_a_partition_that_was_dropped_is_a_gap(answers):
    daily(answers)
    answers.rows("UPDATE changes SET valid_to = valid_from WHERE cell = $cell", {"cell": day(4)})
    assert found_gaps(answers) == [(day(4), "dropped", "build-4")]


def test_a_later_write_of_the_whole_fills_gaps_and_an_earlier_one_does_not(answers):
    daily(answers, 20, without={5, 15})
    whole = {"namespace": "ns", "name": "revenue", "extent": "all", "mode": "overwrite"}
    answers.add("changes", run_id="load", valid_from=START + timedelta(10), **whole)
    assert found_gaps(answers) == [(day(15), "no_run", None)]


@pytest.mark.parametrize("extent", ["range", "unknown", "condition"])
def test_what_a_run_wrote_without_saying_which_partitions_is_no_gap(answers, extent):
    daily(answers, 20, without={5})
    answers.run(5)
    whole = {"namespace": "ns", "name": "revenue", "extent": extent, "mode": "overwrite"}
    answers.add("changes", run_id="build-5", valid_from=START + timedelta(5), **whole)
    assert found_gaps(answers) == []


def test_partitions_of_other_schedulers_are_expected_at_their_own_step(answers):
    nothing = dict.fromkeys(("dag_id", "logical_date", "data_interval_start", "data_interval_end"))
    for n in range(0, 140, 7):
        if n != 70:
            answers.run(n, [], [day(n)], **nothing)
    assert found_gaps(answers) == [(day(70), "no_run", None)]


def test_the_partition_of_a_month_is_due_once(answers):
    for n in range(60):
        cell = f"month={date(2024, 1, 1) + timedelta(n):%Y-%m}"
        answers.run(n, [], [cell])
    assert found_gaps(answers) == []


# --- drift ----------------------------------------------------------------------------------------


def found_drift(answers):
    return [(one.kind, one.run.run_id, one.message) for one in drift(answers, "dag.build")]


def test_a_task_that_does_the_same_each_day_does_not_drift(answers):
    daily(answers)
    assert found_drift(answers) == []


def test_inputs_and_outputs_that_come_and_go_are_drift(answers):
    answers.run(0, [day(0), ("rates", None)], [day(0)])
    answers.run(1, [day(1)], [day(1), ("extra", None)])
    assert found_drift(answers) == [
        ("input_went", "build-1", "rates is no longer read."),
        ("output_appeared", "build-1", "extra is written now."),
    ]


def test_columns_whose_sources_change_are_drift(answers):
    answers.run(0, [day(0)], [day(0)], edges=[("a", "x", "IDENTITY"), ("b", "x", "IDENTITY")])
    answers.run(1, [day(1)], [day(1)], edges=[("a", "y", "IDENTITY"), ("b", "x", "AGGREGATION")])
    answers.run(2, [day(2)], [day(2)])
    answers.run(3, [day(3)], [day(3)], edges=[("a", "y", "IDENTITY"), ("c", "x", "IDENTITY")])
    assert [
        (d.kind, d.column, d.run.run_id, d.before.run_id) for d in drift(answers, "dag.build")
    ] == [
        ("sources_changed", "a", "build-1", "build-0"),
        ("transformation_changed", "b", "build-1", "build-0"),
        ("column_appeared", "c", "build-3", "build-1"),
        ("column_went", "b", "build-3", "build-1"),
    ]


def test_columns_come_and_go_with_their_dataset(answers):
    answers.run(0, [day(0)], [day(0)], edges=[("a", "x", "IDENTITY"), ("b", "x", "IDENTITY")])
    answers.run(1, [day(1)], [("other", day(1))])
    names = {"in_namespace": "ns", "in_name": "orders", "in_column": "x", "type": "DIRECT"}
    names |= {"out_namespace": "ns", "out_name": "other", "out_column": "c"}
    answers.add("columns", run_id="build-1", **names)
    assert [(d.kind, d.dataset.name) for d in drift(answers, "dag.build")] == [
        ("output_appeared", "other"),
        ("output_went", "revenue"),
    ]


def test_a_count_of_partitions_out_of_its_range_and_a_broken_pattern_are_drift(answers):
    daily(answers)
    answers.run(20, [day(19), day(18), day(17)], [day(20)])
    assert found_drift(answers) == [
        ("partition_count", "build-20", "orders: 3 partitions read; 0 to 2 are usual."),
        ("pattern_broken", "build-20", "orders was not read as usual: dt = dt - 1 day."),
    ]


def test_one_partition_more_than_always_is_no_drift_of_the_count(answers):
    daily(answers)
    answers.run(20, [day(19), day(18)], [day(20)])
    assert [kind for kind, *_ in found_drift(answers)] == ["pattern_broken"]


@pytest.mark.parametrize("is_written", [False, True], ids=["read", "read and written"])
def test_a_count_that_grows_through_each_month_by_a_rule_is_no_drift(answers, is_written):
    for n in range(70):
        until_then = [one for one in map(day, range(n + 1)) if one[:10] == day(n)[:10]]
        answers.run(n, until_then, until_then if is_written else [day(n)])
    assert found_drift(answers) == []
    skipped = [one for one in map(day, range(66)) if one[:10] == day(65)[:10]][4:]
    answers.run(70, skipped, [day(65)])
    assert [run for kind, run, _ in found_drift(answers) if kind == "pattern_broken"] == [
        "build-70"
    ]


def test_four_runs_are_too_few_for_a_range(answers):
    daily(answers, 4)
    answers.run(4, [day(3), day(2), day(1)], [day(4)])
    assert "partition_count" not in [kind for kind, *_ in found_drift(answers)]


def test_a_change_names_what_it_is_about_by_short_names(answers):
    answers.run(0, [day(0)], [day(0)], edges=[("a", "x", "IDENTITY")])
    answers.run(1, [day(1)], [day(1)], edges=[("a", "y", "IDENTITY")])
    [one] = drift(answers, "dag.build")
    assert one.message == "revenue.a: now without orders.x and with orders.y."
    assert one.change == "now without orders.x and with orders.y."
    assert (one.was, one.now) == (("ns/orders.x",), ("ns/orders.y",))


@pytest.fixture
def two_airflows(answers):
    """Let a task of the same name run in two Airflows, one of which reads more from day 2 on."""
    for n in range(4):
        answers.run(n, [day(n)], [day(n)], run_id=f"of-jobs-{n}")
        more = [("rates", None)] if n > 1 else []
        answers.run(n, [day(n), *more], [day(n)], run_id=f"of-test-{n}", namespace="test")
    return answers


@pytest.mark.parametrize("task", ["dag.build", "build", "test:dag.build", "test:build"])
def test_tasks_of_one_name_in_two_namespaces_are_compared_separately(two_airflows, task):
    [one] = drift(two_airflows, task)
    assert (one.message, one.namespace) == ("rates is read now.", "test")
    assert (one.run.run_id, one.before.run_id) == ("of-test-2", "of-test-1")


def test_the_tasks_of_one_namespace_alone_can_be_compared(two_airflows):
    assert drift(two_airflows, "jobs:dag.build") == []


def test_what_is_not_judged_of_two_namespaces_names_them(two_airflows):
    names = {name for one in compare(two_airflows, "build").unjudged for name in one.names}
    assert {"jobs:dag.build", "test:dag.build"} <= names
    names = {name for one in compare(two_airflows, "test:build").unjudged for name in one.names}
    assert "dag.build" in names


def test_a_task_that_is_not_there_is_refused_with_those_that_are(answers):
    daily(answers, 1)
    with pytest.raises(HistoryError, match=r"No successful run of 'dag\.other' .* dag\.build"):
        drift(answers, "dag.other")
