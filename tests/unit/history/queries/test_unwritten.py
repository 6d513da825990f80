"""What was never written is planned by the pattern of its task."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import unwritten
from airflow_provider_sparklineage.history.queries.answers import Plan
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.plan import with_unwritten
from airflow_provider_sparklineage.history.queries.stale import stale
from airflow_provider_sparklineage.history.queries.unwritten import Part, Unwritten, since_of
from tests.unit.history.queries.asked import named
from tests.unit.history.worlds import event, read, write

FIRST = datetime(2024, 10, 1)  # noqa: DTZ001  (facts have UTC)
DAYS = 12
TASKS = ("load", "make", "report", "sum")


def day(n):
    return f"dt={FIRST + timedelta(n):%Y-%m-%d}"


def run(task, n, *accesses, **fields):
    """Give the run of a task of a day: each task an hour later than the one before."""
    at = [FIRST + timedelta(n + 1, hours=TASKS.index(task), minutes=m) for m in (0, 1)]
    started, ended = (f"{time.isoformat()}.000000Z" for time in at)
    start, end = (f"{(FIRST + timedelta(k)).isoformat()}.000000Z" for k in (n, n + 1))
    known = {"dag_id": "shop", "task_id": task, "dag_run_id": f"day-{n}", "map_index": -1}
    known |= {"job": f"shop.{task}", "data_interval_start": start, "data_interval_end": end}
    known |= {"logical_date": start, "started": started}
    return event(f"{task}-{n}", ended, *accesses, **known | fields)


def shop(*, without=(), failed=(), days=DAYS):
    """Give a shop of three tasks: each report is of two days."""
    for n in range(days):
        tasks = {
            "load": (write(day(n)),),
            "make": (read(day(n)), write(day(n), name="revenue")),
            "report": (
                *(read(day(k), name="revenue") for k in (n - 1, n) if k >= 0),
                write(day(n), name="report"),
            ),
        }
        for task, accesses in tasks.items():
            if (task, n) in failed:
                yield run(task, n, event_type="FAIL")
            elif (task, n) not in without:
                yield run(task, n, *accesses)


def planned(found):
    return [(step.task_id, step.dag_run_id, step.wave) for step in found.plan.steps]


def test_a_partition_that_was_never_written_is_in_the_plan_of_what_it_is_made_of(history):
    found = impact(history(*shop(without={("make", 5)})), named("orders"), day(5))
    assert ("make", "day-5", 0) in planned(found)
    [step] = [one for one in found.plan.steps if one.task_id == "make"]
    assert [reason.text for reason in step.reasons] == [
        f"{day(5)} is not there: no run; it is made of orders {day(5)}"
    ]
    assert (step.run_id, step.ended) == ("", None)


def test_what_follows_from_what_was_never_written_is_planned_after_it(history):
    found = impact(
        history(*shop(without={("make", 5), ("report", 5), ("report", 6)})),
        named("orders"),
        day(5),
    )
    assert planned(found) == [("make", "day-5", 0), ("report", "day-5", 1), ("report", "day-6", 1)]


def test_what_was_never_written_comes_after_what_is_written_again(history):
    found = impact(history(*shop(without={("report", 6)})), named("orders"), day(5))
    assert planned(found) == [("make", "day-5", 0), ("report", "day-5", 1), ("report", "day-6", 1)]


def test_a_task_instance_that_failed_is_planned_by_its_last_run(history):
    found = impact(history(*shop(failed={("make", 5)})), named("orders"), day(5))
    [step] = [one for one in found.plan.steps if one.task_id == "make"]
    assert (step.run_id, step.dag_run_id) == ("make-5", "day-5")


def test_what_does_not_follow_from_the_partition_is_not_planned(history):
    found = impact(history(*shop(without={("make", 5)})), named("orders"), day(8))
    assert all(step.dag_run_id in ("day-8", "day-9") for step in found.plan.steps)


def filled(asked):
    """Give the plan that fills the gaps of revenue, which is made of orders."""
    revenue, orders = named("revenue"), named("orders")
    return with_unwritten(
        Plan(),
        (
            Unwritten(Part(revenue, gap.cell), gap, Part(orders, gap.cell), 0)
            for gap in gaps(asked, revenue)
        ),
    )


def test_a_date_without_a_dag_run_is_to_be_run_by_hand(history):
    without = {(task, 5) for task in TASKS}
    found = filled(history(*shop(without=without)))
    assert found.steps == ()
    assert [(one.job, one.run_id, one.reasons[0].text) for one in found.by_hand] == [
        ("shop.make", "", f"{day(5)} is not there: no run; it is made of orders {day(5)}")
    ]


def test_the_plan_of_gaps_has_a_task_instance_once(history):
    found = filled(history(*shop(without={("make", 5), ("make", 7)})))
    assert [(step.task_id, step.dag_run_id) for step in found.steps] == [
        ("make", "day-5"),
        ("make", "day-7"),
    ]


def clean(*accesses):
    """Give the run of another job, weeks later."""
    ended = "2024-11-01T00:01:00.000000Z"
    return event("clean", ended, *accesses, started="2024-11-01T00:00:00.000000Z")


def test_a_partition_that_a_run_removed_is_no_gap(history):
    emptied = clean(write(day(3), mode="removed"), write(day(4), mode="drop"))
    found = gaps(history(*shop(), emptied), named("orders"))
    assert [(gap.cell, gap.reason) for gap in found] == [(day(4), "dropped")]


def test_what_a_later_overwrite_of_all_leaves_out_is_gone_and_no_gap(history):
    again = clean(write(extent="all", mode="truncate"), write(day(4), mode="overwrite"))
    asked = history(*shop(), again)
    there = "SELECT cell FROM changes WHERE name = 'orders' AND valid_to IS NULL ORDER BY cell"
    assert [row["cell"] for row in asked.rows(there)] == [day(4)]
    assert gaps(asked, named("orders")) == []
    causes = {
        (one.partition["dt"], one.cause.how, (one.cause.partition or {}).get("dt"))
        for one in stale(asked, named("revenue"))
    }
    assert (day(3)[3:], "truncate", None) in causes
    assert (day(4)[3:], "overwrite", day(4)[3:]) in causes


def test_a_removed_partition_makes_stale_what_was_made_of_it_and_plans_its_run(history):
    found = impact(history(*shop(), clean(write(day(3), mode="removed"))), named("orders"), day(3))
    assert ("make", "day-3", 0) in planned(found)
    assert not [one for one in planned(found) if one[0] == "load"]


def test_totals_since_the_first_day_are_planned_in_no_time(history):
    """Each day leads to all later ones, so that there are far more than the plan names."""
    events = []
    for n in range(20):
        for task, source, target in (
            ("load", None, "l0"),
            ("make", "l0", "l1"),
            ("sum", "l1", "l2"),
        ):
            if source and n % 5 == 4:
                continue
            read_days = [k for k in range(n + 1) if source != "l1" or k % 5 != 4]
            reads = [read(day(k), name=source) for k in read_days] if source else []
            events.append(run(task, n, *reads, write(day(n), name=target)))
    events.append(run("load", 20, write(day(20), name="l0")))  # else day 19 might be in progress
    with bounds.within(bounds.Bound.of(20, "It took 70 s when it looked at all later days.")):
        found = impact(history(*events), named("l0"), day(2))
        bounds.check()
    due = [f"day-{n}" for n in (4, 9, 14, 19)]
    assert [step.dag_run_id for step in found.plan.steps if step.run_id == ""] == [*due, *due]


def test_where_there_is_no_time_the_plan_says_for_which_datasets(history, monkeypatch):
    monkeypatch.setattr(unwritten, "_TO_BE_LEFT", 1.1)  # more than there can be
    asked = history(*shop(without={("make", 5), ("report", 7)}))
    with bounds.within(bounds.Bound.of(60, "It takes a second.")):
        found = impact(asked, named("orders"), day(7))
    assert ("report", "day-7", 0) not in planned(found)
    assert [(one.reason, one.text) for one in found.unjudged] == [
        (
            "left_out",
            "Partitions of 2 datasets that were never written may be missing in the plan: "
            "there was no time to look for them: report, revenue.",
        )
    ]


def test_without_a_bound_of_time_all_datasets_are_looked_at(history, monkeypatch):
    monkeypatch.setattr(unwritten, "_TO_BE_LEFT", 1.1)
    found = impact(history(*shop(without={("make", 5)})), named("orders"), day(5))
    assert ("make", "day-5", 0) in planned(found)
    assert not found.unjudged


def test_runs_count_from_400_days_before_the_partition_on(history):
    asked = history(*shop())
    of_day = Part(named("orders"), day(5))
    assert since_of(asked, of_day, ()) == FIRST + timedelta(5 - 400)
    early = FIRST - timedelta(50)
    assert since_of(asked, of_day, (None, early)) == early - timedelta(400)
    region = Part(named("orders"), "region=eu")
    assert since_of(asked, region, ()) is None
    assert since_of(asked, Part(named("orders"), "dt=0001-01-02"), ()) is None


def test_what_was_written_before_the_runs_that_count_is_not_missing(history, monkeypatch):
    """The day was written long before its run, which is the only one that counts and failed."""
    monkeypatch.setattr(unwritten, "_BEFORE", timedelta(days=4))
    early = write(day(6), name="revenue")
    filled_in = event("by hand", "2024-09-01T00:01:00.000000Z", early, job="by hand")
    events = shop(without={("report", 6)}, failed={("make", 6)})
    found = impact(history(*events, filled_in), named("orders"), day(6))
    assert not [one for one in planned(found) if one[0] == "make"]
    found = impact(history(*shop(failed={("make", 6)})), named("orders"), day(6))
    assert [one for one in planned(found) if one[0] == "make"] == [("make", "day-6", 0)]


@pytest.mark.parametrize("kind", ["START", "RUNNING"])
def test_what_a_run_is_writing_now_is_not_planned(history, kind):
    running = run("make", 5, event_type=kind)
    found = impact(history(*shop(without={("make", 5)}), running), named("orders"), day(5))
    assert not [one for one in planned(found) if one[0] == "make"]
