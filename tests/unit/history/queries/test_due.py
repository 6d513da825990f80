"""The dates of a schedule, and the values that are due on each of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.history.queries.due import Stretch, expected_values, timeline

MONDAY = 739_005  # days since the year 1
FAR = MONDAY + 2_000_000


def dates(unit, known):
    """Give the dates from the first known one on, as distances from Monday."""
    return [[n - MONDAY for n in span] for span in timeline(unit, known).spans]


@given(
    count=st.integers(12, 120),
    step=st.sampled_from([1, 7, 30]),
    lost=st.sets(st.integers(1, 10), max_size=3),
)
def test_lost_dates_of_a_regular_schedule_are_in_it(count, step, lost):
    """A few of them are no other schedule."""
    every = [MONDAY + n * step for n in range(count)]
    known = [date for n, date in enumerate(every) if n not in lost]
    assert timeline("day", known).spans == [every]


@pytest.mark.parametrize(
    ("known", "spans"),
    [
        pytest.param([], [[]], id="no date"),
        pytest.param([0], [[0]], id="one date"),
        pytest.param([0, 5], [[0, 5]], id="two dates"),
        pytest.param([0, 1, 2, 5], [[0, 1, 2, 3, 4, 5]], id="an outage"),
        pytest.param([0, 1, 2, 403], [[*range(404)]], id="an outage of 400 days"),
        pytest.param([0, 1, 2, 404], [[0, 1, 2], [404]], id="no schedule of 401 days"),
        pytest.param([*range(300), 902], [[*range(903)]], id="twice the known dates"),
        pytest.param([*range(300), 903], [[*range(300)], [903]], id="more than twice"),
    ],
)
def test_the_dates_between_known_ones_are_due_unless_there_are_too_many(known, spans):
    """The known dates themselves always are."""
    assert dates("day", [MONDAY + n for n in known]) == spans


def test_a_stretch_that_is_left_out_is_named_with_its_dates():
    """The first and the last are known dates."""
    line = timeline("day", [MONDAY, MONDAY + 1, MONDAY + 2, FAR])
    assert line.left_out == [Stretch(MONDAY + 2, FAR, FAR - MONDAY - 3)]


def test_a_weekday_is_free_from_its_fifth_week_without_a_run_on():
    """Four weeks may be an outage."""
    weeks = [n for n in range(70) if n % 7 != 3 or n > 40]
    assert dates("day", [MONDAY + n for n in weeks]) == [weeks]
    weeks = [n for n in range(70) if n % 7 != 3 or n > 27]
    assert dates("day", [MONDAY + n for n in weeks]) == [[*range(70)]]


def test_values_are_expected_on_nine_of_ten_dates_from_their_first_one_on():
    """Dates on which nothing was written do not count."""
    often, rare, late = ("often",), ("rare",), ("late",)
    written = [
        {often} - ({often} if n == 4 else set())
        | ({rare} if n % 2 else set())
        | ({late} if n >= 12 else set())
        if n not in {6, 7}
        else set()
        for n in range(20)
    ]
    expected, never = expected_values(written)
    assert expected == [{often}] * 12 + [{often, late}] * 8
    assert never == 1


@pytest.mark.parametrize(("count", "is_expected"), [(2, False), (3, True)])
def test_a_value_is_expected_after_three_dates(count, is_expected):
    """Before, it may have been written by chance."""
    expected, _ = expected_values([{("eu",)}] * count)
    assert expected == [{("eu",)} if is_expected else set()] * count


@given(
    st.lists(st.sets(st.sampled_from([("a",), ("b",), ("c",)])), max_size=40),
    st.sampled_from([0, 0.9]),
)
def test_what_is_expected_stays_expected_and_was_written_once(written, share):
    """Each value is either expected at the end or counted as one that never is."""
    expected, never = expected_values(written, share)
    assert all(before <= after for before, after in pairwise(expected))
    values = set().union(*written)
    assert len(values) == never + len(expected[-1] if expected else ())
