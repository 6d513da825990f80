"""Airflow's timetables from learned rules: what their comments say."""

from __future__ import annotations

from datetime import date, timedelta

from airflow_provider_sparklineage.history.queries.patterns.timetable import timetables
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.history.queries.answers import Answers

DAYS = [date(2024, 1, 1) + timedelta(n) for n in range(40)]


def code_of(answers):
    [timetable] = timetables(answers, DatasetName("ns", "revenue"))
    assert timetable.unsaid == ()
    return timetable.code


def test_a_comment_has_the_format_that_keys_of_several_values_need():
    answers = Answers()
    for n, day in enumerate(DAYS):
        cells = [f"region={region}/dt={day}" for region in ("eu", "us")]
        answers.run(n, cells, cells)
    code = code_of(answers)
    needed = "record_asset_partitions='{dt}|{region}'\n"
    assert f"\n# If the task records partitions on its outlet, it needs {needed}" in code
    assert f"\n        # the asset's producer needs {needed}" in code


def test_a_key_of_one_value_needs_no_format():
    answers = Answers()
    for n, day in enumerate(DAYS):
        answers.run(n, [f"dt={day}"], [f"dt={day}"])
    assert "record_asset_partitions" not in code_of(answers)


def test_a_comment_names_the_runs_that_do_not_start():
    """Each day reads the day before, and nothing writes Sundays."""
    answers = Answers()
    for n, day in enumerate(DAYS):
        before = day - timedelta(1)
        reads = [f"dt={before}"] if before.weekday() < 6 else []
        answers.run(n, reads, [f"dt={day}"])
    code = code_of(answers)
    assert (
        "        # no run starts for dt=2024-01-08, dt=2024-01-15, dt=2024-01-22 and 2 more: "
        "none of their partitions came\n"
    ) in code
    assert "MinimumCount" not in code
