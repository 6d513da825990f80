"""What was made of a partition, and what to run again."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_provider_sparklineage.history.queries.impact import impact
from tests.unit.history.queries.asked import named, short
from tests.unit.history.worlds import at, edge, event, read, write


def task(name, minute, *accesses, run_id=None, **fields):
    """Give a run of a task that takes a minute."""
    instance = {"dag_id": "shop", "task_id": name, "dag_run_id": "day", "map_index": -1}
    fields |= instance | {"started": at(minute)}
    return event(run_id or name, at(minute + 1), *accesses, **fields)


LOAD = task("load", 0, write("dt=1"), write("dt=2"))
MAKE = task("make", 2, read("dt=1"), write("dt=1", name="revenue"))
REPORT = task("report", 4, read(name="revenue"), write(name="report"))
OTHER = task("other", 4, read("dt=2"), write("dt=2", name="revenue"))


def test_all_that_was_made_of_a_partition_is_found_and_nothing_else(history):
    found = impact(history(LOAD, MAKE, REPORT, OTHER), named("orders"), "dt=1")
    assert short(found.hops) == [
        (1, "revenue", "dt=1", None, "make"),
        (2, "report", None, None, "report"),
    ]
    assert found.hops[0].via == ("load",)


def test_what_is_not_there_any_more_leads_on_and_is_not_listed(history):
    again = task("again", 8, read("dt=2"), write("dt=1", name="revenue"))
    found = impact(history(LOAD, MAKE, REPORT, again), named("orders"), "dt=1")
    assert [hop[-1] for hop in short(found.hops)] == ["report"]


def test_as_of_asks_for_the_versions_of_then(history):
    load_again = task("load again", 5, write("dt=1"))
    make_again = task("make again", 7, read("dt=1"), write("dt=1", name="second"))
    asked = history(LOAD, MAKE, load_again, make_again)
    then = datetime(2024, 10, 15, 0, 2, tzinfo=UTC)
    runs = [hop.run.run_id for hop in impact(asked, named("orders"), "dt=1", as_of=then).hops]
    assert runs == ["make"]
    assert len(impact(asked, named("orders"), "dt=1").hops) == 2


def test_a_column_goes_along_its_edges(history):
    make = task("make", 2, read("dt=1"), write("dt=1", name="revenue"), columns=[
        edge("amount", "price"), edge("tax", "rate"), edge(None, "state"),
    ])  # fmt: skip
    asked = history(LOAD, make)
    columns = [hop[3] for hop in short(impact(asked, named("orders"), "dt=1", "price").hops)]
    assert columns == ["amount"]
    [hop] = impact(asked, named("orders"), "dt=1", "state").hops
    assert hop.column is None, "a condition of all columns"


def test_the_plan_runs_what_was_affected_in_the_order_of_the_data(history):
    plan = impact(history(LOAD, MAKE, REPORT, OTHER), named("orders"), "dt=1").plan
    assert [(one.task_id, one.wave) for one in plan.steps] == [("make", 0), ("report", 1)]
    assert [reason.text for one in plan.steps for reason in one.reasons] == [
        "read orders dt=1",
        "read revenue dt=1",
    ]


def test_a_reason_names_what_the_run_itself_read_and_not_all_that_was_made_with_it(history):
    made = [write(f"dt={day}", name="revenue") for day in (1, 2, 3)]
    make = task("make", 2, read("dt=1"), *made, write(name="log"))
    report = task("report", 4, read("dt=2", name="revenue"), write(name="report"))
    plan = impact(history(LOAD, make, report), named("orders"), "dt=1").plan
    assert [reason.text for reason in plan.steps[1].reasons] == ["read revenue dt=2"]


def test_a_reason_names_what_was_read_though_it_has_been_replaced_since(history):
    again = task("again", 8, read("dt=2"), write("dt=1", name="revenue"))
    [step] = impact(history(LOAD, MAKE, REPORT, again), named("orders"), "dt=1").plan.steps
    assert [reason.text for reason in step.reasons] == ["read revenue dt=1"]


def test_a_reason_further_on_names_only_columns_that_are_made_of_the_one_asked_about(history):
    edges = [edge("amount", "price"), edge("tax", "rate")]
    make = task("make", 2, read("dt=1"), write("dt=1", name="revenue"), columns=edges)
    both = [edge(one, one, "revenue", out_name="report") for one in ("amount", "tax")]
    report = task("report", 4, read("dt=1", name="revenue"), write(name="report"), columns=both)
    plan = impact(history(LOAD, make, report), named("orders"), "dt=1", "price").plan
    assert plan.steps[1].reasons[0].columns == ("amount → amount",)


def test_a_reason_names_the_columns_through_which_it_goes(history):
    edges = [edge("amount", "price"), edge("tax", "rate")]
    make = task("make", 2, read("dt=1"), write("dt=1", name="revenue"), columns=edges)
    [step] = impact(history(LOAD, make), named("orders"), "dt=1", "price").plan.steps
    assert step.reasons[0].columns == ("price → amount",)


def test_runs_that_airflow_did_not_start_are_to_be_run_by_hand(history):
    make = event("dbt", at(3), read("dt=1"), write("dt=1", name="revenue"), started=at(2))
    report = task("report", 4, read(name="revenue"), write(name="report"))
    plan = impact(history(LOAD, make, report), named("orders"), "dt=1").plan
    assert [(one.run_id, one.wave) for one in plan.by_hand] == [("dbt", 0)]
    assert [(one.task_id, one.wave) for one in plan.steps] == [("report", 1)]


def test_a_task_instance_is_cleared_once_and_is_its_latest_run(history):
    first = task("make", 2, read("dt=1"), write("dt=1", name="revenue"))
    second = task("make", 6, write("dt=9", name="revenue"), run_id="second")
    plan = impact(history(LOAD, first, second), named("orders"), "dt=1").plan
    assert [(one.task_id, one.run_id) for one in plan.steps] == [("make", "second")]


def test_a_run_whose_versions_are_all_replaced_is_not_in_the_plan(history):
    again = task("again", 8, write("dt=1", name="revenue"))
    assert impact(history(LOAD, MAKE, again), named("orders"), "dt=1").plan.steps == ()


def test_tasks_that_read_from_each_other_are_in_the_order_in_which_they_ran(history):
    one = task("one", 2, read("dt=1"), read("dt=1", name="b"), write("dt=1", name="a"))
    two = task("two", 4, read("dt=1"), read("dt=1", name="a"), write("dt=1", name="b"))
    plan = impact(history(LOAD, one, two), named("orders"), "dt=1").plan
    assert [(one.task_id, one.wave) for one in plan.steps] == [("one", 0), ("two", 1)]
