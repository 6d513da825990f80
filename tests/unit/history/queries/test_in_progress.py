"""What a DAG run in progress has not written yet is not missing, and is named as not judged."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

pytest.importorskip("duckdb", reason="the extra history has it")

from airflow_provider_sparklineage.history.queries.gaps import completeness
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.history.queries.answers import START, Answers

REVENUE = DatasetName("ns", "revenue")
DAYS = 30
HOURS = timedelta(hours=1)
OPEN = ("in_progress", 1, "dag.build")


def day(number: int) -> str:
    return f"dt={date(2024, 1, 1) + timedelta(number)}"


@pytest.fixture
def answers():
    return Answers()


def load(answers, number, at=None, hours=1, **fields):
    """Add the first task of a DAG run, which writes another table."""
    at = at or START + timedelta(number)
    fields |= {"started": at, "ended": at + hours * HOURS}
    answers.run(number, [], [("orders", day(number))], "load", **fields)


def build(answers, number, at=None, cells=None, **fields):
    """Add the second task, which starts an hour after the first, and takes an hour."""
    at = (at or START + timedelta(number)) + HOURS
    written = [day(number)] if cells is None else cells
    answers.run(number, [], written, started=at, ended=at + HOURS, **fields)


def daily(answers, days=DAYS):
    for n in range(days):
        load(answers, n)
        build(answers, n)


def other(answers, at):
    """Add a run of another DAG that ends at some time: that is what time it is."""
    answers.run(0, [], [("x", None)], "x", dag_id="y", job="y.x", started=at, ended=at, run_id="x")


def found(answers):
    """Give the reasons of the missing partitions, and what is not judged."""
    answer = completeness(answers, REVENUE)
    missing = [(gap.cell, gap.reason, gap.map_index) for gap in answer.gaps]
    return missing, [(one.reason, one.count, one.job) for one in answer.unjudged]


@pytest.mark.parametrize(("hours", "is_open"), [(1, True), (1.99, True), (2, False), (20, False)])
def test_a_task_that_has_not_run_yet_is_not_judged_for_as_long_as_it_usually_takes(
    answers, hours, is_open
):
    """It usually ends two hours after the start of the DAG run."""
    daily(answers)
    load(answers, DAYS)
    other(answers, START + timedelta(DAYS) + hours * HOURS)
    assert found(answers) == (([], [OPEN]) if is_open else ([(day(DAYS), "no_run", -1)], []))


def test_the_time_is_that_of_the_last_event_of_this_airflow(answers):
    """Another Airflow may be ahead in the history."""
    daily(answers)
    load(answers, DAYS)
    at = START + timedelta(DAYS + 3)
    answers.run(0, [], [("x", None)], "x", namespace="other", started=at, ended=at, run_id="x")
    assert found(answers) == ([], [OPEN])


def test_a_dag_run_that_ended_with_a_failure_is_not_waited_for(answers):
    """What follows a failed task does not run."""
    daily(answers)
    load(answers, DAYS, state="FAIL")
    assert found(answers) == ([(day(DAYS), "no_run", -1)], [])


def test_a_dag_run_whose_failed_task_ran_again_is_in_progress(answers):
    """Its second try succeeded."""
    daily(answers)
    load(answers, DAYS, hours=0.1, state="FAIL", try_number=1)
    at = START + timedelta(DAYS) + HOURS / 5
    load(answers, DAYS, at, run_id="second", try_number=2)
    assert found(answers) == ([], [OPEN])


def test_a_failed_run_of_the_task_itself_is_a_gap_at_once(answers):
    """Its event is known."""
    daily(answers)
    load(answers, DAYS)
    build(answers, DAYS, cells=[], state="FAIL")
    assert found(answers) == ([(day(DAYS), "failed", -1)], [])


def test_a_run_that_wrote_another_partition_is_a_gap_at_once(answers):
    """It has ended."""
    daily(answers)
    load(answers, DAYS)
    build(answers, DAYS, cells=[day(3)])
    assert found(answers)[0] == [(day(DAYS), "not_written", -1)]


def test_reruns_of_weeks_later_do_not_count_as_what_a_task_usually_takes(answers):
    """The first try of each DAG run does."""
    daily(answers)
    for n in range(10):
        at = START + timedelta(n + 14)
        build(answers, n, at, run_id=f"again-{n}", try_number=2)
    load(answers, DAYS)
    other(answers, START + timedelta(DAYS) + 2 * HOURS)
    assert found(answers) == ([(day(DAYS), "no_run", -1)], [])


def test_one_late_day_in_ten_does_not_make_the_others_wait(answers):
    """Three of thirty days were late, by five days."""
    for n in range(DAYS):
        load(answers, n)
        build(answers, n, START + timedelta(n + 5 * (n % 10 == 4)))
    load(answers, DAYS)
    other(answers, START + timedelta(DAYS) + 2 * HOURS)
    assert found(answers) == ([(day(DAYS), "no_run", -1)], [])


def test_map_indexes_that_have_not_ended_are_not_judged(answers):
    """One of three has, and then nothing more comes."""
    regions = ("asia", "eu", "us")
    for n in range(DAYS + 1):
        load(answers, n)
        for index in range(3 if n < DAYS else 1):
            name = {"map_index": index, "run_id": f"build-{n}-{index}"}
            build(answers, n, cells=[f"{day(n)}/region={regions[index]}"], **name)
    last = START + timedelta(DAYS)
    answers.rows(f"UPDATE runs SET ended = '{last + HOURS * 1.5}' WHERE run_id = 'build-{DAYS}-0'")
    assert found(answers) == ([], [("in_progress", 2, "dag.build")])
    other(answers, last + 2 * HOURS)
    missing = [(f"{day(DAYS)}/region={regions[n]}", "no_run", n) for n in (1, 2)]
    assert found(answers) == (missing, [])


def test_days_of_a_backfill_that_others_have_overtaken_are_not_judged(answers):
    """Sixteen DAG runs are in progress at once, and the events of the first came last."""
    daily(answers)
    at = START + timedelta(DAYS + 40)
    for n in range(DAYS + 3, DAYS + 16):
        load(answers, n, at)
    assert found(answers) == ([], [("in_progress", 16, "dag.build")])
    other(answers, at + 2 * HOURS)
    assert found(answers)[0] == [(day(n), "no_run", -1) for n in range(DAYS, DAYS + 16)]


def test_a_day_before_the_one_in_progress_is_missing(answers):
    """A single DAG run in progress overtakes none."""
    daily(answers)
    load(answers, DAYS + 1)
    assert found(answers) == ([(day(DAYS), "no_run", -1)], [OPEN])


def test_a_partition_that_was_dropped_is_missing_while_its_dag_runs_again(answers):
    """It was there."""
    daily(answers)
    answers.rows(f"UPDATE changes SET valid_to = valid_from WHERE cell = '{day(DAYS - 1)}'")
    assert found(answers) == ([(day(DAYS - 1), "dropped", -1)], [])
