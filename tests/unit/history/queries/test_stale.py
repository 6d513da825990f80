"""What is not up to date."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.walk import Size, size_of
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.history.queries.asked import named, text
from tests.unit.history.queries.test_impact import LOAD, MAKE, REPORT, task
from tests.unit.history.worlds import ORDERS, at, event, read, write

AGAIN = task("again", 8, write("dt=1"))


def found(history, *events, **asked):
    """Give dataset, partition, whether it is direct, and the run of the cause."""
    return [
        (one.dataset.name, text(one.partition), one.is_direct, one.cause.run.run_id)
        for one in stale(history(*events), **asked)
    ]


def test_nothing_is_stale_while_nothing_is_written_again(history):
    assert found(history, LOAD, MAKE, REPORT) == []


@pytest.mark.parametrize("mode", ["overwrite", "append", "truncate", "drop", "removed", "unknown"])
def test_what_was_made_of_a_partition_is_stale_once_that_is_changed(history, mode):
    again = task("again", 8, write("dt=1", mode=mode))
    assert found(history, LOAD, MAKE, again) == [("revenue", "dt=1", True, "again")]


def test_what_was_made_of_something_stale_is_stale_for_the_same_cause(history):
    assert found(history, LOAD, MAKE, REPORT, AGAIN) == [
        ("report", None, False, "again"),
        ("revenue", "dt=1", True, "again"),
    ]


def test_late_data_makes_stale_what_read_before_it(history):
    assert found(history, MAKE, AGAIN) == [("revenue", "dt=1", True, "again")]


def test_a_cause_tells_whether_it_was_written_before(history):
    late = stale(history(MAKE, AGAIN))
    again = stale(history(LOAD, MAKE, AGAIN))
    whole_before = stale(history(task("all", 0, write()), MAKE, AGAIN))
    assert [one[0].cause.is_first for one in (late, again, whole_before)] == [True, False, False]


def test_the_version_that_a_run_replaced_itself_hands_on_what_it_lacks(history):
    total = task("total", 2, read("dt=1"), write(name="total"))
    more = task("more", 4, read(name="total"), write(name="total"))
    assert found(history, LOAD, total, more) == []
    assert found(history, LOAD, total, more, AGAIN) == [("total", None, False, "again")]


def test_of_a_chain_that_names_no_partitions_the_latest_run_of_each_job_counts(history):
    def model(name, minute, source, target):
        vague = {"extent": "unknown"}
        reads = read(name=source, **vague)
        return event(
            f"{name} {minute}",
            at(minute + 1),
            reads,
            write(name=target, mode="unknown", **vague),
            started=at(minute),
            job=f"dbt.{name}",
        )

    days = [model("b", n + 2, "a", "b") for n in (0, 10)]
    loads = [model("a", n, "raw", "a") for n in (0, 10)]
    assert found(history, *loads, *days) == []
    rebuilt = [*loads, *days, model("a", 20, "raw", "a")]
    assert found(history, *rebuilt) == [("b", None, True, "a 20")]
    assert [one.is_certain for one in stale(history(*rebuilt))] == [False]


def test_what_was_made_again_is_not_stale(history):
    make_again = task("make again", 10, read("dt=1"), write("dt=1", name="revenue"))
    assert found(history, LOAD, MAKE, AGAIN, make_again) == []


def test_other_partitions_make_nothing_stale(history):
    assert found(history, LOAD, MAKE, task("again", 8, write("dt=2"))) == []


def test_of_a_whole_new_partitions_are_growth_and_changed_ones_are_not(history):
    total = task("total", 2, read(), write(name="total"))
    assert found(history, LOAD, total, task("more", 8, write("dt=3"))) == []
    assert found(history, LOAD, total, AGAIN) == [("total", None, True, "again")]


def test_what_is_ignored_makes_nothing_stale_itself_and_hands_nothing_on(history):
    source = DatasetName("ns", ORDERS)
    assert found(history, LOAD, MAKE, REPORT, AGAIN, ignored=[source]) == []
    between = DatasetName("ns", "revenue")
    assert found(history, LOAD, MAKE, REPORT, AGAIN, ignored=[between]) == [
        ("revenue", "dt=1", True, "again")
    ]


def test_a_write_of_the_whole_changes_every_partition(history):
    assert found(history, LOAD, MAKE, task("all", 8, write())) == [("revenue", "dt=1", True, "all")]


def test_a_partition_by_more_dimensions_is_part_of_what_was_read(history):
    again = task("again", 8, write("dt=1/region=eu"))
    assert found(history, LOAD, MAKE, again) == [("revenue", "dt=1", True, "again")]


def test_own_writes_make_nothing_stale(history):
    own = task("own", 2, read("dt=1"), write("dt=1"))
    assert found(history, LOAD, own) == []


@pytest.mark.parametrize(("ended", "is_certain"), [(6, False), (7, True), (8, True)])
def test_a_change_while_the_reader_ran_is_missed_perhaps(history, ended, is_certain):
    writer = event("writer", at(ended), write("dt=1"), started=at(4))
    reader = event("reader", at(7), read("dt=1"), write("dt=1", name="b"), started=at(5))
    (one,) = stale(history(LOAD, writer, reader))
    assert (one.run.run_id, one.is_certain) == ("reader", is_certain)


def test_one_dataset_is_asked_for_with_causes_in_others(history):
    asked = found(history, LOAD, MAKE, REPORT, AGAIN, dataset=named("report"))
    assert asked == [("report", None, False, "again")]


def test_the_plan_names_the_change_and_runs_in_the_order_of_the_data(history):
    asked = history(LOAD, MAKE, REPORT, AGAIN)
    plan = plan_of(asked, stale(asked))
    assert [(one.task_id, one.wave) for one in plan.steps] == [("make", 0), ("report", 1)]
    expected = "read orders dt=1, changed 2024-10-15 00:09 UTC (overwrite)"
    assert plan.steps[0].reasons[0].text == expected
    change = expected.removeprefix("read ")
    assert plan.steps[1].reasons[0].text == f"its source is stale: {change}"


def test_after_the_plan_nothing_is_stale(history):
    again = [
        task("make", 12, read("dt=1"), write("dt=1", name="revenue"), run_id="make 2"),
        task("report", 14, read(name="revenue"), write(name="report"), run_id="report 2"),
    ]
    assert found(history, LOAD, MAKE, REPORT, AGAIN, *again) == []


def test_reads_and_writes_of_other_dimensions_are_no_product_of_their_cells(history):
    cells = range(1_000)
    days = [write(f"dt={n}") for n in cells]
    read_days = [read(f"dt={n}") for n in cells]
    regions = [write(f"region={n}", mode="append") for n in cells]
    readers = [task(f"make {n}", n + 2, *read_days, write(name=f"of-{n}")) for n in range(20)]
    asked = history(task("load", 0, *days), *readers, task("again", 40, *regions))
    with bounds.within(bounds.Bound.of(10, "It took 25 s when each cell met each other.")):
        versions = stale(asked)
        bounds.check()
    assert len(versions) == 20
    assert {text(one.cause.partition) for one in versions} == {"region=0"}


def test_stale_versions_have_the_sizes_that_their_writes_state(history):
    sized = write("dt=1", name="revenue", row_count=7, byte_count=70)
    make = task("make", 2, read("dt=1"), sized)
    other = task("other", 3, read("dt=1"), write("dt=2", name="revenue"))
    asked = history(LOAD, make, other, AGAIN)
    assert size_of(asked, stale(asked)) == Size(versions=2, known=1, rows=7, bytes=70)
    assert size_of(asked, []) == Size(0, 0, 0, 0)
